// SPDX-License-Identifier: MIT
// Precision: the number format in which products of float tensors may be computed, and in which
// activations may be stored.
#pragma once

#include <dlprim/namespace.hpp>

#include <cstdint>
#include <string_view>

namespace dlprim {

/// The format of the factors of convolutions, matrix products and their gradients, and of the
/// tensors between operators. In every precision the following stay float: sums, parameters and
/// their gradients, the solver's state, statistics, losses, and the network's inputs and outputs.
///
/// This is a permission. Where a device has no engine for the precision, the operator falls back to
/// the next one that the device supports, in the order fp16, bf16, tf32, fp32.
enum class Precision : std::uint8_t {
    fp32,  ///< float throughout
    /// Factors of products may be rounded to 11 significant bits, which is a relative error of up
    /// to 2^-11, or to 2^-16 of the largest of 32 neighbours. Tensors are stored as float.
    tf32,
    /// Activations and their gradients may be stored as half, which has 11 significant bits from
    /// 6.1e-5 to 65504, and fewer below. Factors of products may be rounded to half. Training
    /// multiplies the loss by a scale (SolverOptions::loss_scale).
    fp16,
    /// Like fp16 with bfloat16 in place of half: 8 significant bits over the range of float, so
    /// that no loss scale is needed.
    bf16,
};

/// "fp32", "tf32", "fp16" or "bf16".
std::string_view name_of(Precision precision) noexcept;
/// The inverse of name_of(). Throws Error(invalid_argument) for any other text.
Precision parse_precision(std::string_view name);

}  // namespace dlprim
