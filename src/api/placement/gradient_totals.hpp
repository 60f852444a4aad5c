// SPDX-License-Identifier: MIT
// GradientTotals: what the update of every part of a placed network needs to know of the gradients
// of all parts: the sum of their squares (SolverOptions::clip_norm), and whether all are finite
// (the loss scale). It has the bits that the update of the whole network computes on one device
// (train/update.hpp).
#pragma once

#include "api/solver_impl.hpp"

#include <utility>
#include <vector>

namespace dlprim {

class GradientTotals {
  public:
    /// `solvers` are those of the parts, in the order of the network.
    GradientTotals(std::vector<SolverImpl*> solvers, bool norm, bool overflow)
        : solvers_(std::move(solvers)), norm_(norm), overflow_(overflow) {}

    /// Sets the scalars of all updates to what the present gradients give. Waits for the devices.
    void share() const;

  private:
    void share_norm(const std::vector<Tensor>& gradients) const;
    void share_overflow(const std::vector<Tensor>& gradients) const;
    void set(const char* scalar, double value) const;

    std::vector<SolverImpl*> solvers_;
    bool norm_, overflow_;
};

}  // namespace dlprim
