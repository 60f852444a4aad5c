// SPDX-License-Identifier: MIT
// Tensor: memory on a device, from and to numpy.
#include "tensor.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <array>
#include <cstring>

namespace dlprim::python {
namespace {

std::optional<DType> optional_dtype(nb::handle dtype) {
    if (dtype.is_none()) return std::nullopt;
    return to_dtype(dtype);
}

void make(Tensor* self, nb::handle context, nb::handle values, nb::handle dtype) {
    new (self) Tensor(to_tensor(to_context(context), values, optional_dtype(dtype)));
}

Tensor empty(nb::handle context, nb::handle shape, nb::handle dtype) {
    const Context& where = to_context(context);
    const Shape sizes = to_shape(shape);
    const DType type = to_dtype(dtype);
    const ContextLock lock(where);
    return Tensor(where, sizes, type);
}

Tensor full(nb::handle context, nb::handle shape, nb::handle value, nb::handle dtype) {
    Tensor tensor = empty(context, shape, dtype);
    fill(tensor, value);
    return tensor;
}

Tensor zeros(nb::handle context, nb::handle shape, nb::handle dtype) {
    return full(context, shape, nb::int_(0), dtype);
}

/// The only element, as an int, a bool or a float.
nb::object item(const Tensor& tensor) {
    if (tensor.shape().numel() != 1)
        throw Error(ErrorKind::invalid_argument,
                    "only a tensor of one element is a number, not one of shape " +
                        tensor.shape().str() + "; tensor.numpy() gives all of them");
    std::array<std::byte, 8> bytes{};
    {
        const ContextLock lock(tensor.context());
        tensor.copy_to_host(bytes.data(), tensor.bytes());
    }
    if (tensor.dtype() == DType::boolean) return nb::bool_(bytes[0] != std::byte{0});
    if (tensor.dtype() == DType::u64) {
        std::uint64_t value = 0;
        convert(bytes.data(), tensor.dtype(), &value, DType::u64, 1);
        return nb::int_(value);
    }
    if (is_float(tensor.dtype()) || is_narrow(tensor.dtype())) {
        double value = 0;
        convert(bytes.data(), tensor.dtype(), &value, DType::f64, 1);
        return nb::float_(value);
    }
    std::int64_t value = 0;
    convert(bytes.data(), tensor.dtype(), &value, DType::i64, 1);
    return nb::int_(value);
}

nb::object list_of(const Tensor& tensor) {
    if (tensor.shape().rank() == 0) return item(tensor);
    return to_numpy(is_held_by_bits(tensor.dtype()) ? cast_to(tensor, DType::f32) : tensor)
        .attr("tolist")();
}

nb::tuple strides(const Tensor& tensor) {
    nb::list list;
    for (const std::int64_t stride : tensor.strides()) list.append(stride);
    return nb::tuple(list);
}

Tensor gapless(const Tensor& tensor) {
    const ContextLock lock(tensor.context());
    return tensor.to_contiguous();
}

nb::object tensor_text(nb::handle self) {
    return nb::module_::import_("dlprim._show").attr("show")(self);
}

nb::object formatted(nb::handle self, nb::handle spec) {
    const auto& tensor = nb::cast<const Tensor&>(self);
    const bool number = nb::len(spec) > 0 && tensor.shape().numel() == 1;
    return nb::module_::import_("builtins")
        .attr("format")(number ? item(tensor) : nb::object(nb::str(self)), spec);
}

[[noreturn]] void refuse_tensor_pickling(const Tensor&) {
    throw nb::type_error(
        "a Tensor cannot be pickled, since it lies on an open device; pickle tensor.numpy(), and "
        "make dlprim.Tensor(context, array) of it where it is needed");
}

void bind_making(TensorClass& type) {
    type.def(
            "__init__", &make, nb::arg("context").none(), nb::arg("values").none(),
            nb::arg("dtype").none() = nb::none(),
            nb::sig("def __init__(self, context: Context, values: numpy.typing.ArrayLike | Tensor, "
                    "dtype: numpy.typing.DTypeLike | None = None) -> None"),
            R"(Copy values to new memory on a context's device.

values: a numpy array, a list, a number, or what numpy.asarray takes; any order, strides and byte
order. The element type is theirs, except that Python's own floats become float32.
dtype: another element type ("float32", numpy.int8, ...) to convert to. The array of uint16 that a
bfloat16 tensor takes holds its bits.
Raises TypeError for elements that no dtype holds (objects, complex numbers, uint64), and
OutOfMemoryError with what is needed and what the device has.)")
        .def_static(
            "empty", &empty, nb::arg("context").none(), nb::arg("shape").none(),
            nb::arg("dtype").none() = "float32",
            nb::sig("def empty(context: Context, shape: int | collections.abc.Sequence[int],"
                    " dtype: numpy.typing.DTypeLike = 'float32') -> Tensor"),
            "Return new memory with undefined contents.")
        .def_static(
            "zeros", &zeros, nb::arg("context").none(), nb::arg("shape").none(),
            nb::arg("dtype").none() = "float32",
            nb::sig("def zeros(context: Context, shape: int | collections.abc.Sequence[int],"
                    " dtype: numpy.typing.DTypeLike = 'float32') -> Tensor"),
            "Return new memory filled with zeros.")
        .def_static(
            "full", &full, nb::arg("context").none(), nb::arg("shape").none(),
            nb::arg("value").none(), nb::arg("dtype").none() = "float32",
            nb::sig("def full(context: Context, shape: int | collections.abc.Sequence[int], "
                    "value: float, dtype: numpy.typing.DTypeLike = 'float32') -> Tensor"),
            "Return new memory filled with a number.");
}

void bind_facts(TensorClass& type) {
    type.def_prop_ro(
            "shape", [](const Tensor& self) { return to_tuple(self.shape()); },
            nb::sig("def shape(self) -> tuple[int, ...]"), "The sizes of the dimensions.")
        .def_prop_ro("strides", &strides, nb::sig("def strides(self) -> tuple[int, ...]"),
                     "The distances between neighbours in each dimension, in elements.")
        .def_prop_ro(
            "dtype", [](const Tensor& self) { return dtype_name(self.dtype()); },
            nb::sig("def dtype(self) -> str"), R"(The element type's name: "float32".)")
        .def_prop_ro(
            "ndim", [](const Tensor& self) { return self.shape().rank(); },
            "The number of dimensions.")
        .def_prop_ro(
            "size", [](const Tensor& self) { return self.shape().numel(); },
            "The number of elements.")
        .def_prop_ro("nbytes", &Tensor::bytes, "The elements' size in bytes.")
        .def_prop_ro(
            "contiguous", [](const Tensor& self) { return self.contiguous(); },
            "Whether the elements are stored row by row without gaps.")
        .def_prop_ro(
            "context", [](const Tensor& self) { return self.context(); },
            nb::sig("def context(self) -> Context"),
            "The context of the device that has the memory.");
}

void bind_values(TensorClass& type) {
    type.def("tolist", &list_of, nb::sig("def tolist(self) -> typing.Any"),
             "Return nested lists of Python numbers; waits for the device.")
        .def("item", &item, nb::sig("def item(self) -> typing.Any"),
             "Return the only element as a Python number; waits for the device.")
        .def("copy_from", &copy_from, nb::arg("values").none(),
             nb::sig("def copy_from(self, values: numpy.typing.ArrayLike | Tensor) -> None"),
             "Overwrite all elements with values of the same shape, converted to dtype; waits for "
             "the device.")
        .def("copy_to", &copy_to, nb::arg("array").none(),
             nb::sig("def copy_to(self, array: numpy.typing.NDArray[typing.Any]) -> None"),
             "Copy the values into a numpy array of the same shape and dtype, C-ordered and of "
             "native "
             "byte order; waits for the device.")
        .def("fill", &fill, nb::arg("value").none(),
             nb::sig("def fill(self, value: float) -> None"),
             "Overwrite all elements with a number.")
        .def("copy", &copied, "Return a copy in new memory, without gaps.")
        .def("to_contiguous", &gapless,
             "Return this tensor if it has no gaps, else a copy without gaps.")
        .def(
            "astype",
            [](const Tensor& self, nb::handle dtype) { return cast_to(self, to_dtype(dtype)); },
            nb::arg("dtype").none(),
            nb::sig("def astype(self, dtype: numpy.typing.DTypeLike) -> Tensor"),
            "Return a copy with elements of another type. When floats become integers, NaN becomes "
            "0, and numbers out of range become the nearest number in range.");
}

void bind_conversions(TensorClass& type) {
    type.def("__float__", [](const Tensor& self) { return nb::float_(item(self)); })
        .def("__int__", [](const Tensor& self) { return nb::int_(item(self)); })
        .def("__bool__", [](const Tensor& self) { return nb::cast<bool>(nb::bool_(item(self))); })
        .def("__index__",
             [](const Tensor& self) {
                 if (is_float(self.dtype())) throw nb::type_error("a tensor of floats is no index");
                 return nb::int_(item(self));
             })
        .def("__copy__", &copied)
        .def(
            "__deepcopy__", [](const Tensor& self, nb::handle) { return copied(self); },
            nb::arg("memo"))
        .def("__reduce__", &refuse_tensor_pickling,
             nb::sig("def __reduce__(self) -> typing.NoReturn"))
        .def("__format__", &formatted, nb::arg("spec"),
             nb::sig("def __format__(self, spec: str, /) -> str"))
        .def("__repr__", &tensor_text, nb::sig("def __repr__(self) -> str"));
}

}  // namespace

void bind_tensor(nb::module_& module) {
    TensorClass type(module, "Tensor", nb::is_weak_referenceable(),
                     R"(A strided array on a device.

Views share memory, which lives as long as a tensor on it, whether or not its Context object does.
Operators broadcast as numpy's do, take numbers and numpy arrays beside tensors, and do not wait for
the device; whatever brings values to the host does, and so does an operator on a view with gaps,
which is copied through the host first (transposed views are not).)");
    bind_making(type);
    bind_facts(type);
    bind_values(type);
    bind_conversions(type);
    bind_views(type);
    bind_arithmetic(type);
    bind_dlpack(module, type);
    // Defined last: in the module's stub, later annotations would take numpy.typing for an
    // attribute of this method.
    type.def("numpy", &to_numpy, nb::sig("def numpy(self) -> numpy.typing.NDArray[typing.Any]"),
             R"(Return a new numpy array with a copy of the values; waits for the device.

bfloat16 becomes ml_dtypes.bfloat16 where that package is installed, else its bits as uint16.)");
}

}  // namespace dlprim::python
