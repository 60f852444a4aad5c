// SPDX-License-Identifier: MIT
// Initial values of parameters, made by Philox. They depend only on the seed and the parameter's
// name.
#pragma once

#include "graph/graph.hpp"
#include "runtime/host_pool.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace dlprim {

/// Throws Error(invalid_argument) on a method that initial_values() does not know.
void check_initialization(std::string_view method);

/// `method`: "default" (each operator's own), "he" (normal, std sqrt(2 / fan_in); He et al., 2015)
/// or "xavier" (uniform, bound sqrt(6 / (fan_in + fan_out)); Glorot and Bengio, 2010). "he" and
/// "xavier" apply to parameters that have fans; other parameters get their default. Throws
/// Error(invalid_argument) on another method.
std::vector<float> initial_values(const Value& parameter, std::string_view method,
                                  std::uint64_t seed, HostPool& pool);

}  // namespace dlprim
