// SPDX-License-Identifier: MIT
// The network of a language model: one step that reads some tokens and remembers their keys and
// values.
//
// What is remembered belongs to the caller, in caches of which the step's tokens name one for each
// sequence that it reads, and which it writes the new keys and values into (CachedStep,
// ops/attention/cache.hpp). How much of them counts is data, so that nothing is planned or compiled
// while text is made:
//
//   inputs   tokens   [batch * count] int    the new tokens, `count` of each sequence
//            places   [batch, 2] int         of each sequence its cache, and its first new token's
//                                            position
//            last     [batch] int            the places among `tokens` whose logits are wanted
//            keys.L, values.L [caches, key heads, capacity, head size]    of layer L
//   outputs  logits   [batch, vocabulary]
//
// For training (StepSizes::training) the tokens of each sequence see each other alone, and nothing
// is remembered. `last` then has all places, [batch * count], and the network ends in a loss:
//
//   inputs   labels   [batch * count] int    the token that follows each, or no_label
//   outputs  loss     [1]                    the mean over the tokens that have a label
//
// An encoder reads sequences whole, which lie behind each other, and remembers nothing:
//
//   inputs   tokens     [count] int             of all sequences
//            positions  [count] int             of each token in its sequence
//            lengths    [sequences + 1] int     cumulative: where sequences begin, and `count`
//            shares     [sequences, count]      how much of each token is in a sequence's row
//   outputs  embeddings [sequences, width]      sums of features by these shares
//
// The model's weights are frozen. What is trained are the matrices of an adapter, of a model that
// has one (adapter.hpp).
#pragma once

#include "graph/description.hpp"
#include "language/architecture.hpp"
#include "language/model_file.hpp"

#include <cstdint>
#include <string>

namespace dlprim::language {

struct StepSizes {
    std::int64_t batch = 1, count = 1;
    std::int64_t caches = 1, capacity = 0;
    std::int64_t positions = 0;  ///< there are none from here on
    DType cached = DType::f32;   ///< type of the caches: f32 or f16
    bool training = false;
    double dropout = 0;          ///< of training: share of the inputs of adapters that become 0
    std::int64_t sequences = 1;  ///< of an encoder, whose `batch` is 1
};

/// The label of a token that does not count in the loss, as in PyTorch.
inline constexpr std::int32_t no_label = -100;

/// The architecture of a model that makes text, and of one that makes embeddings. Throws
/// Error(unsupported) for the other kind.
const Architecture& find_decoder(const ModelFile& file);
const Architecture& find_encoder(const ModelFile& file);

/// Throws Error(format) if the file lacks a weight.
NetDescription make_network(const Architecture& architecture, const ModelFile& file,
                            const ModelSizes& sizes, const StepSizes& step);

/// Tables of cosines and sines, [rows, rotary / 2], which are parameters of the network that no
/// file has. Rows are positions, and then those of layers with a window if these have a base of
/// their own.
inline constexpr std::string_view cosines = "rotary.cosines", sines = "rotary.sines";
void fill_rotary_table(const ModelSizes& sizes, bool of_sines, std::int64_t rows, float* values);

/// Names of the inputs that hold what layer `layer` remembers.
std::string keys_input(std::int64_t layer);
std::string values_input(std::int64_t layer);

}  // namespace dlprim::language
