// SPDX-License-Identifier: MIT
// survey_compiler and CompileShield. What they find is kept in the binary cache, under the device's
// key.
#include "runtime/compiler_survey.hpp"

#include "base/text.hpp"

#include <dlprim/log.hpp>

#include <string>

namespace dlprim {
namespace {

using Result = CompileProcess::Result;

const ProgramSource prefetching{"a trial of prefetches",
                                "kernel void trial(global float* x) {\n"
                                "    __builtin_prefetch((const void*)(size_t)(x + 64));\n"
                                "    x[get_global_id(0)] = 0.0f;\n}\n",
                                ""};

// zink 25 ends its process over it (tests/implementations/vector_array.c).
const ProgramSource launching{
    "a trial of launches",
    "kernel __attribute__((reqd_work_group_size(1, 1, 1))) void trial(global float* x) {\n"
    "    float4 sums[2];\n"
    "    for (int i = 0; i < 2; ++i) sums[i] = x[i];\n"
    "    for (int i = 0; i < 2; ++i) sums[i] = sums[i] + 1.0f;\n"
    "    x[0] = sums[0].x + sums[1].y;\n}\n",
    ""};

std::string survey_key(const CompileTarget& target) {
    return cat(target.device_key(), "what its compiler does to its process");
}

}  // namespace

std::optional<CompilerSurvey> known_survey(const CompileTarget& target) {
    const auto known = target.disk().enabled() ? target.disk().load(survey_key(target))
                                               : std::optional<std::string>();
    if (!known || known->size() != 3) return std::nullopt;
    return CompilerSurvey{known->at(0) == '1', known->at(1) == '1', known->at(2) == '1'};
}

bool wants_launches(const CompileTarget& target, const ProgramSource& source) {
    if (source.name == launching.name) return true;
    const auto survey = known_survey(target);
    return survey && survey->ends_at_launch;
}

CompilerSurvey survey_compiler(const CompileTarget& target,
                               const std::filesystem::path& executable) {
    if (const auto known = known_survey(target)) return *known;
    CompilerSurvey survey;
    const std::atomic<bool> stop{false};
    CompileProcess process(executable, target, stop, {});
    if (process.ready()) {
        const Result result = process.compile(prefetching);
        survey.prefetches = result == Result::made || result == Result::not_kept;
        survey.needs_shield = result == Result::lost;
    }
    if (survey.needs_shield) {
        CompileProcess another(executable, target, stop, {});
        survey.ends_at_launch = another.ready() && another.compile(launching) == Result::lost;
    }
    if (survey.needs_shield)
        log(LogLevel::info, cat("the compiler of ", target.device().str(),
                                " has ended a process; each new program is first compiled in a "
                                "process of its own"));
    target.disk().save(survey_key(target),
                       cat(survey.prefetches ? '1' : '0', survey.needs_shield ? '1' : '0',
                           survey.ends_at_launch ? '1' : '0'));
    return survey;
}

bool CompileShield::survives(const ProgramSource& source, const std::filesystem::path& executable) {
    const std::string key = cat(target_.device_key(), source.options, '\n', source.source,
                                "\nends the compiler's process");
    if (target_.disk().load(key)) return false;
    const std::lock_guard lock(mutex_);
    if (!process_) {
        process_.emplace(executable, target_, stop_, CompileProcess::Patience{});
        if (!process_->ready()) {
            process_.reset();
            return true;  // no process opens the device, so that there is no shield
        }
    }
    if (process_->compile(source) != Result::lost) return true;
    process_.reset();
    target_.disk().save(key, "yes");
    return false;
}

}  // namespace dlprim
