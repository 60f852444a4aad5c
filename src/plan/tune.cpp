// SPDX-License-Identifier: MIT
// Tuning by measurement, one problem after the other, on memory of its own.
#include "plan/tune.hpp"

#include "base/text.hpp"
#include "engine/database.hpp"
#include "engine/put_aside.hpp"
#include "engine/storage.hpp"
#include "graph/operator.hpp"
#include "plan/choose.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <utility>

namespace dlprim {

namespace {

using Clock = std::chrono::steady_clock;
using Memory = std::shared_ptr<Buffer>;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Candidate {
    const Engine* engine;
    LayoutChoice layouts;
    Tuning tuning;
    double estimate;
    bool standard;  ///< the engine's default tuning
};

/// All combinations of the values of a tuning space, over the default's.
std::vector<Tuning> tunings_of(const TuneSpace& space, const Tuning& standard) {
    std::vector<Tuning> all{standard};
    for (const auto& [name, values] : space) {
        std::vector<Tuning> more;
        for (const Tuning& tuning : all)
            for (const std::int64_t value : values) {
                Tuning next = tuning;
                next[name] = value;
                if (std::find(more.begin(), more.end(), next) == more.end())
                    more.push_back(std::move(next));
            }
        if (!more.empty()) all = std::move(more);
    }
    std::erase(all, standard);
    all.insert(all.begin(), standard);
    if (all.size() > 100) all.resize(100);
    return all;
}

/// One problem's operands, plain, and the measuring of its candidates.
class Bench {
  public:
    Bench(ContextImpl& context, const Problem& problem) : context_(context), problem_(problem) {
        std::mt19937 random(1);
        std::normal_distribution<float> normal;
        for (const Operand& operand : problem.inputs) {
            const auto bytes =
                static_cast<std::uint64_t>(operand.shape.numel()) * size_of(operand.dtype);
            std::vector<std::byte> data(bytes);
            if (is_activation_type(operand.dtype)) {
                // A short period is random enough, and quick to make.
                const std::size_t each = size_of(operand.dtype);
                std::vector<float> values(std::min<std::size_t>(bytes / each, 65521));
                for (float& value : values) value = normal(random);
                std::vector<std::byte> period(values.size() * each);
                convert(values.data(), DType::f32, period.data(), operand.dtype, values.size());
                for (std::uint64_t at = 0; at < bytes; at += period.size())
                    std::memcpy(data.data() + at, period.data(),
                                std::min<std::uint64_t>(bytes - at, period.size()));
            }
            inputs_.push_back(context.allocate(bytes));
            context.queue().write({inputs_.back().get(), 0}, data.data(), bytes, true);
        }
    }

    /// Seconds of one run; infinite where it does not agree with the first that ran.
    double measure(const Candidate& candidate) {
        const Problem problem = with_layouts(problem_, candidate.layouts);
        std::vector<Memory> memory;
        std::vector<BufferRef> operands;
        const auto add = [&](Memory buffer) {
            operands.push_back({buffer.get(), 0});
            memory.push_back(std::move(buffer));
        };
        for (std::size_t i = 0; i < problem.inputs.size(); ++i)
            add(laid_out(candidate, problem, i));
        for (const Operand& output : problem.outputs) add(context_.allocate(bytes_of(output)));
        const std::uint64_t scratch =
            candidate.engine->workspace_bytes(context_.traits(), problem, candidate.tuning);
        if (scratch > 0) add(context_.allocate(scratch));
        const auto launch = candidate.engine->build(context_, problem, candidate.tuning);
        Queue& queue = context_.queue();
        launch->enqueue(queue, operands);
        queue.finish();
        if (!agrees(problem, operands)) return INFINITY;

        const auto run = [&](int times) {
            const auto start = Clock::now();
            for (int i = 0; i < times; ++i) launch->enqueue(queue, operands);
            queue.finish();
            return seconds_since(start) / times;
        };
        const double once = run(1);
        const int times = std::clamp(static_cast<int>(5e-3 / std::max(once, 1e-7)), 1, 200);
        return std::min({run(times), run(times), run(times)});
    }

  private:
    static std::uint64_t bytes_of(const Operand& operand) {
        if (operand.layout.kind == Layout::Kind::packed) return operand.layout.bytes;
        return static_cast<std::uint64_t>(physical_shape(operand.shape, operand.layout).numel()) *
               size_of(operand.dtype);
    }

    Memory reordered(const Buffer& from, const Operand& operand, const Layout& from_layout,
                     const Layout& to_layout) {
        Problem reorder;
        reorder.op = "Reorder";
        reorder.inputs = {{operand.shape, operand.dtype, from_layout, false}};
        reorder.outputs = {{operand.shape, operand.dtype, to_layout, false}};
        Memory to = context_.allocate(bytes_of(reorder.outputs[0]));
        for (const Engine* engine : EngineRegistry::instance().of("Reorder", context_.is_host())) {
            if (!usable(context_, *engine, reorder)) continue;
            const BufferRef pair[] = {{&from, 0}, {to.get(), 0}};
            engine->build(context_, reorder, engine->default_tuning(context_.traits(), reorder))
                ->enqueue(context_.queue(), pair);
            context_.queue().finish();
            return to;
        }
        fail(ErrorKind::unsupported, "no engine reorders ", from_layout.str(), " to ",
             to_layout.str());
    }

    Memory laid_out(const Candidate& candidate, const Problem& problem, std::size_t i) {
        const Operand& operand = problem.inputs[i];
        if (operand.layout.is_plain()) return inputs_[i];
        if (operand.layout.kind != Layout::Kind::packed)
            return reordered(*inputs_[i], operand, Layout::plain(), operand.layout);
        Memory packed = context_.allocate(operand.layout.bytes);
        const BufferRef pair[] = {{inputs_[i].get(), 0}, {packed.get(), 0}};
        candidate.engine->build_packing(context_, problem, candidate.tuning, static_cast<int>(i))
            ->enqueue(context_.queue(), pair);
        context_.queue().finish();
        return packed;
    }

    /// A sample of the first output, of a type of activations, against that of the first candidate.
    bool agrees(const Problem& problem, const std::vector<BufferRef>& operands) {
        const Operand& output = problem.outputs[0];
        if (!is_activation_type(output.dtype)) return true;
        const Buffer* made = operands[problem.inputs.size()].buffer;
        Memory plain;
        if (!output.layout.is_plain()) {
            plain = reordered(*made, output, output.layout, Layout::plain());
            made = plain.get();
        }
        const std::vector<float> values =
            sample(*made, static_cast<std::uint64_t>(output.shape.numel()), output.dtype);
        if (expected_.empty()) {
            expected_ = values;
            return true;
        }
        double error = 0, size = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double d = static_cast<double>(values[i]) - static_cast<double>(expected_[i]);
            error += d * d;
            size += static_cast<double>(expected_[i]) * static_cast<double>(expected_[i]);
        }
        // Relative 1e-3 in L2, 1e-2 where 8 bits are kept; NaN is not.
        const bool coarse = output.dtype == DType::bf16 || problem.precision == Precision::bf16;
        return error <= (coarse ? 1e-4 : 1e-6) * size;
    }

    /// All of a buffer's numbers, or of many 32 runs, evenly spread, the last at the end.
    std::vector<float> sample(const Buffer& buffer, std::uint64_t count, DType dtype) {
        constexpr std::uint64_t runs = 32, run = 8192;
        const std::uint64_t each = size_of(dtype);
        std::vector<float> values(std::min(count, runs * run));
        std::vector<std::byte> stored(values.size() * each);
        if (values.size() == count) {
            context_.queue().read({&buffer, 0}, stored.data(), stored.size(), true);
        } else {
            for (std::uint64_t i = 0; i < runs; ++i)
                context_.queue().read({&buffer, (count - run) * i / (runs - 1) * each},
                                      stored.data() + i * run * each, run * each, true);
        }
        convert(stored.data(), dtype, values.data(), DType::f32, values.size());
        return values;
    }

    ContextImpl& context_;
    const Problem& problem_;
    std::vector<Memory> inputs_;
    std::vector<float> expected_;
};

std::vector<Candidate> candidates_of(ContextImpl& context, const Problem& problem) {
    const Traits& device = context.traits();
    std::vector<Candidate> all;
    for (const Engine* engine : EngineRegistry::instance().of(problem.op, device.host)) {
        if (!usable(context, *engine, problem)) continue;
        const std::vector<LayoutChoice> layouts = engine->layouts(device, problem);
        for (std::size_t l = 0; l < layouts.size(); ++l) {
            const Problem laid = with_layouts(problem, layouts[l]);
            const Tuning standard = engine->default_tuning(device, laid);
            bool first = true;
            for (Tuning& tuning : tunings_of(engine->tune_space(device, laid), standard)) {
                const double estimate = engine->estimate(device, laid, tuning);
                tuning["layout"] = static_cast<std::int64_t>(l);
                all.push_back({engine, layouts[l], std::move(tuning), estimate, first});
                first = false;
            }
        }
    }
    // The preferred engine first: what the others are compared with.
    std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
        return std::pair(!a.standard, a.estimate) < std::pair(!b.standard, b.estimate);
    });
    return all;
}

/// The fastest row of each engine and layout: which layout serves best, its neighbours decide.
std::vector<TuningRow> tune_problem(ContextImpl& context, const Problem& problem,
                                    const std::vector<Candidate>& candidates) {
    Bench bench(context, problem);
    std::vector<TuningRow> rows;
    double best = INFINITY;
    std::map<const Engine*, double> standard;
    for (const Candidate& candidate : candidates) {
        // What is hopeless by its estimate, or by its engine's default, would cost time for
        // nothing.
        if (candidate.estimate > 8 * best) continue;
        const auto known = standard.find(candidate.engine);
        if (known != standard.end() && !candidate.standard && known->second > 2 * best) continue;
        double seconds = INFINITY;
        try {
            seconds = bench.measure(candidate);
        } catch (const Error& error) {
            log(LogLevel::info, cat("tuning: ", candidate.engine->name(), ": ", error.what()));
        }
        if (candidate.standard) {
            double& least = standard.try_emplace(candidate.engine, INFINITY).first->second;
            least = std::min(least, seconds);
        }
        if (std::isinf(seconds)) continue;
        best = std::min(best, seconds);
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const TuningRow& r) {
            return r.engine == candidate.engine->name() &&
                   layout_of(r.tuning) == layout_of(candidate.tuning);
        });
        if (row == rows.end())
            rows.push_back(
                {std::string(candidate.engine->name()), candidate.tuning, seconds, false});
        else if (seconds < row->seconds)
            *row = {row->engine, candidate.tuning, seconds, false};
    }
    return rows;
}

}  // namespace

void tune_problems(ContextImpl& context, const Graph& graph, const std::vector<char>& constant,
                   const PlanOptions& options, std::vector<std::string>& notes) {
    const auto start = Clock::now();
    std::vector<std::pair<std::string, Problem>> problems;
    std::set<std::string> seen;
    for (const Node& node : graph.nodes) {
        if (node.op->is_view() || !node.engine.empty()) continue;
        Problem problem = problem_of(context.traits(), graph, node, constant);
        if (!seen.insert(problem.key(false)).second || !lookup_tunings(context, problem).empty())
            continue;
        problems.emplace_back(node.name, std::move(problem));
    }
    const int total = static_cast<int>(problems.size());
    int measured = 0, done = 0;
    for (const auto& [name, problem] : problems) {
        if (seconds_since(start) > options.tune_seconds) break;
        if (options.progress) options.progress("tuning " + name, done, total);
        ++done;
        const std::vector<Candidate> candidates = candidates_of(context, problem);
        if (candidates.size() < 2) continue;
        try {
            const std::vector<TuningRow> rows = tune_problem(context, problem, candidates);
            if (rows.empty()) continue;
            store_tunings(context, problem, rows);
            ++measured;
        } catch (const Error& error) {
            // No memory for its operands, say: the estimates stand.
            notes.push_back(cat("tuning '", name, "': ", error.what()));
        }
    }
    context.trim();
    if (options.progress) options.progress("", total, total);
    notes.push_back(cat("tuned ", measured, measured == 1 ? " problem" : " problems"));
    if (done < total)
        notes.push_back(cat("the time for tuning was too short for ", total - done, " of ", total,
                            "; another run goes on with them"));
}

}  // namespace dlprim
