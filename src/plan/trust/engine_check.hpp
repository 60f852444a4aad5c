// SPDX-License-Identifier: MIT
// EngineCheck: runs an engine on random data, and on edges, and compares its results with those of
// the host's engine for the same problem.
#pragma once

#include "engine/engine.hpp"
#include "plan/trust/check_data.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
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

    /// Runs a launch whose programs are not compiled, and waits for it. Returns false if it cannot.
    using Runner = std::function<bool(Launch&, std::span<const BufferRef>)>;

    /// `device` is the one whose engine is checked, and `host` a context of the host.
    /// If there is a runner, it runs the launches of the checked engine.
    EngineCheck(ContextImpl& device, ContextImpl& host, Runner runner = {})
        : device_(device), host_(host), runner_(std::move(runner)) {}

    /// Checks the engine on a problem with its layouts set. An engine counts as wrong if its
    /// results differ from the host's on two kinds of random data, or on edges, and are not those
    /// of the device's reference engine either. Waits for the device.
    Finding run(const Engine& engine, const Problem& problem, const Tuning& tuning);

    /// How long the host will take by its engine's estimate, in seconds; infinity if it has none
    /// for the problem.
    double host_seconds(const Problem& problem) const;

  private:
    using Bytes = std::vector<std::byte>;
    using Results = std::vector<std::vector<double>>;  ///< of each output, in the plain layout

    struct Candidate {
        const Engine* engine = nullptr;
        Problem problem;
        Tuning tuning;
    };

    /// The host's engine, with plain layouts, or none.
    Candidate on_host(const Problem& problem) const;
    /// The device's reference engine, or none if it is the given one.
    Candidate reference(const Engine& engine, const Problem& problem) const;
    /// What is drawn, in the plain layout. Elements that share a place have one value.
    static std::vector<Bytes> make_inputs(const Problem& problem, const Draw& draw);
    /// Compares the results for one draw. Nothing where they are right.
    std::optional<Finding> compare(const Engine& engine, const Problem& problem,
                                   const Tuning& tuning, Draw draw);
    /// What the host makes of the inputs.
    Results wanted_results(const Candidate& host, const Problem& problem,
                           const std::vector<Bytes>& inputs);
    /// Whether the device's reference engine has found the same, or nothing if there is no other.
    std::optional<bool> reference_agrees(const Engine& engine, const Problem& problem,
                                         const std::vector<Bytes>& inputs, const Results& found,
                                         bool elementwise);
    Results results(ContextImpl& context, const Candidate& candidate,
                    const std::vector<Bytes>& inputs, const Runner& runner = {});
    /// Writes an input to the device in the layout that the engine wants.
    void write_input(ContextImpl& context, const Candidate& candidate, std::size_t i,
                     const Bytes& plain, const BufferRef& to);
    /// Converts between layouts, on the host.
    Bytes reordered(const Bytes& bytes, const Operand& operand, const Layout& from,
                    const Layout& to);
    /// The largest distance of an output relative to its tolerance: right up to 1. Of edges each
    /// element counts for itself, since the largest would hide all others.
    static double excess(const Problem& problem, const Results& found, const Results& wanted,
                         bool elementwise, std::string& where);

    ContextImpl& device_;
    ContextImpl& host_;
    Runner runner_;
};

}  // namespace dlprim
