// SPDX-License-Identifier: MIT
// See fallback.hpp.
#include "fallback/fallback.hpp"

#include <ATen/native/CPUFallback.h>

#include <cstdlib>
#include <mutex>
#include <sstream>

namespace dlprim_torch {
namespace {

struct State {
    std::mutex mutex;
    std::map<std::string, std::int64_t> counts;
    std::string mode =
        std::getenv("DLPRIM_TORCH_FALLBACK") == nullptr ? "" : std::getenv("DLPRIM_TORCH_FALLBACK");
};

State& state() {
    static auto* const own = new State;
    return *own;
}

std::string described(const at::Tensor& tensor) {
    if (!tensor.defined()) return "None";
    std::ostringstream text;
    text << tensor.scalar_type() << tensor.sizes();
    return text.str();
}

std::string described(const c10::IValue& value) {
    if (value.isTensor()) return described(value.toTensor());
    if (value.isTensorList()) {
        std::string text = "[";
        for (const at::Tensor& tensor : value.toTensorVector())
            text += (text.size() > 1 ? ", " : "") + described(tensor);
        return text + "]";
    }
    std::ostringstream text;
    text << value;
    return text.str();
}

std::string described(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    const auto& arguments = op.schema().arguments();
    std::string text;
    for (std::size_t i = 0; i < arguments.size(); ++i)
        text += (i == 0 ? "" : ", ") + arguments[i].name() + "=" +
                described(stack[stack.size() - arguments.size() + i]);
    return text;
}

/// Counts the call, or throws where nothing may run on the CPU.
void count(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    const std::string name = c10::toString(op.operator_name());
    bool raises = false;
    {
        const std::lock_guard lock(state().mutex);
        raises = state().mode == "error";
        if (!raises) ++state().counts[name];
    }
    TORCH_CHECK_NOT_IMPLEMENTED(
        !raises, "The device \"ocl\" has no kernel for ", name, "(", described(op, stack),
        "), and DLPRIM_TORCH_FALLBACK=error keeps it from running on the CPU.");
}

/// PyTorch's own message about an operator that the CPU lacks lists all devices that have it.
void check_has_cpu_kernel(const c10::OperatorHandle& op) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU),
        "The device \"ocl\" has no kernel for ", c10::toString(op.operator_name()),
        ", and neither has the CPU, which computes what the device cannot.");
}

/// The CPU writes to copies, which show neither where elements are the same memory nor devices.
void check(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    check_devices(op, stack);
    const auto& arguments = op.schema().arguments();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const c10::IValue& value = stack[stack.size() - arguments.size() + i];
        const auto* const alias = arguments[i].alias_info();
        if (alias == nullptr || !alias->isWrite()) continue;
        if (value.isTensor() && value.toTensor().defined()) check_written(value.toTensor());
        if (!value.isTensorList()) continue;
        for (const at::Tensor& tensor : value.toTensorVector()) check_written(tensor);
    }
}

c10::IValue on_host(const c10::IValue& value) {
    if (value.isTensor() && value.toTensor().defined()) return value.toTensor().cpu();
    if (!value.isOptionalTensorList()) return value;
    c10::List<std::optional<at::Tensor>> moved;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList())
        moved.push_back(tensor && tensor->defined() ? std::optional(tensor->cpu()) : tensor);
    return moved;
}

/// One element of those that are the same memory.
at::Tensor without_repeats(at::Tensor tensor) {
    for (std::int64_t d = 0; d < tensor.dim(); ++d)
        if (tensor.stride(d) == 0 && tensor.size(d) > 1) tensor = tensor.narrow(d, 0, 1);
    return tensor;
}

void boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    run_on_cpu(op, stack);
}

/// PyTorch's own message about a tensor kind that a device lacks lists all devices that have it.
void refuse(const c10::OperatorHandle& op, torch::jit::Stack*) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, op.operator_name().name,
        ": the device \"ocl\" has no sparse tensors, so a layer such as Embedding needs "
        "sparse=False, and a sparse tensor .to_dense() before it is moved to the device.");
}

// Every operator of every namespace.
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed>());
}

TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse>());
}

TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFromBoxedFunction<&refuse>());
}

}  // namespace

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    check_has_cpu_kernel(op);
    check(op, *stack);
    count(op, *stack);
    at::native::cpu_fallback(op, stack);
}

void run_on_expanded(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    check_devices(op, *stack);
    count(op, *stack);
    torch::jit::Stack values = torch::jit::pop(*stack, op.schema().arguments().size());
    const at::Tensor self = values.front().toTensor(), once = without_repeats(self);
    const at::Tensor host = once.cpu();
    for (c10::IValue& value : values) value = on_host(value);
    values.front() = host.expand(self.sizes());
    op.callBoxed(values);
    once.copy_(host);
    stack->emplace_back(self);
}

std::map<std::string, std::int64_t> fallback_counts() {
    const std::lock_guard lock(state().mutex);
    return state().counts;
}

void reset_fallback_counts() {
    const std::lock_guard lock(state().mutex);
    state().counts.clear();
}

std::string fallback_mode() {
    const std::lock_guard lock(state().mutex);
    return state().mode;
}

void set_fallback_mode(const std::string& mode) {
    TORCH_CHECK_VALUE(mode.empty() || mode == "list" || mode == "error",
                      "A mode of fallbacks is \"\", \"list\" or \"error\", not \"", mode, "\".");
    const std::lock_guard lock(state().mutex);
    state().mode = mode;
}

}  // namespace dlprim_torch
