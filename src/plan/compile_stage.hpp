// SPDX-License-Identifier: MIT
// CompileStage: all programs of a plan, compiled together.
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

/// A plan's launches on their way to be compiled. Programs are compiled together, each once, on all
/// cores; what fails is told as if steps were compiled one after the other, so that which engine is
/// disabled does not depend on threads.
class CompileStage {
  public:
    CompileStage(ContextImpl& context, const PlanOptions& options)
        : context_(context), options_(options) {}

    /// The step's launch, with the programs that were asked for while it was made.
    void add(Step& step, const PendingPrograms& programs);
    /// Throws EngineFailed.
    void run();

  private:
    struct Entry {
        Step* step;
        std::vector<std::size_t> programs;  ///< by number, those that were not compiled
    };

    /// Makes the kernels of a step.
    static void finish(const Entry& entry, const std::vector<std::exception_ptr>& errors);

    ContextImpl& context_;
    const PlanOptions& options_;
    PendingPrograms programs_;  ///< distinct
    std::vector<std::string> wanted_by_;
    std::map<const PendingProgram*, std::size_t> numbers_;
    std::vector<Entry> steps_;
};

}  // namespace dlprim
