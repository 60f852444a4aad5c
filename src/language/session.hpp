// SPDX-License-Identifier: MIT
// Session: a language model on a device, and what it remembers of the tokens that it has read, of
// one sequence or of several.
//
// A plan reads a fixed number of tokens of a fixed number of sequences: one of each, or a piece of
// a prompt. Which sequences these are, and how much of what is remembered counts, is data, so that
// one plan serves all tokens of all texts. Keys and values lie in one tensor, of which every plan
// reads and writes slices:
//
//   [2 layers, sequences, key heads, capacity, head size]      keys of layer 0, values of layer 0,
//   ...
//
// When a text outgrows the capacity, it is doubled, and steps are planned anew. A step's time
// follows the tokens that were read, whatever the capacity.
#pragma once

#include "language/architecture.hpp"
#include "language/model_file.hpp"
#include "runtime/transfer.hpp"

#include <dlprim/context.hpp>
#include <dlprim/net.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::language {

struct SessionOptions {
    std::int64_t context = 0;    ///< the most tokens that can be read
    std::int64_t piece = 64;     ///< tokens of a prompt that are read at a time
    NetOptions net;              ///< of the network: precision, engines, progress
    std::int64_t sequences = 1;  ///< that are remembered beside each other
    bool half_cache = false;     ///< whether keys and values are remembered in 16 bits
};

class Session {
  public:
    /// `file` is read when a step is planned. Throws what make_network() throws.
    Session(const Context& context, std::shared_ptr<const ModelFile> file, const ModelSizes& sizes,
            const SessionOptions& options);

    std::int64_t sequences() const { return std::ssize(past_); }
    // Sequences are named by their numbers, from 0 to sequences() - 1. Functions throw
    // Error(invalid_argument) for others.

    /// How many tokens of the sequence were read.
    std::int64_t past(std::int64_t sequence = 0) const;
    /// Forgets all tokens of the sequence from this number on, which is at most past().
    void forget_from(std::int64_t past, std::int64_t sequence = 0);
    /// Lets sequence `to` begin with the first `tokens` of sequence `from`, in the place of what it
    /// has: a prompt that several texts share is read once. They are copied; nothing waits.
    void share(std::int64_t from, std::int64_t to, std::int64_t tokens);
    /// Makes room for so many tokens of each sequence. Throws Error(invalid_argument) for more than
    /// the context.
    void reserve(std::int64_t tokens);
    /// Reads tokens of a sequence, which are numbers below the vocabulary's size, and returns the
    /// logits of the next one, which last until the next call. Waits for the device. Throws
    /// Error(invalid_argument) for no tokens and for more than the context takes.
    std::span<const float> read(std::span<const std::int32_t> tokens, std::int64_t sequence = 0);
    std::int64_t piece() const { return piece_; }
    /// Whether read() reads so many tokens, or what is left of them after whole pieces, as a piece
    /// that is filled up, and not one by one: a piece takes as long as several of one token.
    bool fills_piece(std::int64_t tokens) const { return tokens > piece_ / 8; }
    /// Reads one token of each of these sequences, which differ, in one step, and returns the
    /// logits of their next ones, [next.size(), vocabulary]. The step has a row for each of
    /// sequences(), so that how a row rounds does not depend on how many others are wanted. Throws
    /// as read().
    struct Next {
        std::int64_t sequence;
        std::int32_t token;
    };
    std::span<const float> read_next(std::span<const Next> next);

    /// Device memory: the most that a plan takes, with weights and what is remembered.
    std::uint64_t peak_bytes() const { return peak_bytes_; }
    Net& net() { return *net_; }

  private:
    void check_sequence(std::int64_t sequence) const;
    void check_token(std::int32_t token) const;
    /// Lets the net read `count` tokens of `batch` sequences at a time.
    void set_shape(std::int64_t batch, std::int64_t count);
    /// Enqueues a step that reads tokens_ and places_, of which `real` tokens of each count.
    void step(std::int64_t real);
    std::span<const float> logits();
    void bind_cache();

    Context context_;
    std::shared_ptr<const ModelFile> file_;
    const Architecture& architecture_;
    ModelSizes sizes_;
    std::int64_t most_, piece_;
    DType cached_;
    std::int64_t batch_ = 1, count_ = 1, capacity_ = 0;
    std::vector<std::int64_t> past_;  ///< by sequence
    Tensor cache_;
    std::optional<Net> net_;
    std::map<std::uint64_t, std::unique_ptr<Readback>> readbacks_;  ///< of logits, by their bytes
    std::uint64_t peak_bytes_ = 0;
    std::vector<std::int32_t> tokens_, places_;  ///< of a step
    std::vector<std::int32_t> last_;             ///< the input "last", as it was set; empty: not
};

}  // namespace dlprim::language
