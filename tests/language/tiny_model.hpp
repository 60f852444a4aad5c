// SPDX-License-Identifier: MIT
// A small language model of random weights as a GGUF file, and its logits in double, computed
// naively from the same weights.
#pragma once

#include "gguf_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dlprim::testing {

struct TinySizes {
    std::int64_t layers = 2, width = 24, hidden = 40, vocabulary = 300, context = 600;
    std::int64_t heads = 6, key_heads = 2, head_size = 4;
    bool tied = true, biases = false;
    std::string architecture = "llama";  ///< which turns neighbouring features, others two halves
    bool head_norms = false;             ///< queries and keys of each head are normalised
    std::string blocks = {};             ///< the type in which matrices are stored; none: float
};

class TinyLlama {
  public:
    explicit TinyLlama(const TinySizes& sizes, unsigned seed = 1);

    /// The file without a tokenizer's tables, for which keys may be added.
    GgufWriter writer() const;
    /// Logits behind each of the tokens.
    std::vector<std::vector<double>> logits(const std::vector<std::int32_t>& tokens) const;

  private:
    struct Weight {
        std::vector<std::uint64_t> sizes;  ///< as GGUF has them
        std::vector<float> values;
        std::vector<std::byte> blocks;  ///< as they are stored, unless as floats
    };
    using Rows = std::vector<std::vector<double>>;
    void add(const std::string& name, std::vector<std::int64_t> shape, double deviation,
             double mean = 0);
    Rows product(const Rows& x, const std::string& name) const;
    Rows norm(const Rows& x, const std::string& name) const;
    void turn(Rows& x) const;
    /// Normalises each head, if the model does.
    void norm_heads(Rows& x, const std::string& name) const;
    Rows attention(const Rows& q, const Rows& k, const Rows& v) const;

    TinySizes sizes_;
    unsigned seed_;
    std::map<std::string, Weight> weights_;
};

}  // namespace dlprim::testing
