// SPDX-License-Identifier: MIT
// CompileStage: compiles programs on all cores, then makes kernels in the order of the steps.
#include "plan/compile_stage.hpp"

#include "base/text.hpp"
#include "plan/engine_failed.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <chrono>

namespace dlprim {

namespace {

constexpr int most_threads = 16;  ///< each compiler needs some hundred MiB

}  // namespace

std::size_t CompileStage::number_of(const std::shared_ptr<const PendingProgram>& program,
                                    const std::string& wanted_by) {
    const auto [known, is_new] = numbers_.emplace(program.get(), programs_.size());
    if (is_new) {
        programs_.push_back(program);
        wanted_by_.push_back(wanted_by);
    }
    return known->second;
}

void CompileStage::add(Step& step, const PendingPrograms& programs) {
    steps_.push_back({&step, {}});
    for (const auto& program : programs)
        if (!program->compiled()) steps_.back().programs.push_back(number_of(program, step.name));
}

void CompileStage::add_chains(const PendingPrograms& programs) {
    for (const auto& program : programs)
        if (!program->compiled()) number_of(program, "all small steps as one");
}

void CompileStage::run() {
    const auto start = std::chrono::steady_clock::now();
    const int total = static_cast<int>(programs_.size());
    const int threads =
        total < 2 ? total : std::min({context_.pool().threads(), total, most_threads});
    const auto errors =
        compile_together(programs_, threads, [&](std::size_t done, std::size_t next) {
            if (options_.progress)
                options_.progress("compiling " + wanted_by_[next], static_cast<int>(done), total);
        });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (total > 0)
        log(LogLevel::info, cat("made ", total, " programs in ", seconds.count(), " s on ", threads,
                                threads == 1 ? " thread" : " threads"));
    for (const Entry& entry : steps_) finish(entry, errors);
    if (options_.progress && total > 0) options_.progress("", total, total);
}

void CompileStage::finish(const Entry& entry, const std::vector<std::exception_ptr>& errors) {
    const Step& step = *entry.step;
    try {
        for (const std::size_t program : entry.programs)
            if (errors[program]) std::rethrow_exception(errors[program]);
        step.launch->compile();
    } catch (const Error& error) {
        if (step.disable_key().empty() || error.kind() == ErrorKind::out_of_memory) throw;
        throw EngineFailed(EngineFailed::Kind::build, error, {{step.disable_key(), error.what()}});
    }
}

}  // namespace dlprim
