// SPDX-License-Identifier: MIT
// EngineCheck: data, runs and comparisons.
#include "check/engine_check.hpp"

#include "base/text.hpp"
#include "engine/laid_out.hpp"
#include "runtime/refusals.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace dlprim {

namespace {

/// Whether all operands of a layout choice lie in the plain layout.
bool is_plain(const LayoutChoice& choice) {
    const auto plain = [](const Layout& layout) { return layout.is_plain(); };
    return std::all_of(choice.inputs.begin(), choice.inputs.end(), plain) &&
           std::all_of(choice.outputs.begin(), choice.outputs.end(), plain);
}

}  // namespace

EngineWay EngineCheck::on_host(const Problem& problem) const {
    // The last engine that applies: on the host itself, too, others are compared with it.
    EngineWay last;
    Problem plain = plain_problem(problem);
    plain.precision = Precision::fp32;
    for (Operand& input : plain.inputs) input.constant = false;
    for (const Engine* engine : EngineRegistry::instance().of(problem.op, true)) {
        if (!engine->is_applicable(host_.traits(), plain)) continue;
        const std::vector<LayoutChoice> choices = engine->layouts(host_.traits(), plain);
        if (std::any_of(choices.begin(), choices.end(), is_plain))
            last = {engine, plain, engine->default_tuning(host_.traits(), plain)};
    }
    return last;
}

double EngineCheck::host_seconds(const Problem& problem) const {
    const EngineWay host = on_host(problem);
    return host.engine == nullptr
               ? INFINITY
               : host.engine->estimate(host_.traits(), host.problem, host.tuning);
}

EngineWay EngineCheck::reference(const Engine& engine, const Problem& problem) const {
    EngineWay made;
    const Problem plain = plain_problem(problem);
    const auto engines = EngineRegistry::instance().of(problem.op, device_.is_host());
    if (engines.empty() || engines.back() == &engine || device_.is_host() ||
        !engines.back()->is_applicable(device_.traits(), plain))
        return made;
    made.engine = engines.back();
    made.problem = with_layouts(plain, made.engine->layouts(device_.traits(), plain).front());
    made.tuning = made.engine->default_tuning(device_.traits(), made.problem);
    return made;
}

std::vector<PlainBytes> EngineCheck::make_inputs(const Problem& problem, const Draw& draw) {
    std::vector<PlainBytes> inputs = draw_inputs(problem, draw);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        inputs[i] = with_shared_places(std::move(inputs[i]), problem.inputs[i]);
    return inputs;
}

Results EngineCheck::results(ContextImpl& context, const EngineWay& way,
                             const std::vector<PlainBytes>& inputs) {
    EngineRun run(context, host_, way, inputs);
    run.run();
    return run.results();
}

Results EngineCheck::checked_results(const EngineWay& way, const std::vector<PlainBytes>& inputs,
                                     std::string& faults) {
    EngineRun run(device_, host_, way, inputs, runner_, margin_);
    run.run();
    if (margin_ > 0) faults = run.faults();
    return run.results();
}

Results EngineCheck::wanted_results(const EngineWay& host, const Problem& problem,
                                    const std::vector<PlainBytes>& inputs) {
    if (problem.op != "Reorder") return results(host_, host, inputs);
    std::vector<double> values(static_cast<std::size_t>(problem.inputs[0].shape.numel()));
    convert(inputs[0].data(), problem.inputs[0].dtype, values.data(), DType::f64, values.size());
    return {std::move(values)};
}

std::optional<bool> EngineCheck::reference_agrees(const Engine& engine, const Problem& problem,
                                                  const std::vector<PlainBytes>& inputs,
                                                  const Results& found, bool elementwise) {
    const EngineWay other = reference(engine, problem);
    if (other.engine == nullptr) return std::nullopt;
    try {
        return largest_excess(problem, found, results(device_, other, inputs), elementwise).times ==
               0;
    } catch (const RefusedIndex&) {
        throw;
    } catch (const Error&) {
        return std::nullopt;  // the reference does not run here
    }
}

std::optional<EngineCheck::Finding> EngineCheck::compare(const Engine& engine,
                                                         const Problem& problem,
                                                         const Tuning& tuning, Draw draw) {
    const EngineWay checked{&engine, problem, tuning}, host = on_host(problem);
    const bool edges = draw.numbers == Draw::Numbers::edges;
    std::string first, faults;
    for (;;) {
        const std::vector<PlainBytes> inputs = make_inputs(problem, draw);
        const Results wanted = wanted_results(host, problem, inputs);
        Results found;
        try {
            found = checked_results(checked, inputs, faults);
        } catch (const RefusedIndex& refused) {
            // Another thread's kernel may have refused something, too.
            if (std::string_view(refused.what()).find(EngineRun::owner_of(engine)) ==
                std::string_view::npos)
                throw;
            return Finding{Outcome::wrong, cat("it refuses what is valid: ", refused.what())};
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::out_of_memory || runner_)
                return Finding{Outcome::unknown, error.what()};
            return Finding{Outcome::failed, error.what()};
        }
        if (!faults.empty()) return Finding{Outcome::wrong, faults};
        const bool again = draw.numbers == Draw::Numbers::above_half;
        const Excess excess = largest_excess(problem, found, wanted, edges);
        if (excess.times == 0) {
            if (!again) return std::nullopt;
            return Finding{Outcome::unknown,
                           cat("it differs from the host for some numbers: ", first)};
        }
        if (first.empty()) first = excess.what;
        if (!again && !edges) {
            draw.numbers = Draw::Numbers::above_half;
            continue;
        }
        // Two against one.
        if (reference_agrees(engine, problem, inputs, found, edges).value_or(false))
            return Finding{Outcome::unknown,
                           cat("it agrees with ", reference(engine, problem).engine->name(),
                               " and not with the host: ", excess.what)};
        break;
    }
    if (has_unknown_indices(problem) && reference(engine, problem).engine == nullptr)
        return Finding{Outcome::unknown, cat("zeros may be no valid indices for it: ", first)};
    return Finding{Outcome::wrong, cat("its results are wrong: ", first)};
}

EngineCheck::Finding EngineCheck::run(const Engine& engine, const Problem& problem,
                                      const Tuning& tuning) {
    if (problem.op != "Reorder" && on_host(problem).engine == nullptr)
        return {Outcome::unknown, "the host has no engine for it"};
    for (int turn = 0; turn < index_turns(problem); ++turn)
        if (auto found = compare(engine, problem, tuning, {Draw::Numbers::normal, turn}))
            return *found;
    if (has_edges(problem))
        if (auto found = compare(engine, problem, tuning, {Draw::Numbers::edges})) return *found;
    return {Outcome::right, ""};
}

}  // namespace dlprim
