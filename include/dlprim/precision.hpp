// SPDX-License-Identifier: MIT
// Precision: what products of float tensors are computed in, and what activations are stored in.
#pragma once

#include <dlprim/namespace.hpp>

#include <cstdint>
#include <string_view>

namespace dlprim {

/// What convolutions and matrix products, and the gradients of these, are computed in, and what
/// stands between nodes. Sums are float in all; so are parameters, their gradients, the solver's
/// state, statistics, losses, and what the caller binds. Leave, not duty: a device or an engine
/// without such a way computes and stores as for the next that it has (fp16, bf16, tf32, fp32).
enum class Precision : std::uint8_t {
    fp32,  ///< float throughout
    /// Factors of products may be rounded to 11 significant bits, an error of up to 2^-11 of each.
    tf32,
    /// Activations and their gradients may be stored as half: 11 significant bits from 6.1e-5 to
    /// 65504, fewer below. Factors of products may be rounded likewise. Training scales the loss
    /// (SolverOptions::loss_scale).
    fp16,
    /// The same as bfloat16: 8 significant bits over float's range; no loss scale is needed.
    bf16,
};

std::string_view name_of(Precision precision) noexcept;
/// By name. Throws Error(invalid_argument) for what is none.
Precision parse_precision(std::string_view name);

}  // namespace dlprim
