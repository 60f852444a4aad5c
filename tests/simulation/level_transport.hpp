// SPDX-License-Identifier: MIT
// The library's transport (collective/processes/transport.hpp) over its plugin for MPI
// (plugins/mpi.cpp), as SimGrid's MPI runs it.
#pragma once

#include "collective/processes/transport.hpp"

#include <memory>
#include <string>
#include <vector>

namespace dlprim::simulation {

/// Joins the ranks first, first + stride, ... of all ranks, of which this one is number `index`.
/// All ranks call it at once, each for a group that it is in; groups have different `color`s.
std::unique_ptr<Transport> open_transport(int color, int index, int count);

/// Waits for all ranks, and returns the simulated seconds since the start.
double meet_all();

}  // namespace dlprim::simulation
