// SPDX-License-Identifier: MIT
// index_inputs(): which inputs of a network contain indices, so that these can be checked.
#pragma once

#include "graph/graph.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dlprim {

/// Who reads an input's values as indices, the sizes of the dimensions that they name, and whether
/// they count from the end below 0, as in IndexInput.
struct IndexReader {
    std::string type, name;  ///< of the operator
    Ints sizes;
    bool from_end = true;
};

/// The inputs that contain indices, by name, with all that read them. Indices are followed back
/// through views and casts that keep them.
std::map<std::string, std::vector<IndexReader>> index_inputs(const Graph& graph);

/// Throws Error(invalid_argument), which names the operator, the input, the index and its position,
/// where one of `count` indices of type `dtype` is outside of its dimension.
void check_indices(const std::string& input, const std::vector<IndexReader>& readers, DType dtype,
                   const void* data, std::int64_t count);

}  // namespace dlprim
