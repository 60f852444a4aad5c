// SPDX-License-Identifier: MIT
// See checks.hpp.
#include "ops/checks.hpp"

#include "memory/view.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/op_registration/adaption.h>

#include <algorithm>
#include <utility>

namespace dlprim_torch {
namespace {

/// Whether each dimension's stride steps over all that those of smaller strides reach, which keeps
/// elements apart.
bool is_apart(const at::Tensor& tensor) {
    c10::SmallVector<std::pair<std::int64_t, std::int64_t>, 8> steps;  // strides and sizes
    for (std::int64_t d = 0; d < tensor.dim(); ++d)
        if (tensor.size(d) > 1) steps.emplace_back(tensor.stride(d), tensor.size(d));
    std::sort(steps.begin(), steps.end());
    std::int64_t reach = 0;
    for (const auto& [stride, size] : steps) {
        if (stride <= reach) return false;
        reach += stride * (size - 1);
    }
    return true;
}

[[noreturn]] void refuse(c10::Device common, const at::Tensor& tensor, const std::string& method,
                         const std::string& argument) {
    c10::impl::common_device_check_failure(common, tensor, method.c_str(), argument.c_str());
    TORCH_INTERNAL_ASSERT(false, "devices that differ were let through");
}

}  // namespace

c10::OperatorHandle operator_of(std::string_view overload) {
    const std::size_t dot = std::min(overload.find('.'), overload.size());
    const std::string_view rest = overload.substr(std::min(dot + 1, overload.size()));
    return c10::Dispatcher::singleton().findSchemaOrThrow(
        ("aten::" + std::string(overload.substr(0, dot))).c_str(), std::string(rest).c_str());
}

void check_written(const at::Tensor& written) {
    const at::MemOverlap found = at::has_internal_overlap(written);
    TORCH_CHECK(
        found == at::MemOverlap::No || (found == at::MemOverlap::TooHard && is_apart(written)),
        "unsupported operation: more than one element of the written-to tensor refers to a "
        "single memory location. Please clone() the tensor before performing the "
        "operation.");
}

void check_overlap(const at::Tensor& written, const at::Tensor& read, Overlap allowed) {
    if (allowed == Overlap::same) at::assert_no_partial_overlap(written, read);
    if (allowed == Overlap::none) at::assert_no_overlap(written, read);
}

bool is_anywhere(const at::Tensor& tensor) {
    return !tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0);
}

void check_devices(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    const auto& arguments = op.schema().arguments();
    std::optional<c10::Device> common;
    const auto see = [&](const at::Tensor& tensor, const std::string& argument) {
        if (is_anywhere(tensor)) return;
        if (common && *common != tensor.device())
            refuse(*common, tensor, c10::toString(op.operator_name()), argument);
        common = tensor.device();
    };
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const c10::IValue& value = stack[stack.size() - arguments.size() + i];
        if (value.isTensor()) see(value.toTensor(), arguments[i].name());
        if (!value.isTensorList()) continue;
        for (const at::Tensor& tensor : value.toTensorVector()) see(tensor, arguments[i].name());
    }
}

void Operands::add(const c10::List<std::optional<at::Tensor>>& indices) {
    ++arguments_;
    if (allowed_ != Overlap::none) return;
    for (const std::optional<at::Tensor>& index : indices)
        if (index && index->defined()) indices_.push_back(*index);
}

void Operands::check_memory() const {
    for (const at::Tensor* const written : written_) {
        if (!written->defined()) continue;
        if (repeats_ == Repeats::refused ||
            at::has_internal_overlap(*written) != at::MemOverlap::Yes)
            check_written(*written);
        for (const at::Tensor* const read : read_)
            if (read->defined()) check_overlap(*written, *read, allowed_);
        for (const at::Tensor& index : indices_) check_overlap(*written, index, allowed_);
    }
}

bool Operands::are_served(Takes takes) const {
    const auto fits = [&](const at::Tensor* tensor) {
        return !tensor->defined() || (tensor == first_ ? takes(*tensor) : serves(*tensor));
    };
    return std::all_of(read_.begin(), read_.end(), fits) &&
           std::all_of(written_.begin(), written_.end(), fits);
}

void Operands::refuse_device(const at::Tensor& tensor, std::size_t argument) const {
    const c10::OperatorHandle op = operator_of(name_);
    const auto& arguments = op.schema().arguments();
    refuse(*device_, tensor, name_, argument < arguments.size() ? arguments[argument].name() : "?");
}

}  // namespace dlprim_torch
