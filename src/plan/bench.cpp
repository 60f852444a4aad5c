// SPDX-License-Identifier: MIT
// Bench: measures candidates for one problem.
#include "plan/bench.hpp"

#include "base/text.hpp"
#include "engine/disabled.hpp"
#include "engine/storage.hpp"
#include "plan/choose.hpp"
#include "plan/compare.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

namespace dlprim {

namespace {

using Clock = std::chrono::steady_clock;

/// The longest estimate with which the reference engine is used for expected results.
constexpr double affordable_seconds = 2;

std::uint64_t bytes_of(const Operand& operand) {
    if (operand.layout.kind == Layout::Kind::packed) return operand.layout.bytes;
    return static_cast<std::uint64_t>(physical_shape(operand.shape, operand.layout).numel()) *
           size_of(operand.dtype);
}

}  // namespace

Bench::Bench(ContextImpl& context, const Problem& problem) : context_(context), problem_(problem) {
    context_.queue().finish();  // so that what earlier work refused is not a candidate's fault
    const int labels = label_input_of(problem);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (const Operand& operand : problem.inputs) {
        const auto bytes =
            static_cast<std::uint64_t>(operand.shape.numel()) * size_of(operand.dtype);
        std::vector<std::byte> data(bytes);
        if (is_activation_type(operand.dtype) && std::ssize(inputs_) != labels) {
            // A short period is random enough and fast to make.
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
                expected_ = results(prepared(reference));
                return;
            } catch (const Error& error) {
                log(LogLevel::info, cat("tuning: ", (*last)->name(), ": ", error.what()));
            }
    }
    expected_ = results(prepared(favourite));
}

double Bench::measure(const TuneCandidate& candidate, std::string& wrong) {
    const Run made = prepared(candidate);
    const auto found = results(made);
    for (std::size_t k = 0; k < found.size(); ++k) {
        const double error = result_distance(found[k], expected_[k]);
        if (error <= result_tolerance(problem_, problem_.outputs[k].dtype)) continue;
        wrong = cat("output ", k, " of engine ", candidate.engine->name(),
                    " is wrong: its error is ", error, " of its size");
        return INFINITY;
    }
    Queue& queue = context_.queue();
    const auto run = [&](int times) {
        const auto start = Clock::now();
        for (int i = 0; i < times; ++i) made.launch->enqueue(queue, made.operands);
        queue.finish();
        return std::chrono::duration<double>(Clock::now() - start).count() / times;
    };
    const double once = run(1);
    const int times = std::clamp(static_cast<int>(5e-3 / std::max(once, 1e-7)), 1, 200);
    return std::min({run(times), run(times), run(times)});
}

Bench::Run Bench::prepared(const TuneCandidate& candidate) {
    Run run;
    run.problem = with_layouts(problem_, candidate.layouts);
    const auto add = [&](Memory buffer) {
        run.operands.push_back({buffer.get(), 0});
        run.memory.push_back(std::move(buffer));
    };
    for (std::size_t i = 0; i < run.problem.inputs.size(); ++i)
        add(laid_out(candidate, run.problem, i));
    for (const Operand& output : run.problem.outputs) {
        const std::uint64_t bytes = bytes_of(output);
        add(context_.allocate(bytes));
        // Fill with NaN, so that the results of an earlier candidate in this memory are not
        // mistaken for this one's.
        const unsigned char ones = 0xff;
        if (bytes > 0) context_.queue().fill(run.operands.back(), bytes, &ones, 1);
    }
    const std::uint64_t scratch =
        candidate.engine->workspace_bytes(context_.traits(), run.problem, candidate.tuning);
    if (scratch > 0) add(context_.allocate(scratch));
    run.launch = candidate.engine->build(context_, run.problem, candidate.tuning);
    return run;
}

std::vector<std::vector<double>> Bench::results(const Run& run) {
    run.launch->enqueue(context_.queue(), run.operands);
    context_.queue().finish();
    std::vector<std::vector<double>> all;
    for (std::size_t k = 0; k < run.problem.outputs.size(); ++k) {
        const Operand& output = run.problem.outputs[k];
        const Buffer* made = run.operands[run.problem.inputs.size() + k].buffer;
        Memory plain;
        if (!output.layout.is_plain()) {
            plain = reordered(*made, output, output.layout, Layout::plain());
            made = plain.get();
        }
        all.push_back(
            sample(*made, static_cast<std::uint64_t>(output.shape.numel()), output.dtype));
    }
    return all;
}

/// All numbers of a buffer if they are few, else 32 evenly spaced runs of them, of which the last
/// is at the end.
std::vector<double> Bench::sample(const Buffer& buffer, std::uint64_t count, DType dtype) {
    constexpr std::uint64_t runs = 32, run = 8192;
    const std::uint64_t each = size_of(dtype);
    std::vector<double> values(std::min(count, runs * run));
    std::vector<std::byte> stored(values.size() * each);
    if (values.size() == count) {
        context_.queue().read({&buffer, 0}, stored.data(), stored.size(), true);
    } else {
        for (std::uint64_t i = 0; i < runs; ++i)
            context_.queue().read({&buffer, (count - run) * i / (runs - 1) * each},
                                  stored.data() + i * run * each, run * each, true);
    }
    convert(stored.data(), dtype, values.data(), DType::f64, values.size());
    return values;
}

Bench::Memory Bench::reordered(const Buffer& from, const Operand& operand,
                               const Layout& from_layout, const Layout& to_layout) {
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
    fail(ErrorKind::unsupported, "no engine converts layout ", from_layout.str(), " to ",
         to_layout.str());
}

Bench::Memory Bench::laid_out(const TuneCandidate& candidate, const Problem& problem,
                              std::size_t i) {
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

}  // namespace dlprim
