// SPDX-License-Identifier: MIT
// Values between numpy and tensors, without unnecessary copies.
#include "tensor.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <vector>

namespace dlprim::python {

nb::module_ numpy() {
    return nb::module_::import_("numpy");
}

namespace {

/// The memory of a C-ordered array that buffers can describe.
const void* memory_of(nb::handle array) {
    return nb::cast<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>(array).data();
}

/// numpy's array of the values. Python floats become float32, the usual type in networks, whereas
/// numpy would choose float64.
nb::object as_array(nb::handle values) {
    nb::object array = numpy().attr("asarray")(values);
    if (nb::hasattr(values, "dtype") ||
        nb::cast<std::string>(array.attr("dtype").attr("name")) != "float64")
        return array;
    return array.attr("astype")("float32");
}

HostArray from_array(nb::object array) {
    HostArray host;
    nb::object type = array.attr("dtype");
    host.dtype = to_dtype(type);
    host.shape = to_shape(array.attr("shape"));
    array = numpy().attr("asarray")(array, nb::arg("dtype") = type.attr("newbyteorder")("="),
                                    nb::arg("order") = "C");
    if (is_held_by_bits(host.dtype)) array = array.attr("view")(bits_name(host.dtype));
    host.data = host.shape.empty() ? nullptr : memory_of(array);
    host.owner = std::move(array);
    return host;
}

void write(Tensor& tensor, const HostArray& host) {
    if (host.shape != tensor.shape())
        throw Error(ErrorKind::invalid_argument, "a tensor of shape " + tensor.shape().str() +
                                                     " cannot take values of shape " +
                                                     host.shape.str());
    const bool bits = tensor.dtype() == DType::bf16 && host.dtype == DType::u16;
    const ContextLock lock(tensor.context());
    if (host.dtype == tensor.dtype() || bits) {
        tensor.copy_from_host(host.data, tensor.bytes());
        return;
    }
    std::vector<std::byte> converted(tensor.bytes());
    const auto count = static_cast<std::size_t>(host.shape.numel());
    convert(host.data, host.dtype, converted.data(), tensor.dtype(), count);
    tensor.copy_from_host(converted.data(), converted.size());
}

/// Copies a tensor to an array that fits it.
void read(const Tensor& tensor, const nb::object& array) {
    if (tensor.shape().empty()) return;
    void* const memory = const_cast<void*>(memory_of(array));
    const ContextLock lock(tensor.context());
    tensor.to_contiguous().copy_to_host(memory, tensor.bytes());
}

std::int64_t to_size(nb::handle size) {
    if (!is_int(size)) wrong_type("a size in a shape", "an int", size);
    const Py_ssize_t value = PyNumber_AsSsize_t(size.ptr(), PyExc_OverflowError);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    return value;
}

}  // namespace

bool is_held_by_bits(DType dtype) {
    return dtype == DType::bf16 || is_narrow(dtype);
}

const char* bits_name(DType dtype) {
    return size_of(dtype) == 2 ? "uint16" : "uint8";
}

nb::object typed_bits(nb::object array, DType dtype) {
    if (!is_held_by_bits(dtype)) return array;
    try {
        return array.attr("view")(nb::module_::import_("ml_dtypes").attr(dtype_name(dtype)));
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ImportError) && !error.matches(PyExc_AttributeError)) throw;
        return array;
    }
}

HostArray to_host_array(nb::handle values) {
    try {
        return from_array(as_array(values));
    } catch (nb::python_error& error) {
        // A type that numpy lacks may be available by DLPack, such as PyTorch's bfloat16.
        if (!error.matches(PyExc_TypeError) || !nb::hasattr(values, "__dlpack__")) throw;
    }
    return from_dlpack_host(values);
}

void copy_from(Tensor& tensor, nb::handle values) {
    const Tensor* other = nullptr;
    if (nb::try_cast(values, other) && other != nullptr && copy_on_device(tensor, *other)) return;
    write(tensor, to_host_array(values));
}

Tensor to_tensor(const Context& context, nb::handle values, std::optional<DType> dtype) {
    return to_tensor(context, to_host_array(values), dtype);
}

Tensor to_tensor(const Context& context, const HostArray& host, std::optional<DType> dtype) {
    Tensor tensor;
    {
        const ContextLock lock(context);
        tensor = Tensor(context, host.shape, dtype.value_or(host.dtype));
    }
    write(tensor, host);
    return tensor;
}

nb::object to_numpy(const Tensor& tensor) {
    const DType dtype = tensor.dtype();
    nb::object array = numpy().attr("empty")(
        to_tuple(tensor.shape()), is_held_by_bits(dtype) ? bits_name(dtype) : dtype_name(dtype));
    read(tensor, array);
    return typed_bits(array, dtype);
}

void copy_to(const Tensor& tensor, nb::handle array) {
    if (!nb::isinstance(array, numpy().attr("ndarray")))
        wrong_type("what a tensor is copied to", "a numpy array", array);
    const Shape shape = to_shape(array.attr("shape"));
    const DType dtype = to_dtype(array.attr("dtype"));
    const bool bits = tensor.dtype() == DType::bf16 && dtype == DType::u16;
    const bool fits = shape == tensor.shape() && (dtype == tensor.dtype() || bits) &&
                      nb::cast<bool>(array.attr("flags").attr("c_contiguous")) &&
                      nb::cast<bool>(array.attr("flags").attr("writeable")) &&
                      nb::cast<bool>(array.attr("dtype").attr("isnative"));
    if (!fits)
        throw Error(ErrorKind::invalid_argument,
                    "the array that takes a tensor of " + std::string(dtype_name(tensor.dtype())) +
                        " and shape " + tensor.shape().str() +
                        " must be one of that type and shape, C-ordered, of native byte order and "
                        "writable");
    read(tensor, is_held_by_bits(dtype) ? array.attr("view")(bits_name(dtype)) : nb::borrow(array));
}

Shape to_shape(nb::handle sizes) {
    std::vector<std::int64_t> dims;
    if (is_int(sizes)) {
        dims.push_back(to_size(sizes));
    } else if (PyUnicode_Check(sizes.ptr()) || PyBytes_Check(sizes.ptr()) ||
               !PySequence_Check(sizes.ptr())) {
        wrong_type("a shape", "an int or a sequence of ints", sizes);
    } else {
        for (nb::handle size : nb::borrow<nb::object>(sizes)) dims.push_back(to_size(size));
    }
    return Shape(dims);
}

nb::tuple to_tuple(const Shape& shape) {
    nb::list sizes;
    for (const std::int64_t size : shape.dims()) sizes.append(size);
    return nb::tuple(sizes);
}

}  // namespace dlprim::python
