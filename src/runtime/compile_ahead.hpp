// SPDX-License-Identifier: MIT
// Has other processes compile programs into the binary cache, from which this process loads them.
#pragma once

#include "runtime/compile_process.hpp"
#include "runtime/program_builds.hpp"

#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace dlprim {

/// Which executable compiles, and in how many processes.
struct CompileCrew {
    std::filesystem::path executable;
    int processes = 1;
    CompileProcess::Patience patience = {};
};

/// Decides whether processes compile these programs of one device faster than `threads` threads: if
/// so, returns how many. They do if there are many programs and three threads or more; where a
/// driver compiles at the launch, if there are four programs and two threads. If
/// DLPRIM_COMPILE_PROCESSES is set, it decides. Throws Error(invalid_argument) if that is not a
/// number from 0 to 1024.
std::optional<CompileCrew> crew_for(const PendingPrograms& programs, int threads);

/// The processes that stay and compile for the device of these programs, or nullptr.
BackgroundCompiles* background_for(const PendingPrograms& programs);

/// The processes for programs of a device that are compiled while their caller goes on: none where
/// callers wait for their own programs, because the driver compiles several at a time or no process
/// can compile for this one.
std::optional<CompileCrew> lasting_crew(const CompileTarget& target, int threads);

/// Does what compile_together() (runtime/program_builds.hpp) does, by processes that stay.
std::vector<std::exception_ptr> compile_in_background(
    const PendingPrograms& programs, BackgroundCompiles& background,
    const std::function<void(std::size_t done, std::size_t next)>& begins = {});

/// Does what compile_together() (runtime/program_builds.hpp) does, by processes. The calling thread
/// loads what they have made. Until the first process is ready it compiles the shortest programs
/// itself, and at the end whatever the processes have not compiled.
std::vector<std::exception_ptr> compile_by_processes(
    const PendingPrograms& programs, const CompileCrew& crew,
    const std::function<void(std::size_t done, std::size_t next)>& begins = {});

}  // namespace dlprim
