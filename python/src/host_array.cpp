// SPDX-License-Identifier: MIT
// HostArray: what numpy makes plain stays numpy's work; what the library converts, it converts.
#include "host_array.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace dlprim::python {
namespace {

[[noreturn]] void refuse(const std::string& message) {
    throw Error(ErrorKind::invalid_argument, message);
}

/// numpy.asarray(), whose own errors (a ragged list) arrive as they are.
nb::object as_array(nb::handle object) {
    return nb::module_::import_("numpy").attr("asarray")(object);
}

std::string dtype_name(nb::handle array) {
    return nb::cast<std::string>(nb::str(array.attr("dtype")));
}

/// The library's dtype for a numpy array's, where there is one.
std::optional<DType> dtype_of(nb::handle array) {
    const nb::object dtype = array.attr("dtype");
    const auto kind = nb::cast<std::string>(dtype.attr("kind"));
    const auto size = nb::cast<int>(dtype.attr("itemsize"));
    const auto pick = [&](int bytes, DType found) -> std::optional<DType> {
        if (size == bytes) return found;
        return std::nullopt;
    };
    if (dtype_name(array) == "bfloat16") return DType::bf16;
    if (kind == "b") return DType::boolean;
    if (kind == "f") return size == 4 ? DType::f32 : size == 2 ? DType::f16 : pick(8, DType::f64);
    if (kind == "i" && size == 4) return DType::i32;
    if (kind == "i" && size == 2) return DType::i16;
    if (kind == "i") return size == 1 ? DType::i8 : pick(8, DType::i64);
    if (kind == "u" && size == 4) return DType::u32;
    if (kind == "u") return size == 1 ? DType::u8 : pick(2, DType::u16);
    return std::nullopt;
}

/// Row-major, of the machine's byte order, of a type that the library has: the array itself where
/// it is so.
nb::object plain(nb::object array, const std::string& what) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
    if (!dtype_of(array)) {
        const bool number = kind == "f" || kind == "u";
        if (!number)
            throw nb::type_error((what + " is an array of dtype " + dtype_name(array) +
                                  ", which holds no real numbers: convert it with astype()")
                                     .c_str());
        if (kind == "u" && nb::cast<int>(array.attr("size")) > 0 &&
            nb::cast<bool>(array.attr("max")() > nb::int_(std::numeric_limits<std::int64_t>::max())))
            refuse(what + " holds numbers beyond int64");
        array = array.attr("astype")(kind == "f" ? "float64" : "int64");
    }
    if (!nb::cast<bool>(array.attr("dtype").attr("isnative")))
        array = array.attr("astype")(array.attr("dtype").attr("newbyteorder")("="));
    if (!nb::cast<bool>(array.attr("flags").attr("c_contiguous")))
        array = array.attr("copy")(nb::arg("order") = "C");
    return array;
}

/// Whether every float is a whole number of the integer type.
bool fits(const std::vector<double>& values, double lowest, double end) {
    for (const double value : values)
        if (!(value >= lowest && value < end && value == std::floor(value))) return false;
    return true;
}

/// The first number of an integer type, and the one behind its last.
std::pair<double, double> range_of(DType dtype) {
    const double bits = 8.0 * static_cast<double>(size_of(dtype));
    if (dtype == DType::boolean) return {0, 2};
    if (dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32)
        return {0, std::exp2(bits)};
    return {-std::exp2(bits - 1), std::exp2(bits - 1)};
}

}  // namespace

HostArray::HostArray(nb::handle object, DType dtype, const std::string& what) : dtype_(dtype) {
    nb::object array = plain(as_array(object), what);
    to_shape(array.attr("shape"), shape_);
    const DType stored = *dtype_of(array);
    if (stored == DType::bf16) array = array.attr("view")("uint16");
    if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_C_CONTIGUOUS) != 0) throw nb::python_error();
    try {
        if (stored != dtype) convert_from(stored, what);
    } catch (...) {
        PyBuffer_Release(&view_);
        throw;
    }
}

HostArray::~HostArray() { PyBuffer_Release(&view_); }

std::uint64_t HostArray::bytes() const {
    return static_cast<std::uint64_t>(shape_.numel()) * size_of(dtype_);
}

void HostArray::convert_from(DType stored, const std::string& what) {
    const auto count = static_cast<std::size_t>(shape_.numel());
    if (!is_float(dtype_)) {
        std::vector<double> values(count);
        convert(view_.buf, stored, values.data(), DType::f64, count);
        const auto [lowest, end] = range_of(dtype_);
        if (!fits(values, lowest, end))
            refuse(what + " holds numbers that " + std::string(name_of(dtype_)) +
                   " does not hold: a NaN, a fraction, or one out of its range");
    }
    converted_.resize(count * size_of(dtype_));
    convert(view_.buf, stored, converted_.data(), dtype_, count);
}

bool to_shape(nb::handle dims, Shape& shape) {
    std::vector<std::int64_t> sizes(1);
    if (!nb::try_cast(dims, sizes[0]) && !nb::try_cast(dims, sizes)) return false;
    shape = Shape(sizes);
    return true;
}

nb::tuple shape_tuple(const Shape& shape) {
    nb::list dims;
    for (const std::int64_t dim : shape.dims()) dims.append(dim);
    return nb::tuple(dims);
}

std::string python_type(nb::handle object) {
    return nb::cast<std::string>(object.type().attr("__name__"));
}

nb::object to_numpy(const HostTensor& tensor) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    constexpr const char* names[] = {"float32", "float16", "uint16", "float64", "int8",  "uint8",
                                     "int16",   "uint16",  "int32",  "uint32",  "int64", "bool"};
    nb::object array = numpy.attr("empty")(shape_tuple(tensor.shape),
                                           names[static_cast<std::size_t>(tensor.dtype)]);
    Py_buffer view;
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) != 0)
        throw nb::python_error();
    std::memcpy(view.buf, tensor.data.data(), tensor.data.size());
    PyBuffer_Release(&view);
    if (tensor.dtype == DType::bf16)
        array = array.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16"));
    return array;
}

}  // namespace dlprim::python
