// SPDX-License-Identifier: MIT
// Bench: runs engines on one problem with its own memory, for the tuner. It checks whether their
// results are right and measures how long they take.
#pragma once

#include "check/engine_run.hpp"

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
    /// Draws the problem's inputs as checks of engines do. The problem must outlive the Bench.
    Bench(ContextImpl& context, const Problem& problem);

    /// Computes the expected results. They come from the reference engine, which is the last one
    /// that applies, if its estimate is at most a few seconds, and otherwise from `favourite`.
    void expect(const TuneCandidate& favourite);

    /// Seconds of one run. If a result differs from the expected one, returns infinity and says so
    /// in `wrong`.
    double measure(const TuneCandidate& candidate, std::string& wrong);

  private:
    EngineRun prepared(const TuneCandidate& candidate);

    ContextImpl& context_;
    const Problem& problem_;
    std::vector<PlainBytes> inputs_;
    Results expected_;  ///< samples of the outputs
};

}  // namespace dlprim
