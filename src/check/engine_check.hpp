// SPDX-License-Identifier: MIT
// EngineCheck: runs an engine on random data, and on edges, and compares its results with those of
// the host's engine for the same problem.
#pragma once

#include "check/draw.hpp"
#include "check/engine_run.hpp"

#include <optional>
#include <string>
#include <vector>

namespace dlprim {

class EngineCheck {
  public:
    enum class Outcome {
        right,
        wrong,
        unknown,  ///< nothing could be compared, or it is not clear which of the two is wrong
        failed,   ///< the engine does not build or run
    };
    struct Finding {
        Outcome outcome = Outcome::unknown;
        std::string why;  ///< of all but right
    };

    /// `device` is the one whose engine is checked, and `host` a context of the host.
    /// If there is a runner, it runs the launches of the checked engine. With a margin, of so many
    /// elements, an engine is wrong, too, for what EngineRun::faults() finds.
    EngineCheck(ContextImpl& device, ContextImpl& host, EngineRun::Runner runner = {},
                std::uint64_t margin = 0)
        : device_(device), host_(host), runner_(std::move(runner)), margin_(margin) {}

    /// Checks the engine on a problem with its layouts set. An engine counts as wrong if its
    /// results differ from the host's on two kinds of random data, or on edges, and are not those
    /// of the device's reference engine either. Waits for the device.
    Finding run(const Engine& engine, const Problem& problem, const Tuning& tuning);

    /// How long the host will take by its engine's estimate, in seconds; infinity if it has none
    /// for the problem.
    double host_seconds(const Problem& problem) const;

  private:
    /// The host's engine, with plain layouts, or none.
    EngineWay on_host(const Problem& problem) const;
    /// The device's reference engine, or none if it is the given one.
    EngineWay reference(const Engine& engine, const Problem& problem) const;
    /// What is drawn, in the plain layout. Elements that share a place have one value.
    static std::vector<PlainBytes> make_inputs(const Problem& problem, const Draw& draw);
    /// Compares the results for one draw. Nothing where they are right.
    std::optional<Finding> compare(const Engine& engine, const Problem& problem,
                                   const Tuning& tuning, Draw draw);
    /// What the host makes of the inputs.
    Results wanted_results(const EngineWay& host, const Problem& problem,
                           const std::vector<PlainBytes>& inputs);
    /// Whether the device's reference engine has found the same, or nothing if there is no other.
    std::optional<bool> reference_agrees(const Engine& engine, const Problem& problem,
                                         const std::vector<PlainBytes>& inputs,
                                         const Results& found, bool elementwise);
    /// Converts layouts by the host, which no compiler of OpenCL has touched.
    Results results(ContextImpl& context, const EngineWay& way,
                    const std::vector<PlainBytes>& inputs);
    /// The same of the checked engine. `faults` are those that a margin shows.
    Results checked_results(const EngineWay& way, const std::vector<PlainBytes>& inputs,
                            std::string& faults);

    ContextImpl& device_;
    ContextImpl& host_;
    EngineRun::Runner runner_;
    std::uint64_t margin_;
};

}  // namespace dlprim
