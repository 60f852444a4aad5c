// SPDX-License-Identifier: MIT
// Merging of a producer's program into its consumer's: what the graph pass that fuses pointwise
// chains asks. Programs here know shapes only as far as the caller tells.
#pragma once

#include "engine/pointwise/program.hpp"

#include <span>

namespace dlprim::pointwise {

/// Whether `output` of `producer` (an elementwise output whose shape is the producer's whole
/// broadcast shape) may be computed inside `consumer` in the place of its input `consumer_input`,
/// whose broadcast shape is `consumer_shape`. Programs that look at index(), size() or uniform()
/// merge only when both shapes are the same; others also when the producer's shape broadcasts.
/// `reads` counts how often the merged program would hold the producer's expression's cost: a
/// producer that reduces never merges.
bool can_merge(const Program& producer, int output, const Shape& producer_shape,
               const Program& consumer, int consumer_input, const Shape& consumer_shape,
               std::span<const Shape> producer_inputs);

/// The consumer with its input replaced by the producer's expression. The merged program's inputs
/// are the consumer's in order without `consumer_input`, then the producer's. `consumer_map` and
/// `producer_map` get, for each old input, its new number (-1: gone). Scalars: the consumer's, then
/// the producer's (scalar i of the producer is number consumer.scalars + i). The caller may
/// renumber equal inputs afterwards with merge_inputs().
Program merge(const Program& producer, int output, const Program& consumer, int consumer_input,
              std::vector<int>& consumer_map, std::vector<int>& producer_map);

/// Renumbers inputs: input i becomes numbers[i]; `inputs` is the new count. Equal numbers join
/// inputs.
Program renumber(const Program& program, const std::vector<int>& numbers, int inputs);

/// Replaces scalar parameters by their values.
Program bind_scalars(const Program& program, const std::vector<double>& scalars);

/// Adds the outputs of `other` (over the same broadcast shape) behind those of `program`; inputs
/// and scalars of `other` are numbered behind those of `program`.
Program join_outputs(const Program& program, const Program& other);

}  // namespace dlprim::pointwise
