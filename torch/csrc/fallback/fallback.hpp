// SPDX-License-Identifier: MIT
// What "ocl" has no kernel for runs on the CPU, and is counted.
#pragma once

#include "ops/checks.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/CPUFallback.h>

#include <map>
#include <utility>

namespace dlprim_torch {

/// Runs the operator on the CPU with copies of its tensors. Counts it; throws NotImplementedError
/// with operator, types and shapes where DLPRIM_TORCH_FALLBACK is "error".
void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack);

/// The same for a kernel that cannot serve these arguments: on_cpu<at::_ops::mm_out>(a, b, out).
template <typename Op, typename... Values>
decltype(auto) on_cpu(Values&&... values) {
    return at::native::call_fallback_fn_symint<&run_on_cpu, Op>::call(
        std::forward<Values>(values)...);
}

/// The same for the overload of that name.
template <typename Result, typename... Values>
Result named_on_cpu(const char* name, Values... values) {
    return c10::impl::BoxedKernelWrapper<Result(Values...)>::call(
        c10::BoxedKernel::makeFromFunction<&run_on_cpu>(), operator_of(name), c10::DispatchKeySet(),
        std::forward<Values>(values)...);
}

/// The same for operators in place that PyTorch lets write to expanded tensors: masked_fill_,
/// index_fill_ and index_put_. What the CPU makes of the elements that are the same memory counts,
/// and its warning that this is deprecated.
void run_on_expanded(const c10::OperatorHandle& op, torch::jit::Stack* stack);

template <typename Op, typename... Values>
decltype(auto) on_expanded(Values&&... values) {
    return at::native::call_fallback_fn_symint<&run_on_expanded, Op>::call(
        std::forward<Values>(values)...);
}

/// Whether some of a tensor's elements are the same memory because it was expanded.
inline bool is_expanded(const at::Tensor& tensor) {
    return at::has_internal_overlap(tensor) == at::MemOverlap::Yes;
}

/// How often each operator ran on the CPU.
std::map<std::string, std::int64_t> fallback_counts();
void reset_fallback_counts();
/// "" (count only), "list" or "error"; the first is what the environment variable says.
std::string fallback_mode();
void set_fallback_mode(const std::string& mode);

}  // namespace dlprim_torch
