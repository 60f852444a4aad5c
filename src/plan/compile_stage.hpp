// SPDX-License-Identifier: MIT
// CompileStage: compiles all programs of a plan together.
#pragma once

#include "plan/plan.hpp"
#include "plan/plan_options.hpp"
#include "runtime/program_builds.hpp"

#include <cstddef>
#include <exception>
#include <map>
#include <string>
#include <vector>

namespace dlprim {

/// Compiles a plan's launches. Their distinct programs are compiled concurrently on all cores.
/// Failures are reported as if steps were compiled one after the other, so that which engine is
/// disabled does not depend on threads.
class CompileStage {
  public:
    CompileStage(ContextImpl& context, const PlanOptions& options)
        : context_(context), options_(options) {}

    /// Adds a step and the programs that its launch requested.
    void add(Step& step, const PendingPrograms& programs);
    /// Throws EngineFailed.
    void run();

  private:
    struct Entry {
        Step* step;
        std::vector<std::size_t> programs;  ///< numbers of its programs that are not compiled yet
    };

    /// Makes the kernels of a step.
    static void finish(const Entry& entry, const std::vector<std::exception_ptr>& errors);

    ContextImpl& context_;
    const PlanOptions& options_;
    PendingPrograms programs_;  ///< distinct programs
    std::vector<std::string> wanted_by_;
    std::map<const PendingProgram*, std::size_t> numbers_;
    std::vector<Entry> steps_;
};

}  // namespace dlprim
