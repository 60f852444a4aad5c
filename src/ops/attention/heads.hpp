// SPDX-License-Identifier: MIT
// Heads: the problem of AttentionForward, or AttentionBackward, in the form in which engines
// compute it: many attentions of the same sizes, each with matrices of its own.
#pragma once

#include "engine/engine.hpp"
#include "engine/launch.hpp"
#include "ops/attention/options.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dlprim::attention {

/// The operators that engines compute; see operator.hpp.
inline constexpr const char* forward_type = "AttentionForward";
inline constexpr const char* backward_type = "AttentionBackward";
/// Kernels are compiled for numbers of features that are multiples of 16.
inline std::int64_t padded(std::int64_t features) {
    return (features + 15) / 16 * 16;
}
/// Kernels compute powers of two.
inline constexpr double log2_e = 1.4426950408889634;

/// y[l, e] = sum over s of softmax(scale q[l] k[s] + mask[l, s]) v[s, e], for `count` heads. The
/// number of a head has three digits, the last of which changes fastest. Operand strides are in
/// elements; an operand that several heads share has strides of 0. The elements of a row of q, k, v
/// and y lie beside each other, and its rows anywhere: where projections of heads, or a packed
/// projection, have them. The logarithms and sums of rows have no gaps.
struct Heads {
    enum class Mask : std::uint8_t { none, floats, bools, spans };
    using Strides = std::array<std::int64_t, 3>;  ///< of the digits

    std::int64_t length = 0;     ///< queries, L
    std::int64_t positions = 0;  ///< keys and values, S
    std::int64_t depth = 0;      ///< features of queries and keys, D
    std::int64_t features = 0;   ///< features of values, E
    std::int64_t count = 1;
    std::int64_t weights = 1;  ///< heads of queries and keys, fewer where values have more
    std::array<std::int64_t, 3> digits{1, 1, 1};  ///< their sizes
    Strides q{}, k{}, v{}, mask{};
    Strides y{};                                              ///< of AttentionBackward: of dy
    std::int64_t q_row = 0, k_row = 0, v_row = 0, y_row = 0;  ///< from a row to the next
    Strides dq{}, dk{}, dv{};                                 ///< AttentionBackward's results
    std::int64_t dq_row = 0, dk_row = 0, dv_row = 0;
    Strides q_matrix{}, k_matrix{}, v_matrix{};  ///< of the numbers of an operand's own matrices
    std::int64_t mask_row = 0, mask_column = 0;  ///< 0: the mask is the same for all rows (columns)
    Mask masks = Mask::none;
    Sight sight;
    double scale = 1;
    double softcap = 0;  ///< 0: none
    double dropout_p = 0;
    std::int64_t stream = 0;  ///< of dropout's random numbers
    bool fits = true;  ///< false: the heads need more than three digits; nothing above is complete

    /// Operand numbers of a launch.
    int mask_operand = -1;     ///< -1: none; spans are in the workspace
    int lengths_operand = -1;  ///< of which spans are made
    int seed_operand = -1;     ///< the step is the next one; -1: there is no dropout
    int results = 3;           ///< the first output
    int workspace = 5;

    /// Operations of both products for the positions that queries see.
    double flops() const;
};

Heads heads_of(const Problem& problem);

/// Whether the engines of this folder support the problem: float tensors (`narrow`, for matrix
/// units: also f16 and bf16, but no sequences behind each other), no more features than
/// `most_features`, no empty tensors, sizes below 2^30, a factor above 0, and with dropout weights
/// of the result's batch.
Verdict check_heads(const Problem& problem, std::int64_t most_features, bool narrow);

/// The layouts in which engines of this folder take operands: as they are where rows have no gaps,
/// else plain.
std::vector<LayoutChoice> heads_layouts(const Problem& problem);

/// Whether kernels for matrix units can read q, k and v, and for gradients dy, where they lie: all
/// of one type of 16 bits, to which the precision may round weights, with rows that begin at
/// multiples of 16 bytes.
bool is_direct(const Problem& problem, const Heads& heads);

/// The compiler options of kernels/attention/heads.clh.
std::string heads_options(const Heads& heads);
/// Binds the parameters of kernels/attention/heads.clh: sizes, the mask and the strides of all
/// operands.
KernelCall& bind_heads(KernelCall& call, const Heads& heads);
/// Binds what a kernel of the gradients of keys and values (of_keys), or of queries, reads of each
/// query, and where these gradients lie.
KernelCall& bind_gradients(KernelCall& call, const Problem& problem, const Heads& heads,
                           bool of_keys);

void add_host(EngineRegistry& engines);
void add_host_backward(EngineRegistry& engines);
void add_online(EngineRegistry& engines);
void add_online_backward(EngineRegistry& engines);
void add_matrix(EngineRegistry& engines);
void add_wgmma(EngineRegistry& engines);
void add_wgmma_backward(EngineRegistry& engines);
void add_matrix_backward(EngineRegistry& engines);

}  // namespace dlprim::attention
