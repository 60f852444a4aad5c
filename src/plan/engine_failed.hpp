// SPDX-License-Identifier: MIT
// EngineFailed: what is thrown where engines of a plan do not work, and the one way to go on: they
// are disabled, and what used them is planned again without them. NoEngine: the device has no
// engine for a node.
#pragma once

#include "engine/disabled.hpp"
#include "plan/trust/trust.hpp"

#include <dlprim/error.hpp>

#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class EngineFailed : public Error {
  public:
    enum class Kind : std::uint8_t {
        build,   ///< its kernels cannot be built
        launch,  ///< the device refused its launch when a part of the plan ran for the first time
        wrong,   ///< checks have found results that are wrong (plan/trust/trust.hpp)
    };
    EngineFailed(Kind how, const Error& error, std::vector<FailedEngine> all)
        : Error(error.kind(), error.what()), failure(how), engines(std::move(all)) {}
    Kind failure;
    std::vector<FailedEngine> engines;
    /// After a launch: the part's inputs are lost with the plan, so that forward must run again
    /// first. States are as they were before the forward run.
    bool rerun_forward = false;
};

/// No engine of the device computes a node.
class NoEngine : public Error {
  public:
    NoEngine(const std::string& what, std::string node_name)
        : Error(ErrorKind::unsupported, what), node(std::move(node_name)) {}
    std::string node;
};

/// Calls attempt() and returns its result. Where engines fail in it, disables them, calls
/// again(failed) and tries once more. Throws what attempt() throws otherwise, and EngineFailed
/// where all of these engines were disabled before: then no other one can help.
template <typename Attempt, typename Again>
auto retry_without_failed_engines(ContextImpl& context, const Attempt& attempt,
                                  const Again& again) {
    for (;;) {
        try {
            return attempt();
        } catch (const EngineFailed& failed) {
            const FailedEngine& first = failed.engines.front();
            if (failed.failure == EngineFailed::Kind::wrong
                    ? !disable_distrusted(context, failed.engines)
                    : !disable(context, first.key, first.why))
                throw;
            again(failed);
        }
    }
}
template <typename Attempt>
auto retry_without_failed_engines(ContextImpl& context, const Attempt& attempt) {
    return retry_without_failed_engines(context, attempt, [](const EngineFailed&) {});
}

}  // namespace dlprim
