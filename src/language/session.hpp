// SPDX-License-Identifier: MIT
// Session: a language model on a device, and what it remembers of the tokens that it has read.
//
// A plan reads a fixed number of tokens: one, or a piece of a prompt. Which of what is remembered
// counts is data, so that one plan serves all tokens of a text. Keys and values lie in one tensor,
// of which every plan reads slices and to which each step's rows are copied:
//
//   [2 layers, key heads, capacity, head size]      keys of layer 0, values of layer 0, ...
//
// When a text outgrows the capacity, it is doubled, and steps are planned anew.
#pragma once

#include "language/architecture.hpp"
#include "language/model_file.hpp"

#include <dlprim/context.hpp>
#include <dlprim/net.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::language {

struct SessionOptions {
    std::int64_t context = 0;  ///< the most tokens that can be read
    std::int64_t piece = 64;   ///< tokens of a prompt that are read at a time
    NetOptions net;            ///< of the network: precision, engines, progress
};

class Session {
  public:
    /// `file` is read when a step is planned. Throws what make_network() throws.
    Session(const Context& context, std::shared_ptr<const ModelFile> file, const ModelSizes& sizes,
            const SessionOptions& options);

    /// How many tokens were read.
    std::int64_t past() const { return past_; }
    /// Forgets all tokens from this number on, which is at most past().
    void forget_from(std::int64_t past);
    /// Makes room for so many tokens in all. Throws Error(invalid_argument) for more than the
    /// context.
    void reserve(std::int64_t tokens);
    /// Reads tokens, which are numbers below the vocabulary's size, and returns the logits of the
    /// next one. Waits for the device. Throws Error(invalid_argument) for no tokens and for more
    /// than the context takes.
    std::vector<float> read(std::span<const std::int32_t> tokens);

    /// Device memory: the most that a plan takes, with weights and what is remembered.
    std::uint64_t peak_bytes() const { return peak_bytes_; }
    Net& net() { return *net_; }

  private:
    /// Lets the net read `count` tokens at a time.
    void set_count(std::int64_t count);
    /// Enqueues a step that reads `tokens`, of which the net takes as many or more.
    void step(std::span<const std::int32_t> tokens);
    void bind_cache();

    Context context_;
    std::shared_ptr<const ModelFile> file_;
    const Architecture& architecture_;
    ModelSizes sizes_;
    std::int64_t most_, piece_;
    std::int64_t count_ = 1, capacity_ = 0, past_ = 0;
    Tensor cache_;
    std::optional<Net> net_;
    std::uint64_t peak_bytes_ = 0;
    std::vector<std::int32_t> tokens_;  ///< of a step, filled up
};

}  // namespace dlprim::language
