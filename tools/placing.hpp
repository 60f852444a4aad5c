// SPDX-License-Identifier: MIT
// Options of commands for networks on several devices: who chooses the device of each operator, and
// how much memory of each device it may take.
#pragma once

#include <dlprim/placed_net.hpp>

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace dlprim::tools {

/// Adds --place and --device-memory. Values that do not have their form count as wrong usage.
void add_placement_options(CLI::App& app, PlacementOptions& placement);

/// Throws Error(invalid_argument) where placement is asked for and `devices` binds no names
/// (names_devices()).
void check_placement(const PlacementOptions& placement, const std::string& devices);

}  // namespace dlprim::tools
