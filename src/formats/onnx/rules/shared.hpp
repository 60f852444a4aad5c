// SPDX-License-Identifier: MIT
// What rules of several families use.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

// activation.cpp.

/// `value` after the activation operator of this name, with that operator's attributes. Throws
/// Error(unsupported) for a name that is no activation.
Ref activated(Call& call, Ref value, const std::string& name, Attributes attributes = {});

// casts.cpp.

/// A value whose numbers beyond the largest one of a float of 8 bits are that one.
Ref saturated(Builder& build, Ref value, DType dtype);

// gather.cpp.

/// The rows of dimension `axis` at indices, computed or known; their dimensions take the axis'
/// place.
Ref gather_computed(Call& call, Ref data, Ref indices, int axis);

// random.cpp. Random numbers are by Philox, keyed by a node's seed, or by its name where it has
// none, and by each element's place: the same on every device and in every run.

/// Keys of a node's numbers: scalars p0 and p1 of a program, which calls uniform(p0, 0, p1).
std::vector<double> random_keys(Call& call);

/// Dropout in training: the share `ratio` (one number) of elements becomes 0, the others grow.
/// Returns the result and the mask of what stays.
std::vector<Ref> random_dropout(Call& call, Ref x, Ref ratio);

}  // namespace dlprim::onnx
