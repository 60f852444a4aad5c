// SPDX-License-Identifier: MIT
// The order of rows of queries and keys. Positions turn pairs of a head's features. In Hugging
// Face's models the two of a pair lie half a head apart; in GGUF files of some architectures they
// are neighbours.
#pragma once

#include "language/architecture.hpp"

#include <cstdint>
#include <string>

namespace dlprim::language {

/// Whether the rows of a weight of that source differ so for the model.
bool interleaves(const Architecture& architecture, const std::string& model,
                 const Architecture::HuggingFace::Source& source);

/// [rows, columns] of heads of `head` rows: from halves to neighbours, and back.
void interleave_halves(float* values, std::int64_t rows, std::int64_t columns, std::int64_t head);
void part_halves(float* values, std::int64_t rows, std::int64_t columns, std::int64_t head);

}  // namespace dlprim::language
