// SPDX-License-Identifier: MIT
// Files for train(): what tests of trainings share.
#pragma once

#include "net/support.hpp"

namespace dlprim::testing {

/// Writes "images" and "labels" (64 images), "net.json" (small_network for these) and "train.json"
/// (the configuration for train()).
void write_training_set(const Folder& folder);

}  // namespace dlprim::testing
