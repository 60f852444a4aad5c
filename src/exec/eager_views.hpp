// SPDX-License-Identifier: MIT
// Strided views as operands and results of eager calls. A view is a layout of its operand: the plan
// of the call reads or writes it as it lies where an engine can, and converts it otherwise.
#pragma once

#include "exec/eager_entry.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

/// Whether the elements of the tensor are not row-major, or not aligned as kernels expect.
bool is_view(const Tensor& tensor);
/// The tensor's memory. EagerOperand::view is set if it is a view.
EagerOperand operand_of(const Tensor& tensor);
/// Appends to a key how the tensor lies, where that matters to the plan.
void append_view(std::string& key, const Tensor& tensor);
/// The layout of a tensor in the plan of a call.
Layout layout_of(const Tensor& tensor);
Layout layout_of(const EagerOperand& operand);

/// Returns `operands`, or `gathered`, in which copies without gaps replace those views that the
/// call writes. Enqueues the copies and does not wait. Throws Error(out_of_memory).
std::span<const EagerOperand> gather_written(const Context& context, const EagerEntry& entry,
                                             std::span<const EagerOperand> operands,
                                             std::vector<EagerOperand>& gathered);

/// Throws Error(invalid_argument) if two elements of the `out` tensor are the same memory.
void check_strided_out(const EagerCall& call, std::size_t index);

/// Values of the graph that lie transposed and that only MatMul reads, also behind a Cast: they
/// become row-major matrices of the transposed shape, and the nodes' options are changed instead.
/// `layouts` has the layouts in which values are bound.
void turn_matrices(Graph& graph, std::map<ValueId, Layout>& layouts);

}  // namespace dlprim
