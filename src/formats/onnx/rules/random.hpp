// SPDX-License-Identifier: MIT
// Random numbers by Philox, keyed by a node's seed, or by its name where it has none, and by each
// element's place: the same on every device and in every run.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// Keys of a node's numbers: scalars p0 and p1 of a program, which calls uniform(p0, 0, p1).
std::vector<double> random_keys(Call& call);

/// Dropout in training: the share `ratio` (one number) of elements becomes 0, the others grow.
/// Returns the result and the mask of what stays.
std::vector<Ref> random_dropout(Call& call, Ref x, Ref ratio);

}  // namespace dlprim::onnx
