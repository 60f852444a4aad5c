// SPDX-License-Identifier: MIT
// data_digest(): whether several processes read the same examples.
#pragma once

#include "train/dataset.hpp"

#include <string>

namespace dlprim {

/// A digest of a data set's labels, as far as its targets are labels, and of up to 16 of its
/// examples, the first one and others at equal distances. It reads no others, so that it takes no
/// longer for a large set, and another picture among the rest goes unnoticed. An example that
/// cannot be read counts as such.
std::string data_digest(const Dataset& data);

}  // namespace dlprim
