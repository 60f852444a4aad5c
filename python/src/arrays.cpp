// SPDX-License-Identifier: MIT
// Values between numpy and tensors, without a copy on the way that can be spared.
#include "bind.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <vector>

namespace dlprim::python {
namespace {

nb::module_ numpy() {
    return nb::module_::import_("numpy");
}

bool is_array(nb::handle values) {
    return nb::hasattr(values, "dtype");
}

/// numpy's dtype for an element type, in which bfloat16 is a bit pattern.
nb::object storage_dtype(DType dtype) {
    return numpy().attr("dtype")(dtype == DType::bf16 ? "uint16" : dtype_name(dtype));
}

/// ml_dtypes.bfloat16 where that is installed, else None.
nb::object bfloat16_type() {
    try {
        return nb::module_::import_("ml_dtypes").attr("bfloat16");
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_ImportError)) throw;
        return nb::none();
    }
}

/// What numpy makes of the values. Python's own floats and ints are float32 and int64 here, as
/// networks want them, whatever numpy would take.
nb::object as_array(nb::handle values) {
    nb::object array = numpy().attr("asarray")(values);
    if (is_array(values)) return array;
    if (nb::cast<std::string>(array.attr("dtype").attr("name")) != "float64") return array;
    return array.attr("astype")("float32");
}

/// The memory of a C-ordered array; the array keeps it.
const void* memory_of(nb::handle array) {
    return nb::cast<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>(array).data();
}

Shape shape_of(nb::handle array) {
    return to_shape(array.attr("shape"));
}

void write(Tensor& tensor, const HostArray& host) {
    if (host.shape != tensor.shape())
        throw Error(ErrorKind::invalid_argument,
                    "a tensor of shape " + tensor.shape().str() +
                        " cannot take values of shape " + host.shape.str());
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

}  // namespace

std::string kind_of(nb::handle object) {
    const std::string module = nb::cast<std::string>(object.type().attr("__module__"));
    const std::string name = nb::cast<std::string>(object.type().attr("__qualname__"));
    return "a " + (module == "builtins" ? "" : module + ".") + name;
}

HostArray to_host_array(nb::handle values) {
    HostArray host;
    nb::object array = as_array(values);
    host.dtype = to_dtype(array.attr("dtype"));
    host.shape = shape_of(array);
    nb::object native = array.attr("dtype").attr("newbyteorder")("=");
    array = numpy().attr("asarray")(array, nb::arg("dtype") = native, nb::arg("order") = "C");
    if (host.dtype == DType::bf16) array = array.attr("view")("uint16");
    host.data = host.shape.empty() ? nullptr : memory_of(array);
    host.array = std::move(array);
    return host;
}

void copy_from(Tensor& tensor, nb::handle values) {
    write(tensor, to_host_array(values));
}

Tensor to_tensor(const Context& context, nb::handle values, std::optional<DType> dtype) {
    const HostArray host = to_host_array(values);
    Tensor tensor;
    {
        const ContextLock lock(context);
        tensor = Tensor(context, host.shape, dtype.value_or(host.dtype));
    }
    write(tensor, host);
    return tensor;
}

nb::object to_numpy(const Tensor& tensor) {
    nb::object array = numpy().attr("empty")(to_tuple(tensor.shape()), storage_dtype(tensor.dtype()));
    if (!tensor.shape().empty()) {
        // Made a line ago and held by nobody else: writing to it is in order.
        void* const memory = const_cast<void*>(memory_of(array));
        const ContextLock lock(tensor.context());
        tensor.copy_to_host(memory, tensor.bytes());
    }
    if (tensor.dtype() != DType::bf16) return array;
    nb::object bfloat16 = bfloat16_type();
    return bfloat16.is_none() ? array : array.attr("view")(bfloat16);
}

Shape to_shape(nb::handle sizes) {
    const auto size_of_dimension = [&](nb::handle size) {
        const Py_ssize_t value = PyNumber_AsSsize_t(size.ptr(), PyExc_OverflowError);
        if (value == -1 && PyErr_Occurred()) throw nb::python_error();
        return static_cast<std::int64_t>(value);
    };
    std::vector<std::int64_t> dims;
    if (PyIndex_Check(sizes.ptr())) {
        dims.push_back(size_of_dimension(sizes));
        return Shape(dims);
    }
    if (PyUnicode_Check(sizes.ptr()) || !PySequence_Check(sizes.ptr()))
        throw nb::type_error(
            ("a shape is an int or a sequence of ints, not " + kind_of(sizes)).c_str());
    for (nb::handle size : nb::borrow<nb::object>(sizes)) {
        if (!PyIndex_Check(size.ptr()))
            throw nb::type_error(("a size in a shape is an int, not " + kind_of(size)).c_str());
        dims.push_back(size_of_dimension(size));
    }
    return Shape(dims);
}

nb::tuple to_tuple(const Shape& shape) {
    nb::list sizes;
    for (const std::int64_t size : shape.dims()) sizes.append(size);
    return nb::tuple(sizes);
}

}  // namespace dlprim::python
