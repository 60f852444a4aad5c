// SPDX-License-Identifier: MIT
// Checkpoints of a placed network, which hold no trace of the placement: the file is the one that a
// Solver writes for the whole network on one device. The state of all trained parameters lies in
// one dataset, in the order that parameters have in the whole network; each part has a piece for
// each of its own.
#pragma once

#include "api/placement/shard_inputs.hpp"
#include "api/solver_impl.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class PlacedNetImpl;
class PlacedSolverImpl;

/// What a placed solver consists of.
struct PlacedTraining {
    PlacedNetImpl& net;
    const SolverOptions& options;
    double& rate;
    std::vector<ShardInputs::Shard>& fed;  ///< of a batch that lacks other shards
    std::vector<SolverImpl*> solvers;      ///< of the parts that have parameters to train
};
PlacedTraining training_of(PlacedSolverImpl& solver);

/// As SolverImpl::write_checkpoint() and read_checkpoint().
void write_checkpoint(Hdf5Writer& file, const PlacedTraining& training,
                      const std::map<std::string, double>& extra);
std::map<std::string, double> read_checkpoint(const Hdf5Reader& file,
                                              const PlacedTraining& training);

}  // namespace dlprim
