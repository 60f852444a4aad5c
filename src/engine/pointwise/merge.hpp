// SPDX-License-Identifier: MIT
// Merges a producer's program into its consumer's, for the graph pass that fuses pointwise chains.
// Programs do not know shapes, so the caller passes them.
#pragma once

#include "engine/pointwise/program.hpp"

#include <span>

namespace dlprim::pointwise {

/// Whether `output` of `producer` may be computed inside `consumer` instead of being its input
/// `consumer_input`. It must be an elementwise output whose shape is the producer's broadcast
/// shape. `consumer_shape` is the consumer's broadcast shape. Programs that use index(), size() or
/// uniform() merge only if both shapes are equal, and others also if the producer's shape
/// broadcasts. A producer that reduces never merges.
bool can_merge(const Program& producer, int output, const Shape& producer_shape,
               const Program& consumer, int consumer_input, const Shape& consumer_shape,
               std::span<const Shape> producer_inputs);

/// The consumer with its input replaced by the producer's expression. The inputs of the merged
/// program are the consumer's in order, without `consumer_input`, then the producer's.
/// `consumer_map` and `producer_map` map each old input to its new number (-1: dropped). The
/// consumer's scalars come first: scalar i of the producer becomes consumer.scalars + i. Equal
/// inputs are not joined; renumber() can do that afterwards.
Program merge(const Program& producer, int output, const Program& consumer, int consumer_input,
              std::vector<int>& consumer_map, std::vector<int>& producer_map);

/// Renumbers inputs: input i becomes numbers[i]. `inputs` is the new count. Inputs with equal
/// numbers are joined.
Program renumber(const Program& program, const std::vector<int>& numbers, int inputs);

/// Replaces scalar parameters by constants, so that they are folded. The constants stay marked as
/// bound.
Program bind_scalars(const Program& program, const std::vector<double>& scalars);
/// Replaces bound constants by scalar parameters, whose numbers `scalars` gets. The text of a
/// kernel then has no number that a node computes from its shapes, such as the factor of a mean.
Program lift_scalars(const Program& program, std::vector<double>& scalars);

}  // namespace dlprim::pointwise
