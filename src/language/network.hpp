// SPDX-License-Identifier: MIT
// The network of a language model: one step that reads some tokens and remembers their keys and
// values.
//
// What is remembered belongs to the caller, and the network is a function of it, so that nothing is
// planned or compiled while text is made:
//
//   inputs   tokens   [count] int       the new tokens
//            past     [1] float         how many tokens came before
//            last     [1] int           the place among `tokens` whose logits are wanted
//            keys.L, values.L [key heads, capacity, head size]    of layer L; rows from `past` on
//                                       are not seen, but must be finite
//   outputs  logits   [1, vocabulary]
//            remember [2 layers, key heads, count, head size]     rows for the caller to write at
//                                       `past`: keys and values of layer 0, of layer 1, ...
#pragma once

#include "graph/description.hpp"
#include "language/architecture.hpp"
#include "language/model_file.hpp"

#include <cstdint>
#include <string>

namespace dlprim::language {

struct StepSizes {
    std::int64_t count = 1, capacity = 0;
    std::int64_t positions = 0;  ///< there are none from here on
};

/// Throws Error(format) if the file lacks a weight.
NetDescription make_network(const Architecture& architecture, const ModelFile& file,
                            const ModelSizes& sizes, const StepSizes& step);

/// Tables of cosines and sines, [rows, rotary / 2], which are parameters of the network that no
/// file has. Rows are positions, and then those of layers with a window if these have a base of
/// their own.
inline constexpr std::string_view cosines = "rotary.cosines", sines = "rotary.sines";
void fill_rotary_table(const ModelSizes& sizes, bool of_sines, std::int64_t rows, float* values);

/// Names of the inputs that hold what layer `layer` remembers.
std::string keys_input(std::int64_t layer);
std::string values_input(std::int64_t layer);

}  // namespace dlprim::language
