// SPDX-License-Identifier: MIT
// See function.hpp.
#include "function/function.hpp"

#include "device/devices.hpp"
#include "device/errors.hpp"
#include "memory/view.hpp"

#include <c10/core/DeviceGuard.h>

namespace dlprim_torch {

Function::Function(int device, const std::string& json, const dp::FunctionOptions& options)
    : device_(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)),
      function_(translated([&] { return dp::Function(context(device), json, options); })) {}

std::vector<at::Tensor> Function::operator()(const std::vector<at::Tensor>& inputs) const {
    const c10::DeviceGuard guard(device_);
    std::vector<dp::Tensor> views;
    views.reserve(inputs.size());
    for (const at::Tensor& input : inputs)
        views.push_back(view_of(input.device().is_cpu() ? input.to(device_) : input));
    std::vector<at::Tensor> made;
    for (const dp::Tensor& result : translated([&] { return function_(views); }))
        made.push_back(new_tensor(result, device_));
    return made;
}

}  // namespace dlprim_torch
