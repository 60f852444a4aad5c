// SPDX-License-Identifier: MIT
// index_inputs(): which inputs of a network contain indices or lengths of sequences, so that these
// can be checked.
#pragma once

#include "graph/indexed_operator.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dlprim {

/// Who reads an input's values as indices or cumulative lengths, and as which.
struct IndexReader {
    std::string type, name;  ///< of the operator
    IndexInput as;
};

/// The inputs that contain indices or lengths, by name, with all that read them. They are followed
/// back through views and casts that keep them.
std::map<std::string, std::vector<IndexReader>> index_inputs(const Graph& graph);

/// Throws Error(invalid_argument), which names the operator, the input, the index and its position,
/// where one of `count` indices of type `dtype` is outside of its dimension, or where lengths do
/// not add up.
void check_indices(const std::string& input, const std::vector<IndexReader>& readers, DType dtype,
                   const void* data, std::int64_t count);

}  // namespace dlprim
