// SPDX-License-Identifier: MIT
// Values of inputs and parameters between numpy and the library.
#pragma once

#include "bind.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim::python {

/// An array's elements in another dtype: a float type rounds; what an integer type does not hold, a
/// NaN or a fraction among it, is an Error(invalid_argument) that begins with `what`.
std::vector<std::byte> converted(const HostArray& array, DType dtype, const std::string& what);

/// A numpy array that owns the tensor's memory.
nb::object to_numpy(HostTensor&& tensor);

}  // namespace dlprim::python
