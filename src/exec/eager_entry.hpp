// SPDX-License-Identifier: MIT
// EagerEntry: the plan of one eager call, of an operator or of a function, and how tensors are
// bound to it.
#pragma once

#include "exec/eager.hpp"
#include "exec/planned_call.hpp"
#include "runtime/context_impl.hpp"

#include <utility>

namespace dlprim {

struct EagerCall {
    std::string_view type;
    const EagerOptions& options;
    std::span<const Tensor> inputs, params, output_gradients;
    const ops::CallOptions& how;
    bool backward;
    const EagerFunction* function = nullptr;  ///< null: the operator of `type`
};

/// Memory that a call reads (inputs, params and output gradients, in this order) or writes.
struct EagerOperand {
    std::shared_ptr<Buffer> buffer;
    std::uint64_t byte_offset = 0;
    const Layout* layout = nullptr;  ///< nullptr: plain, or as `view` says
    std::uint64_t bytes = 0;         ///< from the first element to the last
    /// The tensor, if its elements are not row-major or not aligned as kernels expect.
    const Tensor* view = nullptr;
};

/// A planned call, and the operands or results to which its externals are bound.
struct EagerEntry {
    std::unique_ptr<PlannedCall> call;
    /// By external: the index of the operand or result.
    struct Binding {
        bool result = false;
        std::size_t index = 0;
    };
    std::vector<Binding> bindings;
    struct Result {
        TensorSpec spec;
        Layout layout;
    };
    std::vector<Result> results;
    std::vector<TensorSpec> gradients;  ///< of outputs: the gradients that the call must provide
    /// Pairs (result, operand) that may be the same memory, from its first byte to its last. Others
    /// must not overlap.
    std::vector<std::pair<std::size_t, std::size_t>> in_place;
    std::vector<std::size_t> written;  ///< operands that the call writes: running statistics
    bool uses_scalars = false;
    bool forgotten = false;  ///< an engine of it failed, and later calls use another plan
};

/// Whether some result is written to a tensor of the caller.
bool has_out(const EagerCall& call);
/// Throws Error(invalid_argument) if the tensor has another shape or type than planned, because
/// kernels would access memory outside it.
void check_operand(const EagerCall& call, const char* what, std::size_t index, const Tensor& tensor,
                   const TensorSpec& wanted);
/// Checks all output gradients and their number.
void check_gradients(const EagerCall& call, const std::vector<TensorSpec>& wanted);

/// The plan of the call with all operands plain, from the cache of eager calls or made now. Where
/// calls are put off it may not be finished.
std::shared_ptr<EagerEntry> planned_entry(const EagerCall& call);

/// Whether plans of planned_entry() are finished, or could be now without waiting for compilers.
/// False as long as any call is put off.
bool are_finished(const Context& context, std::span<const std::shared_ptr<EagerEntry>> entries);

/// What another kind of eager call keeps for a context, made in the first call. It is destroyed
/// with the cache of eager calls.
ContextImpl::Attachment& eager_extra(const Context& context,
                                     std::unique_ptr<ContextImpl::Attachment> (*make)());

/// Plans the call for operands in the layouts of `operands`. With `sketched` it may compile nothing
/// and leave the plan to be finished. Scratch memory comes from `store`.
std::unique_ptr<EagerEntry> make_eager_entry(const Context& context, const EagerCall& call,
                                             std::span<const EagerOperand> operands,
                                             BlockStore& store, bool sketched);

}  // namespace dlprim
