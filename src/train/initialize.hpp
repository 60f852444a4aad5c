// SPDX-License-Identifier: MIT
// Initial values of parameters, made by Philox. They depend only on the seed and the parameter's
// name.
#pragma once

#include "graph/graph.hpp"
#include "runtime/host_pool.hpp"

#include <cstdint>
#include <span>
#include <string_view>

namespace dlprim {

/// Throws Error(invalid_argument) on a method that initial_values() does not know.
void check_initialization(std::string_view method);

/// `method`: "default" (each operator's own), "he" (normal, std sqrt(2 / fan_in); He et al., 2015)
/// or "xavier" (uniform, bound sqrt(6 / (fan_in + fan_out)); Glorot and Bengio, 2010). "he" and
/// "xavier" apply to parameters that have fans; other parameters get their default. Writes all
/// elements of the parameter to `values`. Throws Error(invalid_argument) on another method.
void initial_values(const Value& parameter, std::string_view method, std::uint64_t seed,
                    HostPool& pool, std::span<float> values);

}  // namespace dlprim
