// SPDX-License-Identifier: MIT
// Weights of products: floats, or integers that share a scale and a zero point with their
// neighbours. The integers are stored in a type of GGUF's blocks (base/blocks.hpp) that holds them
// exactly, where there is one, and products read them from there.
#pragma once

#include "formats/onnx/call.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlprim::onnx {

/// The weight of a product x W^T: [rows, columns] in floats, or its bytes in blocks of a type.
struct ProductWeight {
    Ref values = nullptr;
    std::int64_t rows = 0, columns = 0;
    std::string blocks;  ///< option `blocks` of InnerProduct; empty for floats

    static ProductWeight of_floats(Ref values) {
        return {values, values->spec.shape[0], values->spec.shape[1], {}};
    }
};

/// x [n, columns] times the transpose of the weight, perhaps plus a bias [rows].
Ref inner_product(Builder& build, Ref x, const ProductWeight& weight, Ref bias);

/// W [rows, columns] as scale * (integer - zero point). `block` neighbours of a row share a scale
/// and a zero point.
struct IntegerWeight {
    std::int64_t rows = 0, columns = 0, block = 0;
    Ref integers = nullptr;  ///< known
    int bits = 8;            ///< of an unsigned integer in memory, where several may share a byte
    bool is_signed = false;
    std::int64_t row_step = 0, column_step = 0;  ///< between integers
    std::vector<float> scales, zeros;            ///< [rows, blocks of a row]

    std::int64_t blocks() const { return (columns + block - 1) / block; }
};

/// The weight in blocks. Without a type that holds it exactly this is nothing, and the log has a
/// line that says which node takes more memory, and why.
std::optional<ProductWeight> in_blocks(Call& call, const IntegerWeight& weight);
/// The same of a matrix that DequantizeLinear made of known integers in blocks (Builder::note).
/// `columns` is the matrix's dimension over which the product sums. Nothing for other matrices.
std::optional<ProductWeight> in_blocks(Call& call, Ref matrix, int columns);

}  // namespace dlprim::onnx
