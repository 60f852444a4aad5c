// SPDX-License-Identifier: MIT
// What a training run writes besides checkpoints: metrics.csv, and a report for a browser.
#pragma once

#include <string>
#include <vector>

namespace dlprim {

struct EpochMetrics {
    int epoch = 0;
    double learning_rate = 0, train_loss = 0, train_accuracy = 0;
    double test_loss = 0, test_accuracy = 0;  ///< negative if there is no test set
    double seconds = 0;
};

/// Both files are written atomically. `device` is where the net was trained. Throws Error(io).
void write_metrics(const std::string& folder, const std::vector<EpochMetrics>& epochs);
void write_report(const std::string& folder, const std::string& title, const std::string& device,
                  const std::vector<EpochMetrics>& epochs);

/// Reads the rows of an earlier metrics.csv; empty if there is no such file.
std::vector<EpochMetrics> read_metrics(const std::string& folder);

}  // namespace dlprim
