// SPDX-License-Identifier: MIT
// Attention: scaled dot-product attention. It becomes a node of AttentionForward, which engines
// compute (heads.hpp) or which is a composite of products and a softmax.
#pragma once

#include "graph/declared_operator.hpp"
#include "graph/indexed_operator.hpp"

namespace dlprim::attention {

class Operator : public DeclaredOperator<ops::Attention, IndexedOperator> {
  public:
    int min_inputs() const override { return 3; }
    int max_inputs() const override { return 4; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    IndexInput index_input(const Attrs& attrs, std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;
};

/// The shapes in which query, key, value and, if given, mask are broadcast. With enable_gqa,
/// queries [..., heads, L, D] become [..., groups, heads / groups, L, D], where `groups` is the
/// number of heads of keys and values. Keys and values, and a mask with heads, get an additional
/// dimension of 1. Without enable_gqa, shapes stay unchanged, and cumulative lengths in the mask's
/// place always. Throws Error(invalid_argument) if heads is not a multiple of groups.
std::vector<Shape> operand_shapes(const Attrs& attrs, const std::vector<Shape>& given);

/// How many of the inputs q, k, v, perhaps a mask, and with dropout a seed and a step, are not
/// these two.
std::size_t operands_among(const Attrs& attrs, std::size_t inputs);

/// Whether a tensor in the mask's place holds cumulative lengths: those of sequences that lie
/// behind each other in the positions, each of which attends only to itself (spans.hpp).
inline bool are_lengths(DType dtype) {
    return dtype == DType::i32 || dtype == DType::i64;
}

/// What cumulative lengths are, if there are any in the place `mask` of the inputs.
IndexInput lengths_input(const Attrs& attrs, std::span<const TensorSpec> inputs, std::size_t mask);

/// Whether these are a seed and a step, or nothing. Throws Error(invalid_argument) if not.
void check_keys(std::span<const TensorSpec> keys);

/// The shape of a number for each row of y.
Shape rows_shape(const Shape& y);

/// The scores' shape [..., L, S], for q [..., L, D] and k [..., S, D].
Shape scores_shape(const Shape& q, const Shape& k);

/// The batch dimensions of the result, for operands in the shapes in which they are broadcast.
Shape batch_shape(const std::vector<Shape>& operands);
/// [batch..., rows, columns].
Shape with_matrix(const Shape& batch, std::int64_t rows, std::int64_t columns);

/// AttentionForward: inputs as Attention's, cumulative lengths included, and with dropout a seed
/// and a step. Outputs: y, and the logarithm of each row's sum of exponentials of scores, [..., L],
/// which is -infinity for a row without positions.
std::unique_ptr<dlprim::Operator> make_forward();

/// AttentionBackward: inputs q, k, v, the logarithms `lse`, the rows' sums `delta` of dy * y, dy,
/// perhaps a mask or cumulative lengths, and with dropout a seed and a step. Outputs: dq [batch...,
/// L, D], dk [batch..., S, D] and dv [batch..., S, E], where batch is batch_shape(): gradients of
/// operands that are broadcast are still to be summed.
std::unique_ptr<dlprim::Operator> make_backward();

}  // namespace dlprim::attention
