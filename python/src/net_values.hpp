// SPDX-License-Identifier: MIT
// Values of inputs and parameters between numpy and the library.
#pragma once

#include "bind.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim::python {

/// Converts an array's elements to another dtype. A float type rounds. A value that an integer type
/// cannot hold, including NaN and fractions, is an Error(invalid_argument) that begins with `what`.
std::vector<std::byte> converted(const HostArray& array, DType dtype, const std::string& what);

/// A numpy array that owns the tensor's memory.
nb::object to_array(HostTensor&& tensor);

}  // namespace dlprim::python
