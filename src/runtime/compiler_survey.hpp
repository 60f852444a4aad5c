// SPDX-License-Identifier: MIT
// CompilerSurvey: what an OpenCL driver's compiler does to its process. Some compilers end the
// process over a text that they do not understand. So one is first tried in a process of its own
// (runtime/compile_process.hpp).
#pragma once

#include "runtime/compile_process.hpp"
#include "runtime/compile_target.hpp"
#include "runtime/program.hpp"

#include <filesystem>
#include <mutex>
#include <optional>

namespace dlprim {

struct CompilerSurvey {
    /// Whether it compiles Clang's __builtin_prefetch, which OpenCL does not name.
    bool prefetches = true;
    /// Whether it has ended its process. Then each new program is first compiled in another one.
    bool needs_shield = false;
    /// Whether it ends its process when a kernel is launched. Then that other process launches the
    /// kernels of each program, too.
    bool ends_at_launch = false;
};

/// Whether a process that compiles for the target launches the program's kernels before it keeps
/// them, because the survey found that this may end it, or to find that out.
bool wants_launches(const CompileTarget& target, const ProgramSource& source);

/// The survey in the target's binary cache.
std::optional<CompilerSurvey> known_survey(const CompileTarget& target);

/// The survey in the cache; else has `executable` compile a program with a prefetch, and if that
/// ends it, launch a kernel with an array of vectors. Keeps what came of it. Where no process opens
/// the device, the compiler counts as sound.
CompilerSurvey survey_compiler(const CompileTarget& target,
                               const std::filesystem::path& executable);

/// Compiles programs in a process that may be ended by them. Several threads may use it.
class CompileShield {
  public:
    explicit CompileShield(const CompileTarget& target) : target_(target) {}
    /// Whether the compiler survives the program. The cache keeps that it does not.
    bool survives(const ProgramSource& source, const std::filesystem::path& executable);

  private:
    const CompileTarget& target_;
    const std::atomic<bool> stop_{false};
    std::mutex mutex_;
    std::optional<CompileProcess> process_;  ///< serves until a program ends it
};

}  // namespace dlprim
