// SPDX-License-Identifier: MIT
// A data set in two arrays: inputs and targets, a row of each for an example.
#pragma once

#include "formats/rows.hpp"
#include "train/dataset.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// Inputs of uint8 with three or four dimensions are pictures, [N, H, W] or [N, C, H, W], or with
/// `channels_last` [N, H, W, C]; others are numbers of any shape. Targets that are integers [N] are
/// labels, integers [N, H, W] masks, and floats [N] or [N, K] values. Throws Error(format), which
/// names the files, if they do not fit together.
std::unique_ptr<Dataset> make_array_data(std::unique_ptr<Rows> inputs,
                                         std::unique_ptr<Rows> targets, bool channels_last,
                                         std::vector<std::string> classes);

}  // namespace dlprim
