// SPDX-License-Identifier: MIT
// LanguageTrainConfig: the configuration (JSON) of the training of a language model, as
// docs/language.md describes it.
#pragma once

#include "train/config.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlprim {

struct LanguageTrainConfig {
    /// What it has in common with other trainings: all but data, metrics, shards and first weights.
    /// Its `net` is the model's path.
    TrainConfig common;
    std::string train, test;   ///< paths of texts; `test` may be empty
    std::optional<bool> pack;  ///< whether texts share rows; nothing: plain texts do
    std::int64_t length = 0;   ///< the most tokens of a row; 0: 512, or what the model reads
    struct {
        std::int64_t rank = 8;
        double alpha = 16, dropout = 0;
        std::vector<std::string> targets;
    } lora;
};

/// Whether the file is such a configuration. Throws Error for one that is not JSON.
bool is_language_train_config(const std::string& path);
/// Reads it. `epochs` replaces the configuration's number when it is positive. Throws
/// Error(format), which names the file, line and path of what is wrong.
LanguageTrainConfig read_language_train_config(const std::string& path, int epochs = 0);

}  // namespace dlprim
