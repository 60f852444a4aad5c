// SPDX-License-Identifier: MIT
// EagerEntry: the plan of one eager call and how tensors are bound to it.
#pragma once

#include "exec/eager.hpp"
#include "exec/executor.hpp"

namespace dlprim {

struct EagerCall {
    std::string_view type;
    const EagerOptions& options;
    std::span<const Tensor> inputs, params, output_gradients;
    const ops::CallOptions& how;
    bool backward;
};

/// Memory that a call reads: inputs, params, output gradients, in that order.
struct EagerOperand {
    std::shared_ptr<Buffer> buffer;
    std::uint64_t byte_offset = 0;
    const Layout* layout = nullptr;  ///< nullptr: plain
};

/// A planned call and the order in which its externals are bound.
struct EagerEntry {
    std::unique_ptr<Executor> executor;
    /// By external: which operand or result it is.
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
    std::vector<TensorSpec> gradients;  ///< of outputs: what the call must bring
    bool uses_scalars = false;
    bool forgotten = false;  ///< one of its engines has failed, and calls are planned without it
};

/// Whether some result goes to a tensor of the caller.
bool has_out(const EagerCall& call);
/// A binding of another shape or type than planned would be read past its end: throws
/// Error(invalid_argument).
void check_operand(const EagerCall& call, const char* what, std::size_t index, const Tensor& tensor,
                   const TensorSpec& wanted);
/// The same of all output gradients, and of their number.
void check_gradients(const EagerCall& call, const std::vector<TensorSpec>& wanted);

/// Plans the call for operands that lie as `operands` do. Scratch comes from `store`.
std::unique_ptr<EagerEntry> make_eager_entry(const Context& context, const EagerCall& call,
                                             std::span<const EagerOperand> operands,
                                             BlockStore& store);

}  // namespace dlprim
