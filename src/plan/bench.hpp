// SPDX-License-Identifier: MIT
// Bench: runs engines on one problem with its own memory, for the tuner. It checks whether their
// results are right and measures how long they take.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// One way to compute a problem: an engine, its layouts and a tuning.
struct TuneCandidate {
    const Engine* engine;
    LayoutChoice layouts;
    Tuning tuning;
    double estimate;
    bool standard;  ///< the engine's default tuning
};

class Bench {
  public:
    /// Fills the problem's inputs: activations and parameters with numbers of a normal
    /// distribution, others with zeros. The problem must outlive the Bench.
    Bench(ContextImpl& context, const Problem& problem);

    /// Computes the expected results. They come from the reference engine, which is the last one
    /// that applies, if its estimate is at most a few seconds, and otherwise from `favourite`.
    void expect(const TuneCandidate& favourite);

    /// Seconds of one run. If a result differs from the expected one, returns infinity and says so
    /// in `wrong`.
    double measure(const TuneCandidate& candidate, std::string& wrong);

  private:
    using Memory = std::shared_ptr<Buffer>;
    /// The operands of a run.
    struct Run {
        Problem problem;
        std::vector<Memory> memory;
        std::vector<BufferRef> operands;
        std::unique_ptr<Launch> launch;
    };

    Run prepared(const TuneCandidate& candidate);
    /// Samples of each output of a run, in the plain layout.
    std::vector<std::vector<double>> results(const Run& run);
    std::vector<double> sample(const Buffer& buffer, std::uint64_t count, DType dtype);
    Memory reordered(const Buffer& from, const Operand& operand, const Layout& from_layout,
                     const Layout& to_layout);
    Memory laid_out(const TuneCandidate& candidate, const Problem& problem, std::size_t i);

    ContextImpl& context_;
    const Problem& problem_;
    std::vector<Memory> inputs_;
    std::vector<std::vector<double>> expected_;  ///< by output
};

}  // namespace dlprim
