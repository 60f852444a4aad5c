// SPDX-License-Identifier: MIT
// Numpy arrays as the library reads and writes them: row-major host memory of a DType.
#pragma once

#include "bind.hpp"

#include <nanobind/ndarray.h>

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim::python {

/// The elements of whatever numpy.asarray() takes, row-major, in the machine's byte order and of a
/// given dtype. An array that is so already is read where it lies; another is copied and converted:
/// a float type to another rounds, and a number that an integer type does not hold is refused, a
/// NaN among them. Made and destroyed under the interpreter's lock; data() may be read without it.
class HostArray {
  public:
    /// `what` stands in messages, e.g. "input 'data'". Throws nb::type_error on arrays that hold
    /// no numbers, Error(invalid_argument) on numbers that do not fit.
    HostArray(nb::handle array, DType dtype, const std::string& what);
    ~HostArray();
    HostArray(const HostArray&) = delete;
    HostArray& operator=(const HostArray&) = delete;

    const Shape& shape() const { return shape_; }
    const void* data() const { return converted_.empty() ? view_.buf : converted_.data(); }
    std::uint64_t bytes() const;

  private:
    void convert_from(DType stored, const std::string& what);

    Py_buffer view_{};  ///< holds the array
    Shape shape_;
    DType dtype_;
    std::vector<std::byte> converted_;
};

/// A new numpy array of the tensor's own dtype.
nb::object to_numpy(const HostTensor& tensor);

/// Sets a Shape from a Python sequence of integers, or from one integer; returns false where the
/// object is of another type.
bool to_shape(nb::handle dims, Shape& shape);
nb::tuple shape_tuple(const Shape& shape);

/// The name of the object's type, for messages.
std::string python_type(nb::handle object);

}  // namespace dlprim::python
