// SPDX-License-Identifier: MIT
// Tuning by measurement, one problem after the other.
#include "plan/tune.hpp"

#include "base/text.hpp"
#include "engine/database.hpp"
#include "engine/disabled.hpp"
#include "engine/laid_out.hpp"
#include "graph/operator.hpp"
#include "plan/bench.hpp"
#include "plan/choose.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace dlprim {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Decides when a tuning run ends, and reports its progress.
class Watch {
  public:
    explicit Watch(const PlanOptions& options) : options_(options) {}
    bool is_over() const { return seconds_since(start_) > options_.tune_seconds; }
    void tell(const std::string& what, int done, int total) const {
        if (options_.progress) options_.progress(what, done, total);
    }

  private:
    const PlanOptions& options_;
    const Clock::time_point start_ = Clock::now();
};

std::vector<TuneCandidate> candidates_of(ContextImpl& context, const Problem& problem) {
    const Traits& device = context.traits();
    std::vector<TuneCandidate> all;
    for (const Engine* engine : EngineRegistry::instance().of(problem.op, device.host)) {
        if (!usable(context, *engine, problem)) continue;
        const std::size_t before = all.size();
        for (const LayoutChoice& choice : engine->layouts(device, problem)) {
            const Problem laid = with_layouts(problem, choice);
            bool first = true;
            for (Tuning& tuning : tunings_of(*engine, device, laid)) {
                const double estimate = engine->estimate(device, laid, tuning);
                all.push_back({engine, choice, std::move(tuning), estimate, first});
                first = false;
            }
        }
        check_tuning_count(*engine, all.size() - before, problem);
    }
    // The preferred engine comes first.
    std::stable_sort(all.begin(), all.end(), [](const TuneCandidate& a, const TuneCandidate& b) {
        return std::pair(!a.standard, a.estimate) < std::pair(!b.standard, b.estimate);
    });
    return all;
}

/// Returns the fastest row of each engine and layout, because the best layout depends on the node's
/// neighbours. Returns nothing if the time ends before all candidates were tried: stored problems
/// are not measured again, and the best candidate might be among those that are missing.
std::optional<std::vector<TuningRow>> tune_problem(ContextImpl& context, const Problem& problem,
                                                   const std::vector<TuneCandidate>& candidates,
                                                   const Watch& watch,
                                                   const std::function<void(std::size_t)>& progress,
                                                   std::set<std::string>& wrong) {
    Bench bench(context, problem);
    bench.expect(candidates.front());
    std::vector<TuningRow> rows;
    double best = INFINITY;
    std::map<const Engine*, double> standard;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const TuneCandidate& candidate = candidates[i];
        if (watch.is_over()) return std::nullopt;
        progress(i);
        // Skip candidates that are hopeless by their estimate or by the default tuning of their
        // engine.
        if (candidate.estimate > 8 * best) continue;
        const auto known = standard.find(candidate.engine);
        if (known != standard.end() && !candidate.standard && known->second > 2 * best) continue;
        double seconds = INFINITY;
        std::string why;
        try {
            seconds = bench.measure(candidate, why);
        } catch (const Error& error) {
            log(LogLevel::info, cat("tuning: ", candidate.engine->name(), ": ", error.what()));
        }
        if (!why.empty()) {
            log(LogLevel::warning, "tuning: " + why);
            wrong.emplace(candidate.engine->name());
        }
        if (candidate.standard) {
            double& least = standard.try_emplace(candidate.engine, INFINITY).first->second;
            least = std::min(least, seconds);
        }
        if (std::isinf(seconds)) continue;
        best = std::min(best, seconds);
        TuningRow found{std::string(candidate.engine->name()), candidate.layouts.name(),
                        candidate.tuning, seconds, false};
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const TuningRow& r) {
            return r.engine == found.engine && r.layout == found.layout;
        });
        if (row == rows.end())
            rows.push_back(std::move(found));
        else if (seconds < row->seconds)
            *row = std::move(found);
    }
    return rows;
}

/// Whether the problem was measured; computed rows are replaced.
bool is_measured(ContextImpl& context, const Problem& problem) {
    const std::vector<KnownTuning> known = known_tunings(context, problem);
    return !known.empty() && !known.front().computed;
}

}  // namespace

void tune_problems(ContextImpl& context, const Graph& graph, const std::vector<char>& constant,
                   const PlanOptions& options, std::vector<std::string>& notes) {
    const Watch watch(options);
    std::vector<std::pair<std::string, Problem>> problems;
    std::set<std::string> seen;
    for (const Node& node : graph.nodes) {
        if (node.op->is_view() || !node.engine.empty()) continue;
        Problem problem = problem_of(context.traits(), graph, node, constant);
        if (!seen.insert(problem.key(false)).second || is_measured(context, problem)) continue;
        problems.emplace_back(node.name, std::move(problem));
    }
    const int total = static_cast<int>(problems.size());
    int measured = 0, done = 0;
    for (const auto& [name, problem] : problems) {
        if (watch.is_over()) break;
        const std::vector<TuneCandidate> candidates = candidates_of(context, problem);
        if (candidates.size() < 2) {
            ++done;
            continue;
        }
        const auto progress = [&, name = name](std::size_t candidate) {
            watch.tell(cat("tuning ", name, ", ", candidate + 1, " of ", candidates.size()), done,
                       total);
        };
        std::set<std::string> wrong;
        try {
            const auto rows = tune_problem(context, problem, candidates, watch, progress, wrong);
            if (!rows) break;
            if (!rows->empty()) {
                store_tunings(context, problem, *rows);
                ++measured;
            }
        } catch (const Error& error) {
            // For example, there is no memory for its operands. The estimates are used instead.
            notes.push_back(cat("tuning '", name, "': ", error.what()));
        }
        for (const std::string& engine : wrong)
            notes.push_back(
                cat("tuning '", name, "': results of engine ", engine,
                    " are wrong, and the engine is ignored; the log says how far they are "
                    "off"));
        ++done;
    }
    context.trim();
    watch.tell("", total, total);
    notes.push_back(cat("tuned ", measured, measured == 1 ? " problem" : " problems"));
    if (done < total)
        notes.push_back(
            cat("the time for tuning was too short for ", total - done, " of ", total, " problems",
                measured > 0 ? "; another run continues with them" : "; give it more time"));
}

std::vector<KnownRows> known_rows(const Context& context) {
    OperatorRegistry::instance();  // registers the engines, too
    return count_tunings(context.info());
}

}  // namespace dlprim
