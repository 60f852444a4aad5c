// SPDX-License-Identifier: MIT
// Encoder: a model on a device that makes embeddings of whole texts.
//
// A step reads a fixed number of tokens, 16, 32, 64 and so on, of several texts that lie behind
// each other:
//
//   tokens    a a a a a b b b b b b c c c c . . . . . . . . . . . . . . . . .    32 tokens,
//   lengths   0         5           11      15 15                           32   4 places
//
// What is left of a step is one text more, which nobody reads, and places that are left are empty.
// Where texts begin and what is pooled is data, so that each size is planned and compiled once.
#pragma once

#include "language/model_file.hpp"

#include <dlprim/context.hpp>
#include <dlprim/net.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace dlprim::language {

class Encoder {
  public:
    /// `tokens` is the most of a step, at least those of one text. `file` is read when a step is
    /// planned. Throws Error(unsupported) for a model that makes text, and what make_network()
    /// throws.
    Encoder(const Context& context, std::shared_ptr<const ModelFile> file, const ModelSizes& sizes,
            std::int64_t tokens, const NetOptions& options);

    /// The most tokens of a text.
    std::int64_t longest() const { return longest_; }
    /// One row of width() features for each text. Waits for the device. Throws
    /// Error(invalid_argument) for a text without tokens, with more than longest(), or with a
    /// number that is no token.
    std::vector<float> embed(std::span<const std::vector<std::int32_t>> texts);
    std::int64_t width() const { return sizes_.width; }
    /// Device memory: the most that a plan takes, with weights.
    std::uint64_t peak_bytes() const { return peak_bytes_; }

  private:
    void check(const std::vector<std::int32_t>& text, std::size_t number) const;
    /// Embeds texts that fit into a step, into rows.
    void step(std::span<const std::vector<std::int32_t>> texts, std::int64_t tokens, float* rows);
    float share(std::int64_t place, std::int64_t length) const;

    std::shared_ptr<const ModelFile> file_;
    ModelSizes sizes_;
    Pooling pooling_;
    std::int64_t longest_, most_;
    std::int64_t count_ = 0;  ///< tokens of the step that the net is shaped for
    std::optional<Net> net_;
    std::uint64_t peak_bytes_ = 0;
};

}  // namespace dlprim::language
