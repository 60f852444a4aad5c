// SPDX-License-Identifier: MIT
// Engines that failed on a device.
#include "engine/disabled.hpp"

#include "base/text.hpp"

#include <dlprim/log.hpp>

#include <algorithm>

namespace dlprim {

namespace {

/// Why the engine failed on such a problem, or empty.
std::string reason(ContextImpl& context, const Engine& engine, const Problem& problem) {
    ContextImpl::Failures& failures = context.failures();
    const std::lock_guard lock(failures.mutex);
    if (failures.reasons.empty()) return {};
    const auto found = failures.reasons.find(disable_key(engine, problem));
    return found == failures.reasons.end() ? std::string() : found->second;
}

}  // namespace

std::string disable_key(const Engine& engine, const Problem& problem) {
    const auto is_constant = [](const Operand& operand) { return operand.constant; };
    if (std::none_of(problem.inputs.begin(), problem.inputs.end(), is_constant))
        return cat(engine.name(), '\n', problem.key(false));
    // Fusion asks before it is known which values are constant.
    Problem varying = problem;
    for (Operand& operand : varying.inputs) operand.constant = false;
    return cat(engine.name(), '\n', varying.key(false));
}

bool disable(ContextImpl& context, const std::string& key, const std::string& why, bool quiet) {
    if (!quiet)
        log(LogLevel::warning,
            cat("engine ", key.substr(0, key.find('\n')), " is disabled: ", why));
    ContextImpl::Failures& failures = context.failures();
    const std::lock_guard lock(failures.mutex);
    return failures.reasons.emplace(key, why).second;
}

bool has_failed(ContextImpl& context, const std::string& key) {
    ContextImpl::Failures& failures = context.failures();
    const std::lock_guard lock(failures.mutex);
    return failures.reasons.count(key) > 0;
}

Verdict usable(ContextImpl& context, const Engine& engine, const Problem& problem) {
    Verdict verdict = engine.is_applicable(context.traits(), problem);
    if (!verdict) return verdict;
    const std::string why = reason(context, engine, problem);
    return why.empty() ? verdict : Verdict::no("it failed on this device: " + why);
}

bool is_disabled(ContextImpl& context, const Engine& engine, const Problem& problem) {
    return !reason(context, engine, problem).empty();
}

}  // namespace dlprim
