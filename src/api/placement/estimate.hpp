// SPDX-License-Identifier: MIT
// estimate_placement: what choose_devices() needs to know of a network: the seconds and the memory
// of its operators on each device, and what moves between them.
//
// Seconds come from plans of the network for each device, without running anything: the least that
// the peaks of the device allow for each launch, and the time of a launch. Or they are measured,
// where what may run on the device fits into its memory. Memory is what an
// operator's parameters take with all that training keeps of them, and a share of the rest of the
// plan's memory by the size of what the operator makes.
#pragma once

#include "api/placement/choose_devices.hpp"
#include "graph/description.hpp"
#include "graph/graph.hpp"

#include <dlprim/placed_net.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace dlprim {

struct PlacementEstimate {
    /// Its operators are those of the network, or several that share parameters and so stay
    /// together. Its devices are those with contexts of their own.
    PlacementProblem problem;
    std::vector<std::vector<std::string>> operators;  ///< of the network, by the problem's
    std::vector<std::size_t> devices;                 ///< index in NamedDevice, by the problem's
    std::map<std::string, std::size_t> given;  ///< devices that operators name, by their name
};

/// `description` as it was read, and `whole` its graph before any pass.
PlacementEstimate estimate_placement(const std::vector<NamedDevice>& devices,
                                     const NetDescription& description, const Graph& whole,
                                     const NetOptions& options, const PlacementOptions& placement);

/// The bytes that may be taken on a device: its memory, or less where a limit says so for one of
/// the names of its context.
std::uint64_t memory_limit_of(const std::vector<NamedDevice>& devices, std::size_t device,
                              const PlacementOptions& placement);

}  // namespace dlprim
