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
    /// Adds programs of chains. If one does not build, its steps are launched one by one, so its
    /// error is left to whoever makes the chain.
    void add_chains(const PendingPrograms& programs);
    /// Throws EngineFailed.
    void run();

  private:
    struct Entry {
        Step* step;
        std::vector<std::size_t> programs;  ///< numbers of its programs that are not compiled yet
    };

    /// The number of a program that is to be compiled, for the name of what it is for.
    std::size_t number_of(const std::shared_ptr<const PendingProgram>& program,
                          const std::string& wanted_by);
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
