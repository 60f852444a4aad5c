// SPDX-License-Identifier: MIT
// How long the launches of a part take, by a plan or measured, and how long moves take.
#pragma once

#include "plan/plan.hpp"

#include <dlprim/context.hpp>
#include <dlprim/net.hpp>
#include <dlprim/solver_options.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class PlacedNetImpl;

/// Seconds of launches, by the names of their nodes.
using LaunchTimes = std::vector<std::pair<std::string, double>>;

/// The least that the device's peaks allow, and the time of a launch.
LaunchTimes planned_times(const Plan& plan, const Context& context);

/// The launches of the fastest of some steps of a net, or of forward alone. In the first of them
/// drivers may still compile.
std::vector<NodeReport> fastest_profile(Net& net, bool backward);

/// Compiles a part, gives its parameters first values and runs it a few times, as one of a training
/// with the solver if that is given. The net of the part must not be used for anything else.
LaunchTimes measured_times(PlacedNetImpl& net, int part, const SolverOptions* solver);

/// Of moves between devices: seconds of a small one, and bytes per second of large ones, between
/// the two for which they are slowest. Nothing for one device.
struct LinkTimes {
    double seconds = 0, bytes_per_second = 0;
};
std::optional<LinkTimes> measured_link(const std::vector<Context>& contexts);

}  // namespace dlprim
