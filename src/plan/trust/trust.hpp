// SPDX-License-Identifier: MIT
// Trust in engines: before a network or an eager call uses an engine's kernels on a device for the
// first time, their results are compared with those of the host on a small problem. What came of it
// is kept in the cache folder, so that later processes need not check again. docs/engines/trust.md
// has the picture.
#pragma once

#include "engine/disabled.hpp"
#include "engine/engine.hpp"
#include "runtime/program_builds.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace dlprim {

/// An engine that a plan uses, and for what.
struct EngineUse {
    const Engine* engine = nullptr;
    Problem problem;  ///< with its layouts set
    Tuning tuning;
    std::string where;         ///< "[Convolution 'conv1'] ", for messages
    PendingPrograms programs;  ///< that its launch has requested
    bool any_size = false;     ///< whether on the host a check covers problems of other sizes
};

/// While it lives, engines that the calling thread plans with are not checked: whoever has it looks
/// at their results.
class EnginesUnchecked {
  public:
    EnginesUnchecked() noexcept { ++depth_; }
    ~EnginesUnchecked() { --depth_; }
    EnginesUnchecked(const EnginesUnchecked&) = delete;
    EnginesUnchecked& operator=(const EnginesUnchecked&) = delete;
    static bool active() noexcept { return depth_ > 0; }

  private:
    inline static thread_local int depth_ = 0;
};

/// Whether engines are checked: DLPRIM_TRUST is not 0, and the thread has no EnginesUnchecked.
bool checks_engines();

struct CheckedEngines {
    std::vector<FailedEngine> wrong;
    /// Uses that are not checked yet because their programs are not compiled: they run in chains.
    std::vector<EngineUse> later;
};
/// Checks the uses that no earlier check covers. Uses of one engine with the same programs and
/// types share a check. Waits for the device. Which uses are checked depends on no measured time.
CheckedEngines check_engines(ContextImpl& context, const std::vector<EngineUse>& uses);

/// Checks CheckedEngines::later. `run` runs a launch by a program of another kind, and waits for
/// it; it returns false if it cannot.
std::vector<FailedEngine> check_engines_by(
    ContextImpl& context, const std::vector<EngineUse>& uses,
    const std::function<bool(Launch&, std::span<const BufferRef>)>& run);

/// Disables wrong engines for their problems, and writes a line to the log for each engine. Returns
/// false if all of them were disabled before, which means that no other engine can help.
bool disable_distrusted(ContextImpl& context, const std::vector<FailedEngine>& wrong);
/// Whether it was disabled so for the problem.
bool is_distrusted(ContextImpl& context, const Engine& engine, const Problem& problem);
/// Throws EngineFailed (plan/engine_failed.hpp) unless the list is empty.
void refuse_distrusted(std::vector<FailedEngine> wrong);

}  // namespace dlprim
