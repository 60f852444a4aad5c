// SPDX-License-Identifier: MIT
// What a training leaves beside its checkpoints: metrics.csv and a report that a browser opens.
#pragma once

#include <string>
#include <vector>

namespace dlprim {

struct EpochMetrics {
    int epoch = 0;
    double learning_rate = 0, train_loss = 0, train_accuracy = 0;
    double test_loss = 0, test_accuracy = 0;  ///< negative: there is no test set
    double seconds = 0;
};

/// Both files are written whole or not at all. `device`: where it was trained. Throws Error(io).
void write_metrics(const std::string& folder, const std::vector<EpochMetrics>& epochs);
void write_report(const std::string& folder, const std::string& title, const std::string& device,
                  const std::vector<EpochMetrics>& epochs);

/// The rows of an earlier metrics.csv, none where it is not there.
std::vector<EpochMetrics> read_metrics(const std::string& folder);

}  // namespace dlprim
