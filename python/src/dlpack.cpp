// SPDX-License-Identifier: MIT
// Shares memory with other libraries: DLPack in both directions, and numpy's __array__.
//
// Tensors of the host are shared. Memory of OpenCL devices has no address, so it is copied to the
// host, and consumers always see kDLCPU.
#include "tensor.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

namespace dlprim::python {
namespace {

using Array = nb::ndarray<>;
using TypeCode = nb::dlpack::dtype_code;

constexpr const char* no_address =
    " lies on an OpenCL device, whose memory cannot be shared; allow a copy, as tensor.numpy() "
    "makes";

nb::dlpack::dtype to_dlpack(DType dtype) {
    if (is_narrow(dtype))
        throw nb::type_error((std::string("tensors of ") + dtype_name(dtype) +
                              " cannot be shared by DLPack; tensor.astype(...) converts")
                                 .c_str());
    const TypeCode code = dtype == DType::boolean    ? TypeCode::Bool
                          : dtype == DType::bf16     ? TypeCode::Bfloat
                          : is_float(dtype)          ? TypeCode::Float
                          : name_of(dtype)[0] == 'u' ? TypeCode::UInt
                                                     : TypeCode::Int;
    return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(size_of(dtype) * 8), 1};
}

DType from_dlpack_type(nb::dlpack::dtype dtype) {
    for (int i = 0; i <= static_cast<int>(DType::u64); ++i)
        if (to_dlpack(static_cast<DType>(i)) == dtype) return static_cast<DType>(i);
    throw nb::type_error(("tensors have no element type like DLPack's of code " +
                          std::to_string(dtype.code) + " and " + std::to_string(dtype.bits) +
                          " bits")
                             .c_str());
}

bool on_host(const Tensor& tensor) {
    return tensor.context().info().kind == DeviceKind::host;
}

// Out.

/// The owner of an exported array's memory: the tensor, or separate memory.
nb::capsule keeper(Tensor tensor) {
    return nb::capsule(new Tensor(std::move(tensor)),
                       [](void* kept) noexcept { delete static_cast<Tensor*>(kept); });
}

nb::object exported(const Tensor& tensor, void* data, const std::vector<std::int64_t>& strides,
                    const nb::capsule& owner) {
    std::vector<std::size_t> shape;
    for (const std::int64_t size : tensor.shape().dims())
        shape.push_back(static_cast<std::size_t>(size));
    return nb::ndarray<nb::array_api>(data, shape.size(), shape.data(), owner, strides.data(),
                                      to_dlpack(tensor.dtype()), nb::device::cpu::value)
        .cast();
}

/// A shared view keeps its gaps.
nb::object shared(const Tensor& tensor) {
    void* data = nullptr;
    {
        const ContextLock lock(tensor.context());
        data = tensor.host_data();
    }
    return exported(tensor, data, tensor.strides(), keeper(tensor));
}

nb::object copied_out(const Tensor& tensor) {
    // Aligned like the host's own tensors.
    constexpr std::size_t alignment = 64;
    const std::size_t bytes = (tensor.bytes() + alignment - 1) / alignment * alignment;
    void* const data = std::aligned_alloc(alignment, std::max(bytes, alignment));
    if (data == nullptr) throw std::bad_alloc();
    const nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
    {
        const ContextLock lock(tensor.context());
        tensor.to_contiguous().copy_to_host(data, tensor.bytes());
    }
    return exported(tensor, data, tensor.shape().strides(), owner);
}

nb::object dlpack(const Tensor& tensor, nb::handle stream, nb::handle max_version,
                  nb::handle device, nb::handle copy) {
    if (!stream.is_none())
        throw nb::buffer_error("a tensor that is exported lies on the host, which has no streams");
    if (!device.is_none() && !device.equal(nb::make_tuple(1, 0)))
        throw nb::buffer_error("a tensor is exported to the host, device (1, 0), alone");
    const bool share = on_host(tensor) && !copy.is(Py_True);
    if (!share && copy.is(Py_False))
        throw nb::buffer_error((std::string("the tensor") + no_address).c_str());
    const nb::object array = share ? shared(tensor) : copied_out(tensor);
    return array.attr("__dlpack__")(nb::arg("max_version") = max_version);
}

nb::object array_of(const Tensor& tensor, nb::handle dtype, nb::handle copy) {
    const bool share = on_host(tensor) && !copy.is(Py_True);
    if (!share && copy.is(Py_False))
        throw nb::value_error((std::string("the tensor") + no_address).c_str());
    nb::module_ numpy = nb::module_::import_("numpy");
    nb::object array = share && !is_held_by_bits(tensor.dtype())
                           ? numpy.attr("asarray")(shared(tensor))
                           : to_numpy(tensor);
    if (dtype.is_none()) return array;
    if (copy.is(Py_False) && !numpy.attr("dtype")(dtype).equal(array.attr("dtype")))
        throw nb::value_error(
            "a tensor of another element type cannot be shared as an array; allow "
            "a copy");
    return array.attr("astype")(dtype, nb::arg("copy") = false);
}

// In.

/// Keeps an array until the last tensor on it is destroyed, in any thread.
std::shared_ptr<void> keep(Array array) {
    return {new Array(std::move(array)), [](void* kept) {
                if (!nb::is_alive()) return;  // the interpreter has ended and freed it
                const GilAcquire lock;
                delete static_cast<Array*>(kept);
            }};
}

Shape shape_of(const nb::ndarray<nb::ro>& array) {
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < array.ndim(); ++i)
        sizes.push_back(static_cast<std::int64_t>(array.shape(i)));
    return Shape(sizes);
}

nb::ndarray<nb::ro> imported(nb::handle object) {
    nb::ndarray<nb::ro> array;
    if (!nb::try_cast(object, array))
        wrong_type("what from_dlpack takes", "an array that offers __dlpack__", object);
    if (array.device_type() != nb::device::cpu::value)
        throw nb::buffer_error(
            "the array lies on another library's device; copy it to the host first");
    return array;
}

/// A tensor that shares an array's memory; undefined if that is impossible.
Tensor wrapped(const Context& context, nb::handle object, const nb::ndarray<nb::ro>& described) {
    Array array;
    const DType dtype = from_dlpack_type(described.dtype());
    const auto address = reinterpret_cast<std::uintptr_t>(described.data());
    if (context.info().kind != DeviceKind::host || address % size_of(dtype) != 0) return {};
    if (!nb::try_cast(object, array)) return {};  // the array is read-only
    const Shape shape = shape_of(described);
    if (shape.empty()) return Tensor(context, shape, dtype);
    std::vector<std::int64_t> strides;
    std::int64_t last = 0;
    for (std::size_t i = 0; i < array.ndim(); ++i) {
        strides.push_back(array.shape(i) == 1 ? 0 : array.stride(i));
        if (strides.back() < 0) return {};
        last += strides.back() * (shape[static_cast<int>(i)] - 1);
    }
    void* const data = array.data();
    const ContextLock lock(context);
    return Tensor::wrap_host(context, data, Shape{last + 1}, dtype, keep(std::move(array)))
        .view(shape, strides);
}

Tensor from_dlpack(nb::handle where, nb::handle object, nb::handle copy) {
    const Context& context = to_context(where);
    const nb::ndarray<nb::ro> array = imported(object);
    if (!copy.is(Py_True)) {
        Tensor tensor = wrapped(context, object, array);
        if (tensor.defined()) return tensor;
    }
    if (copy.is(Py_False))
        throw nb::buffer_error(
            "the array's memory cannot be shared: that takes the host's context, and memory that "
            "may "
            "be written to, is aligned to its elements and does not run backwards; allow a copy");
    const HostArray host = from_dlpack_host(object);
    return to_tensor(context, host);
}

}  // namespace

HostArray from_dlpack_host(nb::handle object) {
    using Rows = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
    HostArray host;
    const nb::ndarray<nb::ro> described = imported(object);
    host.dtype = from_dlpack_type(described.dtype());
    host.shape = shape_of(described);
    Rows rows;
    if (!nb::try_cast(object, rows))
        throw nb::buffer_error("the array's memory does not lie row by row; copy it so first");
    host.data = rows.data();
    host.owner = nb::capsule(new Rows(std::move(rows)),
                             [](void* kept) noexcept { delete static_cast<Rows*>(kept); });
    return host;
}

void bind_dlpack(nb::module_& module, TensorClass& type) {
    type.def("__dlpack__", &dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
             nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
             nb::arg("copy") = nb::none(),
             nb::sig("def __dlpack__(self, *, stream: int | None = None, "
                     "max_version: tuple[int, int] | None = None, "
                     "dl_device: tuple[int, int] | None = None, copy: bool | None = None) "
                     "-> typing.Any"),
             R"(Offer the memory by DLPack, always as memory of the host (kDLCPU).

A tensor of the host's context is shared without a copy. One of an OpenCL device is copied to new host
memory, which waits for the device; with copy=False that is a BufferError.)")
        .def(
            "__dlpack_device__", [](const Tensor&) { return nb::make_tuple(1, 0); },
            nb::sig("def __dlpack_device__(self) -> tuple[int, int]"),
            "Return (1, 0), the host, where __dlpack__ puts what it offers.")
        .def("__array__", &array_of, nb::arg("dtype").none() = nb::none(),
             nb::arg("copy") = nb::none(),
             nb::sig("def __array__(self, dtype: numpy.typing.DTypeLike | None = None, "
                     "copy: bool | None = None) -> numpy.typing.NDArray[typing.Any]"),
             R"(Serve numpy.asarray(tensor).

A tensor of the host's context is shared unless copy is True or dtype differs; one of an OpenCL device
is copied, and copy=False is a ValueError for it. tensor.numpy() copies always.)");
    // Makes numpy leave `array + tensor` to the tensor.
    type.attr("__array_ufunc__") = nb::none();
    module.def("from_dlpack", &from_dlpack, nb::arg("context").none(), nb::arg("array").none(),
               nb::kw_only(), nb::arg("copy") = nb::none(),
               nb::sig("def from_dlpack(context: Context, array: typing.Any, *, "
                       "copy: bool | None = None) -> Tensor"),
               R"(Make a tensor of an array that offers DLPack, such as PyTorch's and numpy's.

On the host's context the array's memory is shared, and kept as long as a tensor is on it; on OpenCL
devices it is copied. copy=True copies always, copy=False never: BufferError says why that cannot be.)");
}

}  // namespace dlprim::python
