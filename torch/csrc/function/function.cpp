// SPDX-License-Identifier: MIT
// See function.hpp.
#include "function/function.hpp"

#include "device/devices.hpp"
#include "device/errors.hpp"
#include "device/generator.hpp"
#include "memory/view.hpp"

#include <c10/core/DeviceGuard.h>

#include <array>
#include <optional>

namespace dlprim_torch {
namespace {

/// The seed and the step of the next call that draws random numbers, [1] each, for `count` calls
/// with steps that count up.
std::array<at::Tensor, 2> draw_keys(c10::Device device, int count) {
    const auto [seed, step] = draw(std::nullopt, device.index());
    for (int i = 1; i < count; ++i) draw(std::nullopt, device.index());
    const auto key = [&](std::uint64_t value) {
        return at::full({1}, static_cast<std::int64_t>(value),
                        at::TensorOptions(at::kLong).device(device));
    };
    return {key(seed), key(step)};
}

/// A function's result as the graph has it: statistics of norms may have another type, losses one
/// dimension more.
at::Tensor as_traced(const dp::Tensor& result, const at::Tensor& traced, c10::Device device) {
    at::Tensor made = new_tensor(result, device);
    if (made.scalar_type() != traced.scalar_type()) made = made.to(traced.scalar_type());
    if (made.sizes() != traced.sizes()) made = made.view(traced.sizes());
    if (traced.is_contiguous()) return made;
    return at::empty_strided(traced.sizes(), traced.strides(), made.options()).copy_(made);
}

}  // namespace

Function::Function(int device, const std::string& json, const dp::FunctionOptions& options)
    : device_(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device)),
      function_(translated([&] { return dp::Function(context(device), json, options); })) {}

std::vector<at::Tensor> Function::operator()(const std::vector<at::Tensor>& inputs) const {
    const c10::DeviceGuard guard(device_);
    std::vector<dp::Tensor> views;
    views.reserve(frame_.places.size() + 2);
    for (const std::size_t place : frame_.places) {
        const at::Tensor& input = inputs.at(place);
        views.push_back(view_of(input.device().is_cpu() ? input.to(device_) : input));
    }
    if (frame_.draws > 0)
        for (const at::Tensor& key : draw_keys(device_, frame_.draws))
            views.push_back(view_of(key));
    std::vector<at::Tensor> results(frame_.results.size());
    std::vector<dp::Tensor> out(frame_.writes.empty() ? 0 : results.size());
    for (const auto& [result, place] : frame_.writes)
        out.at(result) = view_of(results.at(result) = inputs.at(place));
    const std::vector<dp::Tensor> made = translated([&] { return function_(views, 1, 0, out); });
    for (std::size_t i = 0; i < made.size(); ++i)
        if (!results[i].defined()) results[i] = as_traced(made[i], frame_.results[i], device_);
    return results;
}

}  // namespace dlprim_torch
