// SPDX-License-Identifier: MIT
// RunHistory: what a training run has measured, epoch by epoch. metrics.csv, the report and event
// files are made of it, and checkpoints hold it.
#pragma once

#include <string>
#include <vector>

namespace dlprim {

struct EpochMetrics {
    int epoch = 0;
    double learning_rate = 0, train_loss = 0;
    std::vector<double> train;  ///< the metrics over the training batches
    double test_loss = 0;       ///< over the test set, if there is one
    std::vector<double> test;
    double seconds = 0;
};

struct RunHistory {
    std::vector<std::string> metrics;  ///< names, such as "accuracy"; may be empty
    bool tested = false;               ///< whether there is a test set
    std::vector<EpochMetrics> epochs;

    /// Names of the columns: epoch, learning_rate, train_loss, train_accuracy, test_loss, ...
    std::vector<std::string> columns() const;
    /// An epoch's numbers in their order.
    std::vector<double> row(const EpochMetrics& epoch) const;
    /// The reverse, for columns in any order. Those that are not there are NaN.
    EpochMetrics epoch_of(const std::vector<std::string>& columns,
                          const std::vector<double>& row) const;
};

/// Writes metrics.csv, whole or not at all. Throws Error(io).
void write_metrics(const std::string& folder, const RunHistory& history);
/// Adds the rows of an earlier metrics.csv, if there is such a file.
void read_metrics(const std::string& folder, RunHistory& history);

}  // namespace dlprim
