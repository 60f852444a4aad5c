// SPDX-License-Identifier: MIT
// Options of Embedding and of its gradient.
#pragma once

#include "base/attrs.hpp"

namespace dlprim::embedding {

struct Options {
    std::int64_t num_embeddings = 0;
    std::int64_t embedding_dim = 0;
    std::int64_t padding_idx = -1;  ///< a row whose gradient is zero; -1: none

    static Options read(const Attrs& attrs) {
        return {attrs.integer("num_embeddings"), attrs.integer("embedding_dim"),
                attrs.integer("padding_idx")};
    }
};

}  // namespace dlprim::embedding
