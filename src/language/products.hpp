// SPDX-License-Identifier: MIT
// The products of a language model that have a weight of their own, which adapters may change.
#pragma once

#include "language/model_file.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace dlprim::language {

struct Product {
    std::string weight;  ///< name of the matrix [outputs, inputs]
    std::string module;  ///< Hugging Face's name of the layer, "model.layers.0.self_attn.q_proj"
    std::int64_t outputs = 0, inputs = 0;
    bool in_layer = false;  ///< of one of the model's repeated layers
    bool interleaved =
        false;  ///< rows are in another order in Hugging Face's models (head_rows.hpp)
    bool transposed = false;  ///< the weight is [inputs, outputs] there
};

/// In the order in which a step computes them. A product whose weight is the table of embeddings
/// is not among them. Throws what make_network() throws.
std::vector<Product> products_of(const ModelFile& model);

}  // namespace dlprim::language
