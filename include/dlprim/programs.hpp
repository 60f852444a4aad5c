// SPDX-License-Identifier: MIT
// planned_programs(): the OpenCL programs that a network's plan would build on a device, as text.
// write_programs(): those that a context has compiled, for other processes and machines.
//
// A maker's compiler can try them where the device is not: Context("file:PATH") opens a device that
// a file describes, and scripts/offline.py compiles what dlprim_tune --write-kernels writes.
//
// Ownership: a result is plain data that belongs to the caller.
//
// Threads: one thread at a time for a context, as for nets (dlprim/context.hpp).
#pragma once

#include <dlprim/namespace.hpp>
#include <dlprim/net.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace dlprim {

/// A kernel as one launch of the plan uses it.
struct PlannedKernel {
    std::string name;    ///< in the program's text
    std::string node;    ///< the node that it computes, or "reorder <value>"
    std::string type;    ///< operator type, or "Reorder", "Pack"
    std::string engine;  ///< empty for launches that join several
    std::string part;    ///< "setup" (once, for constants), "forward", "backward", "update"
    std::array<std::size_t, 3> global{1, 1, 1};  ///< work-items
    std::array<std::size_t, 3> local{0, 0, 0};   ///< of a work-group; all 0: the driver chooses
};

struct PlannedProgram {
    std::string name;     ///< the file of kernels/ that it comes from: "conv2d/winograd.cl"
    std::string source;   ///< OpenCL C, with its includes
    std::string options;  ///< build options: "-DTX=16 -DTY=16"
    std::vector<PlannedKernel> kernels;  ///< those that the plan launches, in its order
};

/// The distinct programs of the plan for the shapes that the net has now, in the order in which
/// they are first used. With `solver`, those of its steps. Plans anew, and compiles and runs
/// nothing. What a device without OpenCL computes has no programs.
std::vector<PlannedProgram> planned_programs(const Net& net, const SolverOptions* solver = nullptr);

/// Writes the programs that the context has compiled, and what was found out for them (functions
/// that a driver computes wrongly, checks of engines), to a folder that other processes read if
/// DLPRIM_PROGRAMS names it, or if it is share/dlprim-SOVERSION/programs of their installation.
/// They serve devices of the same name and driver, and on PoCL processors of the same class, and
/// the same version of the library. Call it after what is to be fast has run once. Files of other
/// programs stay in the folder. Waits for the device. Returns the number of programs, which is 0 on
/// the host. Throws Error(io), and Error(unsupported) for a device that a file describes.
std::size_t write_programs(const Context& context, const std::string& folder);

}  // namespace dlprim
