// SPDX-License-Identifier: MIT
// The settings of a training configuration that decide its results, as text for checkpoints, so
// that a resumed run can say what has changed.
#pragma once

#include "train/config.hpp"

#include <string>
#include <utility>
#include <vector>

namespace dlprim {

/// Pairs of a key, as the configuration has it ("solver.learning_rate"), and a value.
using Settings = std::vector<std::pair<std::string, std::string>>;

Settings settings_of(const TrainConfig& config);
/// A line for each: key, space, value.
std::string text_of(const Settings& settings);
Settings parse_settings(const std::string& text);

/// "batch 32 instead of 16, seed 4 instead of 3"; empty if nothing changed. Keys that `before`
/// lacks do not count.
std::string changes(const Settings& before, const Settings& now);
/// The value of a key, or empty.
std::string value_of(const Settings& settings, const std::string& key);

}  // namespace dlprim
