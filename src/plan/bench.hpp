// SPDX-License-Identifier: MIT
// Bench: runs engines on one problem, on memory of its own: whether what they make is right, and
// how long they take. What the tuner asks.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// One way to compute a problem.
struct TuneCandidate {
    const Engine* engine;
    LayoutChoice layouts;
    Tuning tuning;
    double estimate;
    bool standard;  ///< the engine's default tuning
};

class Bench {
  public:
    /// Fills the problem's inputs: numbers of a normal distribution where they are activations or
    /// parameters, zeros elsewhere. The problem must outlive it.
    Bench(ContextImpl& context, const Problem& problem);

    /// What the others' results are held to: the reference engine's, which is the last of those
    /// that apply, where that takes a few seconds at most; else those of `favourite`.
    void expect(const TuneCandidate& favourite);

    /// Seconds of one run; infinite where a result is not what is expected, which `wrong` says.
    double measure(const TuneCandidate& candidate, std::string& wrong);

    /// The relative error, in L2, that results of float may have: what summing in another order, or
    /// by Winograd's way, comes to. Rounding factors to 11 bits, as for tf32, gives 3e-4.
    static constexpr double float_tolerance = 1e-5;

  private:
    using Memory = std::shared_ptr<Buffer>;
    /// What a run writes and reads.
    struct Run {
        Problem problem;
        std::vector<Memory> memory;
        std::vector<BufferRef> operands;
        std::unique_ptr<Launch> launch;
    };

    Run prepared(const TuneCandidate& candidate);
    /// A sample of each output of a run, in the plain layout.
    std::vector<std::vector<double>> results(const Run& run);
    std::vector<double> sample(const Buffer& buffer, std::uint64_t count, DType dtype);
    Memory reordered(const Buffer& from, const Operand& operand, const Layout& from_layout,
                     const Layout& to_layout);
    Memory laid_out(const TuneCandidate& candidate, const Problem& problem, std::size_t i);
    double tolerance(DType output) const;

    ContextImpl& context_;
    const Problem& problem_;
    std::vector<Memory> inputs_;
    std::vector<std::vector<double>> expected_;  ///< by output
};

}  // namespace dlprim
