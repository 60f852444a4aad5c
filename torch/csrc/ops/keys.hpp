// SPDX-License-Identifier: MIT
// What programs that draw random numbers begin with.
#pragma once

#include "device/generator.hpp"

#include <dlprim/scalar.hpp>

#include <optional>
#include <vector>

namespace dlprim_torch {

/// p0 and p1 of such a program: the seed and the step of the next numbers.
inline std::vector<dp::Scalar> keys(const std::optional<at::Generator>& generator,
                                    const at::Tensor& of) {
    const auto [seed, step] = draw(generator, of.device().index());
    return {static_cast<std::int64_t>(seed), static_cast<std::int64_t>(step)};
}

}  // namespace dlprim_torch
