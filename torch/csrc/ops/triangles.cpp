// SPDX-License-Identifier: MIT
// Coordinates of triangles of a matrix. The host makes them: they depend on no tensor.
#include "device/devices.hpp"
#include "ops/kernels.hpp"

#include <optional>

namespace dlprim_torch {
namespace {

using Type = std::optional<at::ScalarType>;
using Layout = std::optional<at::Layout>;
using Device = std::optional<c10::Device>;

at::Tensor moved(const at::Tensor& made, const Device& device) {
    return made.to(device.value_or(c10::Device(c10::DeviceType::PrivateUse1,
                                               static_cast<c10::DeviceIndex>(current_device()))));
}

at::TensorOptions on_host(Type dtype) {
    return at::TensorOptions(dtype.value_or(at::kLong)).device(at::kCPU);
}

at::Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset, Type dtype,
                        Layout, Device device, std::optional<bool>) {
    return moved(at::tril_indices(rows, columns, offset, on_host(dtype)), device);
}

at::Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset, Type dtype,
                        Layout, Device device, std::optional<bool>) {
    return moved(at::triu_indices(rows, columns, offset, on_host(dtype)), device);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("tril_indices", tril_indices);
    m.impl("triu_indices", triu_indices);
}

}  // namespace
}  // namespace dlprim_torch
