// SPDX-License-Identifier: MIT
// RankPlace: which of how many processes of a run this one is, as mpirun, srun or torchrun have
// told it by environment variables.
#pragma once

#include <optional>
#include <string>

namespace dlprim {

struct RankPlace {
    int rank = 0, size = 1;
    int local_rank = 0, local_size = 1;  ///< among the run's processes on this host
    std::string starter;                 ///< "mpirun of Open MPI", for messages
    std::string transport;  ///< the plugin that serves it: "openmpi", "mpich" or "gloo"
    /// Where the first process listens, for transports that do not find it by themselves; an empty
    /// address and port 0 otherwise.
    std::string address;
    int port = 0;
    /// Whether torchrun's agent listens there, and keeps the address of the first process.
    bool has_agent = false;
    std::string attempt;  ///< which start of the run this is, where the agent counts them
};

/// What the variables say; nothing where none of them is set, or where they say that this process
/// is alone. DLPRIM_TRANSPORT names the plugin in place of the one that serves the starter. Throws
/// Error(invalid_argument) where variables are missing or contradict each other.
std::optional<RankPlace> place_from_environment();

}  // namespace dlprim
