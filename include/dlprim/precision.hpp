// SPDX-License-Identifier: MIT
// Precision: what products of float tensors are computed in.
#pragma once

#include <cstdint>
#include <string_view>

namespace dlprim {

/// What convolutions and matrix products of float tensors, and the gradients of these, are computed
/// in. Everything else is float in either.
enum class Precision : std::uint8_t {
    fp32,  ///< float throughout
    /// Factors may be rounded to 11 significant bits, an error of up to 2^-11 of each; sums are
    /// float. Leave, not duty: engines that have no such way compute as for fp32.
    tf32,
};

std::string_view name_of(Precision precision) noexcept;
/// By name. Throws Error: unsupported for "fp16" and "bf16", invalid_argument for what is none.
Precision parse_precision(std::string_view name);

}  // namespace dlprim
