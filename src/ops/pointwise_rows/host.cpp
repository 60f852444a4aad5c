// SPDX-License-Identifier: MIT
// pointwise_rows.host: the stages one after the other, as the host computes Pointwise. For checks
// of the kernels: on the host, nodes are not joined.
#include "base/text.hpp"
#include "engine/pointwise/host_run.hpp"
#include "engine/reached_by.hpp"
#include "ops/pointwise_rows/operator.hpp"

#include <algorithm>

namespace dlprim::pointwise_rows {

namespace {

using pointwise::Output;

std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/// The stages as Pointwise problems on tensors, results of all stages, and where these are.
struct Steps {
    std::vector<Problem> problems;
    std::vector<std::vector<int>> operands;  ///< by problem: numbers of places, inputs first
    /// Operands of the node, or, from their number on, parts of the workspace.
    std::vector<std::uint64_t> parts;  ///< where each part of the workspace begins
    std::uint64_t bytes = 0;
};

bool is_read(const pointwise::Program& program, int input) {
    return std::any_of(program.outputs.begin(), program.outputs.end(),
                       [&](const Output& out) { return pointwise::uses_input(out.value, input); });
}

Steps steps_of(const Problem& problem) {
    Steps steps;
    const Shape whole = pointwise::make_row_job(problem).job.shape;
    const Ints wide = problem.attrs.ints("wide"), results = problem.attrs.ints("results");
    const auto own = static_cast<int>(problem.inputs.size() + problem.outputs.size());
    std::vector<Operand> known = problem.inputs;
    std::vector<int> places;
    for (std::size_t i = 0; i < known.size(); ++i) places.push_back(static_cast<int>(i));
    std::int64_t number = 0;
    for (const std::string& code : split(problem.attrs.text("stages"), '\n')) {
        const std::shared_ptr<const pointwise::Program> program = pointwise::parsed(code);
        const bool is_wide = wide[steps.problems.size()] != 0;
        Problem step;
        step.op = "Pointwise";
        step.attrs = {{"code", code},
                      {"scalars", problem.attrs.numbers("scalars")},
                      {"shape", is_wide ? whole.to_vector() : Ints()}};
        step.inputs = known;
        for (std::size_t i = 0; i < known.size(); ++i)  // shapes of others would be broadcast, too
            if (!is_read(*program, static_cast<int>(i))) step.inputs[i].shape = Shape{1};
        std::vector<int> operands = places;
        for (const Output& output : program->outputs) {
            const bool is_full = is_wide && output.kind == Output::Kind::elementwise;
            Operand made{is_full ? whole : Shape{whole[0], 1}, DType::f32, Layout::plain(), false};
            const auto result = std::find(results.begin(), results.end(), number++);
            int place = own + static_cast<int>(steps.parts.size());
            if (result != results.end()) {
                const auto k = static_cast<std::size_t>(result - results.begin());
                place = static_cast<int>(problem.inputs.size() + k);
                made = problem.outputs[k];
            } else {
                steps.parts.push_back(steps.bytes);
                steps.bytes += aligned(storage_bytes(made.shape, made.dtype, made.layout));
            }
            step.outputs.push_back(made);
            operands.push_back(place);
            known.push_back(made);
            places.push_back(place);
        }
        steps.problems.push_back(std::move(step));
        steps.operands.push_back(std::move(operands));
    }
    return steps;
}

class Host final : public Engine, public ReachedBy {
  public:
    Host() : Engine("pointwise_rows.host", Options::type, true) {}
    std::string_view reached_by() const override { return "checks of rows on other devices"; }
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (!device.host) return Verdict::no("it runs on the host device only");
        if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
        return Verdict::yes();
    }
    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        return steps_of(problem).bytes;
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.2);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        struct Step {
            std::vector<pointwise::HostJob> jobs;
            std::vector<int> operands;
        };
        Steps steps = steps_of(problem);
        std::vector<Step> all;
        for (std::size_t s = 0; s < steps.problems.size(); ++s) {
            all.push_back({{}, steps.operands[s]});
            for (pointwise::Job& job : pointwise::make_jobs(steps.problems[s], true))
                all.back().jobs.emplace_back(std::move(job));
        }
        const auto own = static_cast<int>(problem.inputs.size() + problem.outputs.size());
        return std::make_unique<HostLaunch>(
            [all = std::move(all), parts = std::move(steps.parts), own](
                HostPool& pool, std::span<const BufferRef> operands) {
                for (const Step& step : all) {
                    std::vector<BufferRef> bound;
                    for (const int place : step.operands) {
                        BufferRef ref = operands[static_cast<std::size_t>(std::min(place, own))];
                        if (place >= own)
                            ref.byte_offset += parts[static_cast<std::size_t>(place - own)];
                        bound.push_back(ref);
                    }
                    for (const pointwise::HostJob& job : step.jobs) job.run(pool, bound, {});
                }
            });
    }
};

}  // namespace

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::pointwise_rows
