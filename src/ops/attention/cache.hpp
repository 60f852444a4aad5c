// SPDX-License-Identifier: MIT
// Attention over caches of keys and values, in which a decoder remembers what it has read. How much
// of a cache counts is data, so that one plan serves all tokens of a text. Operators that only
// networks of language models have:
//
//   CacheUpdate      inputs  q [B, L, H, D], k [B, L, G, D] and v [B, L, G, E] of L new tokens of B
//                            sequences, caches of keys [C, G, S, D] and of values [C, G, S, E],
//                            places int32 [B, 2], and perhaps cosines and sines [P, R / 2]
//                    output  q, of which the first R features are turned by the tokens' positions
//                    Writes k, turned likewise, and v into the caches. It and CachedStep change
//                    inputs: whatever reads the caches must depend on their output.
//   CachedAttention  inputs  q [B, L, H, D], both caches and places
//                    output  [B, L, H, E]
//                    Each query sees the positions up to its own.
//   CachedStep       the inputs of CacheUpdate, the options of both, and the output of
//                    CachedAttention: one after the other. It is a composite, which on GPUs has an
//                    engine of its own for one new token of each sequence.
//
// Row b of `places` is the number of the cache that sequence b has, and the position of its first
// new token. Sequences have caches of their own; or two rows of the batch are the same in all
// inputs, and write the same. Tokens from position S on are not written, and see all positions.
// G divides H: so many heads share one of keys and values.
#pragma once

#include "engine/engine.hpp"
#include "engine/launch.hpp"
#include "engine/reached_by.hpp"
#include "graph/operator.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dlprim::attention {

inline constexpr const char* cache_update_type = "CacheUpdate";
inline constexpr const char* cached_type = "CachedAttention";
inline constexpr const char* cached_step_type = "CachedStep";

/// The sizes of all three.
struct CacheSizes {
    std::int64_t batch = 0, length = 0, heads = 0, key_heads = 0, depth = 0, features = 0;
    std::int64_t caches = 0, capacity = 0;
    DType stored = DType::f32;                ///< type of the caches: f32 or f16
    std::int64_t turned = 0, table_rows = 0;  ///< CacheUpdate: R and P; 0: nothing is turned
    bool interleaved = false;                 ///< whether pairs of features are neighbours
    double scale = 1, softcap = 0;            ///< CachedAttention; softcap 0: none
    std::int64_t window = 0;                  ///< of positions that a query sees; 0: all

    static CacheSizes of(const Problem& problem);
    std::int64_t group() const { return heads / key_heads; }
};

/// Operand numbers of CachedAttention, or of CachedStep, whose queries are number 0, too. The
/// workspace comes behind y.
struct CacheOperands {
    int keys = 1, values = 2, places = 3, y = 4;
    explicit CacheOperands(const Problem& problem);
};
/// The two problems of a CachedStep. The result of the first takes the place of the queries.
Problem update_problem(const Problem& step);
Problem cached_problem(const Problem& step);

/// Rows of queries that share a head of keys and values, in blocks that are computed together, and
/// how many parts the positions are divided into (Dao et al., "Flash-Decoding", 2023). Part p of a
/// block has `chunk` positions, a multiple of a tile, of those that the block sees.
struct CacheParts {
    std::int64_t rows = 1;    ///< of a block
    std::int64_t blocks = 1;  ///< of a head of keys
    std::int64_t parts = 1;

    /// For at least `groups` work-groups, if each part can have a tile.
    CacheParts(const CacheSizes& sizes, std::int64_t rows, std::int64_t tile, std::int64_t groups);
    std::int64_t groups(const CacheSizes& sizes) const {
        return sizes.batch * sizes.key_heads * blocks * parts;
    }
    /// For each row and part: the largest score, the sum of weights, and the features of the
    /// result. 0 for one part.
    std::uint64_t workspace_bytes(const CacheSizes& sizes) const;
};

/// Compiler options of kernels/attention/cached.clh.
std::string cached_options(const CacheSizes& sizes, const CacheParts& parts);
/// The attention kernel's launch, whose arguments are bound, and if there are several parts the one
/// that combines their results, in their order.
std::unique_ptr<Launch> cached_launch(ContextImpl& context, KernelCall call, const Problem& problem,
                                      const CacheParts& parts);

/// What the engines of both operators derive from.
class CacheEngine : public Engine, public ReachedBy {
  public:
    using Engine::Engine;
    std::string_view reached_by() const override { return "networks of language models"; }
};

/// Whether the problem's types, sizes and epilogue are supported by the engines of this folder.
Verdict check_cached(const Problem& problem);
/// Seconds that reading what counts takes, of half the capacity, for `share` of the peak.
double cached_seconds(const Traits& device, const Problem& problem, double share);

/// The operators in double, by their definition.
void update_oracle(const CacheSizes& sizes, OracleCall& call);
void cached_oracle(const CacheSizes& sizes, OracleCall& call);

std::unique_ptr<dlprim::Operator> make_cache_update();
std::unique_ptr<dlprim::Operator> make_cached();
std::unique_ptr<dlprim::Operator> make_cached_step();

void add_cache_update(EngineRegistry& engines);
void add_cached_host(EngineRegistry& engines);
void add_cached_rows(EngineRegistry& engines);
void add_cached_split(EngineRegistry& engines);

}  // namespace dlprim::attention
