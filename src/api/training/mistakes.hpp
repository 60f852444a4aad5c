// SPDX-License-Identifier: MIT
// The worst mistakes of a net as a page shows them: with the names of examples and classes, and
// with pictures where inputs are pictures.
#pragma once

#include "api/training/findings.hpp"
#include "train/data/augment.hpp"
#include "train/dataset.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace dlprim {

/// Pictures are what the net got of them, at most 96 pixels wide and high; together at most 1.5 MB.
/// An example that can no longer be read, or a build without libpng, leaves out the picture.
nlohmann::ordered_json mistakes_json(const std::vector<Mistake>& mistakes, const Dataset& data,
                                     const AugmentOptions& augmentation);

}  // namespace dlprim
