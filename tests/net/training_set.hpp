// SPDX-License-Identifier: MIT
// Files for train(): what tests of trainings share.
#pragma once

#include "net/support.hpp"

namespace dlprim::testing {

/// Writes "images" and "labels", 64 pictures, "net.json", which is small_network for them, and
/// "train.json", by which train() trains it.
void write_training_set(const Folder& folder);

}  // namespace dlprim::testing
