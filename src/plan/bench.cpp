// SPDX-License-Identifier: MIT
// Bench: measures candidates for one problem.
#include "plan/bench.hpp"

#include "base/text.hpp"
#include "check/draw.hpp"
#include "engine/disabled.hpp"
#include "engine/laid_out.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace dlprim {

namespace {

using Clock = std::chrono::steady_clock;

/// The longest estimate with which the reference engine is used for expected results.
constexpr double affordable_seconds = 2;

}  // namespace

Bench::Bench(ContextImpl& context, const Problem& problem)
    : context_(context), problem_(problem), inputs_(draw_inputs(problem, {})) {
    context_.queue().finish();  // so that what earlier work refused is not a candidate's fault
}

void Bench::expect(const TuneCandidate& favourite) {
    const Traits& device = context_.traits();
    const auto engines = EngineRegistry::instance().of(problem_.op, device.host);
    const auto last = std::find_if(engines.rbegin(), engines.rend(), [&](const Engine* engine) {
        return bool(usable(context_, *engine, problem_));
    });
    if (last != engines.rend()) {
        TuneCandidate reference{*last, (*last)->layouts(device, problem_).front(), {}, 0, true};
        const Problem laid = with_layouts(problem_, reference.layouts);
        reference.tuning = (*last)->default_tuning(device, laid);
        reference.estimate = (*last)->estimate(device, laid, reference.tuning);
        if (reference.estimate <= affordable_seconds) try {
                EngineRun run = prepared(reference);
                run.run();
                expected_ = run.results(true);
                return;
            } catch (const Error& error) {
                log(LogLevel::info, cat("tuning: ", (*last)->name(), ": ", error.what()));
            }
    }
    EngineRun run = prepared(favourite);
    run.run();
    expected_ = run.results(true);
}

double Bench::measure(const TuneCandidate& candidate, std::string& wrong) {
    EngineRun run = prepared(candidate);
    run.run();
    const Excess excess = largest_excess(problem_, run.results(true), expected_, false);
    if (excess.times > 0) {
        wrong = cat("engine ", candidate.engine->name(), " is wrong: ", excess.what);
        return INFINITY;
    }
    const auto seconds = [&](int times) {
        const auto start = Clock::now();
        run.run(times);
        return std::chrono::duration<double>(Clock::now() - start).count() / times;
    };
    const double once = seconds(1);
    const int times = std::clamp(static_cast<int>(5e-3 / std::max(once, 1e-7)), 1, 200);
    return std::min({seconds(times), seconds(times), seconds(times)});
}

EngineRun Bench::prepared(const TuneCandidate& candidate) {
    const EngineWay way{candidate.engine, with_layouts(problem_, candidate.layouts),
                        candidate.tuning};
    return EngineRun(context_, context_, way, inputs_);
}

}  // namespace dlprim
