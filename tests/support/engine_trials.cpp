// SPDX-License-Identifier: MIT
// Runs of engines, in all layouts and tunings.
#include "support/engine_trials.hpp"

#include "base/text.hpp"
#include "engine/laid_out.hpp"
#include "runtime/context_impl.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace dlprim::testing {

namespace {

// The default tuning, or all of them: see Trials.
std::vector<Tuning> tunings(const Engine& engine, const Context& context, const Problem& laid,
                            bool all) {
    const Traits& traits = context.traits();
    const Tuning standard = engine.default_tuning(traits, laid);
    if (!all) return {standard};
    const TuneSpace space = engine.tune_space(traits, laid);
    const Share share = sample_of(context);
    std::vector<Tuning> made;
    unsigned offered = 0;
    for (const Tuning& tuning : tunings_of(engine, traits, laid)) {
        const auto others =
            std::count_if(tuning.begin(), tuning.end(), [&](const Tuning::value_type& item) {
                const auto& [name, value] = item;
                return space.values.count(name) != 0 && name != "stages" &&
                       standard.at(name) != value;
            });
        if (others > 1) continue;
        if (share.has(offered++) || tuning == standard) made.push_back(tuning);
    }
    return made;
}

// What takes turns: an engine's layouts of inputs, an epilogue, and types other than float.
std::string kind_of(const Engine& engine, const Problem& laid) {
    std::string kind(engine.name());
    for (const Operand& operand : laid.inputs)
        kind +=
            operand.layout.kind == Layout::Kind::packed ? " packed" : ' ' + operand.layout.str();
    if (!laid.epilogue.empty()) kind += " with epilogue";
    for (const Operand& operand : laid.inputs)
        if (operand.dtype != DType::f32) kind += cat(' ', name_of(operand.dtype));
    return kind;
}

bool is_tried(const Engine& engine, const Problem& laid, const Context& context,
              const Trials& trials) {
    return trials.every_call ? Turns::asked_for(engine.name())
                             : engine_turns().take(kind_of(engine, laid), context);
}

bool is_wanted(const Engine& engine, const Trials& trials) {
    return trials.only.empty() ||
           std::any_of(trials.only.begin(), trials.only.end(), [&](std::string_view part) {
               return engine.name().find(part) != std::string_view::npos;
           });
}

}  // namespace

Results run_engine(const Context& context, const EngineWay& way,
                   const std::vector<HostArray>& inputs) {
    static const Context host("cpu");
    static unsigned runs = 0;
    std::vector<PlainBytes> bytes;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        bytes.push_back(stored_as(way.problem.inputs[i].dtype, inputs[i].data));
    const bool turn = runs++ % 3 == 0;
    EngineRun run(Access::impl(context), Access::impl(host), way, bytes, {},
                  turn || way.engine->addresses_strides() ? 64 : 3);
    run.run();
    CHECK(run.faults() == "");
    return run.results();
}

void check_engines(const Context& context, const Problem& problem,
                   const std::vector<HostArray>& inputs, const std::vector<double>& wanted,
                   const Trials& trials) {
    const Traits& traits = context.traits();
    const auto engines = EngineRegistry::instance().of(problem.op, traits.host);
    REQUIRE(!engines.empty());
    for (const Engine* engine : engines) {
        if (!is_wanted(*engine, trials) || !engine->is_applicable(traits, problem)) continue;
        for (const LayoutChoice& choice : engine->layouts(traits, problem)) {
            const Problem laid = with_layouts(problem, choice);
            if (!is_tried(*engine, laid, context, trials)) continue;
            for (const Tuning& tuning : tunings(*engine, context, laid, trials.all_tunings)) {
                INFO(engine->name() << " on " << context.info().name << ": " << laid.key() << ' '
                                    << text_of(tuning));
                const auto found = run_engine(context, {engine, laid, tuning}, inputs).at(0);
                CHECK(relative_error(found, wanted, 1e-15) < tolerance(problem));
                CHECK(engine->estimate(traits, laid, tuning) > 0);
            }
        }
    }
}

Turns& engine_turns() {
    static Turns turns;
    return turns;
}

Problem problem_of(std::string_view op, const Attrs& attrs, const std::vector<Shape>& inputs,
                   const Shape& output) {
    Problem problem;
    problem.op = op;
    problem.attrs = attrs;
    for (const Shape& shape : inputs) problem.inputs.push_back({shape, DType::f32, {}, false});
    problem.outputs.push_back({output, DType::f32, {}, false});
    return problem;
}

HostArray normals(const Shape& shape, std::mt19937& random, DType dtype) {
    HostArray made{shape, {}, dtype};
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < shape.numel(); ++i)
        made.data.push_back(static_cast<double>(normal(random)));
    round_to(dtype, made.data);
    return made;
}

void make_small_integers(HostArray& array) {
    for (double& v : array.data) v = std::clamp(std::round(200 * v), -255.0, 255.0);
}

unsigned random_problems() {
    const char* const count = std::getenv("DLPRIM_TEST_RANDOM");
    return count == nullptr ? 200 : static_cast<unsigned>(std::atoi(count));
}

}  // namespace dlprim::testing
