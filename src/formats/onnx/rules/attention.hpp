// SPDX-License-Identifier: MIT
// What the attention operators share: masks of scores, their softmax, and products.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// Scores [B, heads, L, S] with what is masked at -inf.
struct MaskedScores {
    Ref scores = nullptr;
    Ref top = nullptr;  ///< the largest bias of each row: -inf where all is masked; may be null
};

/// Which keys a query sees. Query i is at position i + offset.
struct AttentionMask {
    Ref given = nullptr;    ///< truth values, or floats to add; its last dimension may be shorter
    Ref lengths = nullptr;  ///< [B, 1, 1, 1] float: how many keys there are; the queries end there
    std::int64_t offset = 0;
    bool causal = false;
    std::int64_t left = -1, right = -1;  ///< how many keys beside the position; -1: all

    MaskedScores apply(Builder& build, Ref scores, std::int64_t keys) const;
    /// The same for scores [B, heads, queries, keys] of the library's Attention: its options, and a
    /// mask, of truth values or of `dtype`, for what they do not say; null where they say all.
    Ref for_operator(Builder& build, std::int64_t queries, std::int64_t keys, DType dtype,
                     Attrs& options) const;

  private:
    bool only_given() const { return !lengths && !causal && left < 0 && right < 0; }
    /// The given mask with `keys` columns; those added are false, or -inf.
    Ref padded(Builder& build, std::int64_t keys) const;
    /// The code of a bias, "0" or "-inf" or what is given, which reads `inputs` and `numbers`.
    std::string bias(Builder& build, std::int64_t keys, std::vector<Ref>& inputs,
                     Doubles& numbers) const;
};

/// Softmax of the last dimension, in a type; rows that are masked completely are 0.
Ref masked_softmax(Builder& build, const MaskedScores& masked, DType dtype);

/// scale a b, or a b^T. Doubles are multiplied in double, and integers as integers.
Ref product(Builder& build, Ref a, Ref b, bool transpose_b, double scale);

/// scale a b^T; in types of 16 bits both factors take the root of the scale, rounded, as ONNX
/// defines it.
Ref scaled_product(Builder& build, Ref a, Ref b, double scale);

/// The float type that the attribute softmax_precision names.
DType precision_type(Call& call, std::int64_t number);

}  // namespace dlprim::onnx
