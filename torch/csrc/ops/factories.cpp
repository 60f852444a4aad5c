// SPDX-License-Identifier: MIT
// Tensors without arithmetic: making, viewing, resizing and filling them.
#include "device/devices.hpp"
#include "device/errors.hpp"
#include "memory/convert.hpp"
#include "memory/view.hpp"
#include "ops/kernels.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <c10/core/DeviceGuard.h>

namespace dlprim_torch {
namespace {

constexpr c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

c10::Device device_or_current(std::optional<c10::Device> device) {
    const auto type = c10::DeviceType::PrivateUse1;
    if (device && device->has_index()) return *device;
    return {type, static_cast<c10::DeviceIndex>(current_device())};
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
    TORCH_CHECK(!pin.value_or(false), "Only tensors of the CPU can be pinned.");
    TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(at::kStrided) == at::kStrided,
                                "The device \"ocl\" has strided tensors only.");
    const c10::DeviceGuard guard(device_or_current(device));
    return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size),
                                     c10::GetAllocator(c10::DeviceType::PrivateUse1), keys,
                                     at::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<c10::Device> device, std::optional<bool> pin) {
    TORCH_CHECK(!pin.value_or(false), "Only tensors of the CPU can be pinned.");
    const c10::DeviceGuard guard(device_or_current(device));
    return at::detail::empty_strided_generic(
        C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
        c10::GetAllocator(c10::DeviceType::PrivateUse1), keys, at::dtype_or_default(dtype));
}

const at::Tensor& resize_(const at::Tensor& self, c10::SymIntArrayRef symbolic,
                          std::optional<at::MemoryFormat> format) {
    const auto size = C10_AS_INTARRAYREF_SLOW(symbolic);
    const std::size_t before = self.storage().nbytes();
    auto* const impl = self.unsafeGetTensorImpl();
    if (self.sizes() != size) {
        impl->generic_set_sizes_contiguous(size);
        const auto needed = static_cast<std::size_t>(at::detail::computeStorageNbytesContiguous(
            size, self.element_size(), static_cast<std::size_t>(self.storage_offset())));
        if (self.numel() > 0 && needed > before) resize_storage(self.storage(), needed);
    }
    if (format && *format != at::MemoryFormat::Preserve) impl->empty_tensor_restride(*format);
    return self;
}

at::Tensor& set_source_storage_offset(at::Tensor& self, at::Storage source, c10::SymInt offset,
                                      c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
    const auto sizes = C10_AS_INTARRAYREF_SLOW(size), strides = C10_AS_INTARRAYREF_SLOW(stride);
    const auto begin = offset.expect_int();
    at::native::checkSetStorage(self, source, begin, sizes, strides);
    auto* const impl = self.unsafeGetTensorImpl();
    impl->set_storage_offset(begin);
    const std::optional<c10::IntArrayRef> given =
        strides.data() != nullptr ? std::optional<c10::IntArrayRef>(strides) : std::nullopt;
    if (given)
        impl->set_sizes_and_strides(sizes, *given);
    else
        impl->set_sizes_contiguous(sizes);
    const auto needed = static_cast<std::size_t>(at::detail::computeStorageNbytes(
        self.sizes(), self.strides(), self.element_size(), static_cast<std::size_t>(begin)));
    if (self.numel() > 0 && needed > self.storage().nbytes())
        resize_storage(self.storage(), needed);
    return self;
}

at::Tensor& set_source_storage(at::Tensor& self, at::Storage source) {
    const auto elements =
        static_cast<std::int64_t>(source.nbytes() / static_cast<std::size_t>(self.element_size()));
    return set_source_storage_offset(self, std::move(source), 0, c10::SymInt(elements), {});
}

at::Tensor& set_source_tensor(at::Tensor& self, const at::Tensor& source) {
    if (self.is_same(source)) return self;
    return set_source_storage_offset(self, source.storage(), source.storage_offset(),
                                     source.sym_sizes(), source.sym_strides());
}

at::Tensor& set_empty(at::Tensor& self) {
    const at::Tensor none = at::empty({0}, self.options());
    return set_source_storage_offset(self, none.storage(), 0, c10::SymInt(0), {});
}

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
    if (self.numel() == 0) return self;
    if (!has_dtype(self.scalar_type()) || self.is_neg()) {  // complex numbers come from the host
        self.copy_(at::full({}, value, self.options().device(at::kCPU)).expand_as(self));
        return self;
    }
    if (self.scalar_type() == at::kLong && value.isIntegral(false) &&
        std::abs(value.toLong()) > (std::int64_t{1} << 53)) {
        self.copy_(at::full({}, value, self.options().device(at::kCPU)).expand_as(self));
        return self;
    }
    fill(view_of(self), value.to<double>());
    return self;
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
    TORCH_CHECK(value.dim() == 0,
                "fill_ takes a value or a tensor without dimensions, not one with ", value.dim(),
                " dimensions.");
    if (value.is_cpu()) return fill_scalar(self, value.item());
    self.copy_(value.expand_as(self));
    return self;
}

at::Tensor& zero_(at::Tensor& self) {
    return fill_scalar(self, 0);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
    return self.cpu().item();
}

at::Tensor as_strided(const at::Tensor& self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
    std::optional<std::int64_t> begin;
    if (offset) begin = offset->expect_int();
    return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(size),
                                             C10_AS_INTARRAYREF_SLOW(stride), begin);
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef size) {
    return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor& self, c10::SymIntArrayRef size,
                         c10::SymIntArrayRef stride) {
    return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size),
                                      C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor unfold(const at::Tensor& self, std::int64_t dim, std::int64_t size, std::int64_t step) {
    return at::native::unfold(self, dim, size, step);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("empty.memory_format", empty);
    m.impl("empty_strided", empty_strided);
    m.impl_unchecked("resize_", resize_);
    m.impl_unchecked("set_.source_Storage_storage_offset", set_source_storage_offset);
    m.impl_unchecked("set_.source_Storage", set_source_storage);
    m.impl_unchecked("set_.source_Tensor", set_source_tensor);
    m.impl_unchecked("set_", set_empty);
    m.impl_unchecked("fill_.Scalar", fill_scalar);
    m.impl_unchecked("fill_.Tensor", fill_tensor);
    m.impl_unchecked("zero_", zero_);
    m.impl("_local_scalar_dense", local_scalar_dense);
    m.impl("as_strided", as_strided);
    m.impl("view", view);
    m.impl("_reshape_alias", reshape_alias);
    m.impl("unfold", unfold);
}

}  // namespace
}  // namespace dlprim_torch
