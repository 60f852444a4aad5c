// SPDX-License-Identifier: MIT
// Embedding: looks up rows of a table [num_embeddings, embedding_dim] by indices of any shape and
// type; the result is [..., embedding_dim]. EmbeddingBackward: indices, dy -> the gradient of the
// table. An index out of range is an error: of Net::set_input where it comes with an input, else of
// the run, or on OpenCL devices of the next wait (runtime/refusals.hpp).
#pragma once

#include "engine/engine.hpp"
#include "graph/operator.hpp"

namespace dlprim::embedding {

constexpr const char* forward_type = "Embedding";
constexpr const char* backward_type = "EmbeddingBackward";

/// Supports tables of float and double, and any index type.
Verdict check(const Traits& device, const Problem& problem);

// Each function registers the engines of one file.
void add_host_engines(EngineRegistry& engines);       ///< host.cpp
void add_grouped_engine(EngineRegistry& engines);     ///< grouped.cpp
void add_block_engines(EngineRegistry& engines);      ///< blocks.cpp
void add_reference_engines(EngineRegistry& engines);  ///< reference.cpp

}  // namespace dlprim::embedding
