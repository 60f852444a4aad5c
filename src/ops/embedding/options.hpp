// SPDX-License-Identifier: MIT
// Options of Embedding and of its gradient.
#pragma once

#include "base/attrs.hpp"
#include "base/blocks.hpp"

#include <dlprim/shape.hpp>

#include <cstdint>
#include <limits>
#include <string>

namespace dlprim::embedding {

struct Options {
    std::int64_t num_embeddings = 0;
    std::int64_t embedding_dim = 0;
    std::int64_t padding_idx = no_padding;  ///< the row whose gradient is zero, counted from 0
    std::string blocks = {};                ///< the type of blocks that the table is stored in

    static constexpr std::int64_t no_padding = std::numeric_limits<std::int64_t>::min();
    static Options read(const Attrs& attrs) {
        Options options{attrs.integer("num_embeddings"), attrs.integer("embedding_dim"),
                        attrs.integer("padding_idx"), attrs.text("blocks")};
        // As in PyTorch, -1 is the last row.
        if (options.padding_idx < 0 && options.padding_idx >= -options.num_embeddings)
            options.padding_idx += options.num_embeddings;
        return options;
    }
    /// The shape of the table in memory.
    Shape table() const {
        if (blocks.empty()) return Shape{num_embeddings, embedding_dim};
        return block_shape(block_type(blocks), num_embeddings, embedding_dim);
    }
};

}  // namespace dlprim::embedding
