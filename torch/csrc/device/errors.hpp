// SPDX-License-Identifier: MIT
// dlprim::Error becomes the exception that users of PyTorch expect, and what the library warns of a
// warning of PyTorch's.
//
// Every call of the library that can fail is made inside translated(), so that no other file has to
// know the kinds of errors.
#pragma once

#include "common.hpp"

#include <string_view>

namespace dlprim_torch {

/// What kernels refuse beside an index that is out of range. The next wait throws RuntimeError with
/// PyTorch's sentence.
enum class Refusal : std::uint8_t { probabilities, distribution };

/// The index by which a kernel says so, further than any tensor reaches. Exact in float.
constexpr std::int64_t index_of(Refusal what) {
    return std::int64_t{1} << (60 + static_cast<int>(what));
}

/// While it lives, errors of this thread name this operator of PyTorch: "fmod.Tensor_out" or
/// "aten::fmod", of which both are "aten::fmod". Inside of another scope it changes nothing, so
/// that the operator is the one that the program called. The text outlives the scope.
class OperatorScope {
  public:
    explicit OperatorScope(std::string_view name) noexcept;
    ~OperatorScope();
    OperatorScope(const OperatorScope&) = delete;
    OperatorScope& operator=(const OperatorScope&) = delete;

  private:
    bool outermost_;
};

/// Throws the c10 exception for `error`, with the operator in scope before its text. Out of memory
/// becomes torch.OutOfMemoryError, what is not supported NotImplementedError, what does not compile
/// or run RuntimeError. `waited` says that the call waited for the device, so that the error may be
/// one of an earlier operator, and none is named; Error(invalid_argument) then means an index out
/// of range and becomes IndexError.
[[noreturn]] void throw_translated(const dp::Error& error, bool waited = false);

/// Calls `work` and translates what it throws. Where memory does not suffice, cached memory of all
/// devices is freed and the work is tried once more: it must not have changed anything by then.
template <typename Work>
auto translated(Work&& work, bool waited = false) -> decltype(work());

/// Makes the library's warnings PyTorch's, such as that an operator is computed on the host because
/// all engines of the device are wrong. They name the operator in scope, as do warnings and errors
/// of calls that the library makes later.
void pass_warnings_on();

/// Frees the memory that devices cache. Throws nothing.
void let_caches_go() noexcept;

template <typename Work>
auto translated(Work&& work, bool waited) -> decltype(work()) {
    try {
        return work();
    } catch (const dp::Error& error) {
        if (error.kind() != dp::ErrorKind::out_of_memory) throw_translated(error, waited);
    }
    let_caches_go();
    try {
        return work();
    } catch (const dp::Error& error) {
        throw_translated(error, waited);
    }
}

}  // namespace dlprim_torch
