// SPDX-License-Identifier: MIT
// HostActivation: an activation of many floats at once, for epilogues of host engines.
#pragma once

#include "engine/pointwise/tape.hpp"

#include <cstdint>
#include <string_view>

namespace dlprim {

class HostActivation {
  public:
    HostActivation(std::string_view name, double alpha, double beta);
    /// Replaces v[i] for i < count. Any number of threads may call it.
    void apply(float* v, std::int64_t count) const;

  private:
    void fill_constants(float* lines) const;
    void apply_chunk(float* v, std::int64_t count, float* lines) const;

    pointwise::Tape tape_;
    double alpha_, beta_;
    std::uint64_t id_;  ///< of this activation and its copies, among all of the process
};

}  // namespace dlprim
