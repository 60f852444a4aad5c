// SPDX-License-Identifier: MIT
// Scalar: a number that a program hands over by value, exactly.
#pragma once

#include <dlprim/namespace.hpp>

#include <cstdint>
#include <variant>

namespace dlprim {

/// A number: a double, or a 64-bit integer of which no digit is lost. The bits of an unsigned
/// integer of 64 bits go into the signed one.
using Scalar = std::variant<double, std::int64_t>;

}  // namespace dlprim
