// SPDX-License-Identifier: MIT
// EngineCheck: data, runs and comparisons.
#include "plan/trust/engine_check.hpp"

#include "base/text.hpp"
#include "engine/pointwise/job.hpp"
#include "plan/choose.hpp"
#include "plan/compare.hpp"
#include "plan/trust/small_problem.hpp"
#include "runtime/refusals.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

namespace dlprim {

namespace {

/// Calls `visit(i, place)` for each element of a strided operand: its number in row-major order,
/// and its place in memory, in elements.
template <typename Visit>
void visit_elements(const Operand& operand, Visit visit) {
    const std::int64_t count = operand.shape.numel();
    const int rank = operand.shape.rank();
    std::vector<std::int64_t> at(static_cast<std::size_t>(rank), 0);
    std::int64_t place = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        visit(static_cast<std::size_t>(i), static_cast<std::size_t>(place));
        for (int d = rank - 1; d >= 0; --d) {
            const auto k = static_cast<std::size_t>(d);
            place += operand.layout.strides[k];
            if (++at[k] < operand.shape[d]) break;
            place -= at[k] * operand.layout.strides[k];
            at[k] = 0;
        }
    }
}

std::uint64_t bytes_of(const Operand& operand) {
    if (operand.layout.kind == Layout::Kind::packed) return operand.layout.bytes;
    if (operand.layout.is_strided()) {
        if (operand.shape.numel() == 0) return 0;
        std::int64_t last = 0;
        for (int d = 0; d < operand.shape.rank(); ++d)
            last += (operand.shape[d] - 1) * operand.layout.strides[static_cast<std::size_t>(d)];
        return static_cast<std::uint64_t>(last + 1) * size_of(operand.dtype);
    }
    return static_cast<std::uint64_t>(physical_shape(operand.shape, operand.layout).numel()) *
           size_of(operand.dtype);
}

std::uint64_t plain_bytes_of(const Operand& operand) {
    return static_cast<std::uint64_t>(operand.shape.numel()) * size_of(operand.dtype);
}

/// The memory of a strided operand. Of elements that share a place the last one counts.
std::vector<std::byte> scattered(const std::vector<std::byte>& plain, const Operand& operand) {
    const std::size_t each = size_of(operand.dtype);
    std::vector<std::byte> memory(bytes_of(operand));
    visit_elements(operand, [&](std::size_t i, std::size_t place) {
        std::memcpy(memory.data() + place * each, plain.data() + i * each, each);
    });
    return memory;
}

/// The elements of a strided operand in row-major order.
std::vector<std::byte> gathered(const std::vector<std::byte>& memory, const Operand& operand) {
    const std::size_t each = size_of(operand.dtype);
    std::vector<std::byte> plain(plain_bytes_of(operand));
    visit_elements(operand, [&](std::size_t i, std::size_t place) {
        std::memcpy(plain.data() + i * each, memory.data() + place * each, each);
    });
    return plain;
}

/// Values for scalars that come with each run of a launch.
std::vector<Scalar> scalars_of(const Problem& problem) {
    std::vector<Scalar> scalars;
    for (const char kind : pointwise::arguments_of(problem.attrs)) {
        const auto number = static_cast<std::int64_t>(scalars.size());
        if (kind == 'i')
            scalars.emplace_back(number + 1);
        else
            scalars.emplace_back(0.75 + 0.5 * static_cast<double>(number));
    }
    return scalars;
}

/// Who refuses an index in a check.
std::string owner_of(const Engine& engine) {
    return cat("[check of ", engine.name(), "] ");
}

/// Whether all operands of a layout choice lie in the plain layout.
bool is_plain(const LayoutChoice& choice) {
    const auto plain = [](const Layout& layout) { return layout.is_plain(); };
    return std::all_of(choice.inputs.begin(), choice.inputs.end(), plain) &&
           std::all_of(choice.outputs.begin(), choice.outputs.end(), plain);
}

/// Makes a launch, runs it, and waits.
void run_launch(ContextImpl& context, const EngineCheck::Runner& runner,
                std::span<const BufferRef> operands,
                const std::function<std::unique_ptr<Launch>()>& build) {
    if (!runner) {
        build()->enqueue(context.queue(), operands);
        context.queue().finish();
        return;
    }
    const BuildsLater later;
    const std::unique_ptr<Launch> launch = build();
    require(runner(*launch, operands), "its kernels are in no program that is compiled");
}

}  // namespace

EngineCheck::Candidate EngineCheck::on_host(const Problem& problem) const {
    // The last engine that applies: on the host itself, too, others are compared with it.
    Candidate last;
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
    const Candidate host = on_host(problem);
    return host.engine == nullptr
               ? INFINITY
               : host.engine->estimate(host_.traits(), host.problem, host.tuning);
}

EngineCheck::Candidate EngineCheck::reference(const Engine& engine, const Problem& problem) const {
    Candidate made;
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

std::vector<EngineCheck::Bytes> EngineCheck::make_inputs(const Problem& problem, const Draw& draw) {
    std::vector<Bytes> inputs = draw_inputs(problem, draw);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        if (const Operand& operand = problem.inputs[i]; operand.layout.is_strided())
            inputs[i] = gathered(scattered(inputs[i], operand), operand);
    return inputs;
}

EngineCheck::Bytes EngineCheck::reordered(const Bytes& bytes, const Operand& operand,
                                          const Layout& from, const Layout& to) {
    Problem reorder;
    reorder.op = "Reorder";
    reorder.inputs = {{operand.shape, operand.dtype, from, false}};
    reorder.outputs = {{operand.shape, operand.dtype, to, false}};
    for (const Engine* engine : EngineRegistry::instance().of("Reorder", true)) {
        if (!engine->is_applicable(host_.traits(), reorder)) continue;
        const auto source = host_.allocate(bytes.size());
        Bytes result(bytes_of(reorder.outputs[0]));
        const auto target = host_.allocate(result.size());
        host_.queue().write({source.get(), 0}, bytes.data(), bytes.size(), true);
        const BufferRef pair[] = {{source.get(), 0}, {target.get(), 0}};
        engine->build(host_, reorder, engine->default_tuning(host_.traits(), reorder))
            ->enqueue(host_.queue(), pair);
        host_.queue().read({target.get(), 0}, result.data(), result.size(), true);
        return result;
    }
    fail(ErrorKind::unsupported, "the host does not convert layout ", from.str(), " to ", to.str());
}

EngineCheck::Results EngineCheck::results(ContextImpl& context, const Candidate& candidate,
                                          const std::vector<Bytes>& inputs, const Runner& runner) {
    const Problem& problem = candidate.problem;
    Queue& queue = context.queue();
    // All operands lie in one buffer: the programs of chains have few parameters for buffers.
    const std::uint64_t alignment = std::max<std::uint64_t>(512, context.traits().base_align_bytes);
    std::vector<std::uint64_t> sizes;
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands) sizes.push_back(bytes_of(operand));
    const std::uint64_t scratch =
        candidate.engine->workspace_bytes(context.traits(), problem, candidate.tuning);
    if (scratch > 0) sizes.push_back(scratch);
    std::uint64_t total = 0;
    std::vector<std::uint64_t> offsets;
    for (const std::uint64_t size : sizes) {
        offsets.push_back(total);
        total += (size + alignment - 1) / alignment * alignment;
    }
    const auto memory = context.allocate(total);
    std::vector<BufferRef> operands;
    operands.reserve(offsets.size());
    for (const std::uint64_t offset : offsets) operands.push_back({memory.get(), offset});
    for (std::size_t i = 0; i < inputs.size(); ++i)
        write_input(context, candidate, i, inputs[i], operands[i]);
    for (std::size_t k = 0; k < problem.outputs.size(); ++k) {
        // NaN, so that what is not written shows.
        const unsigned char ones = 0xff;
        const std::size_t at = inputs.size() + k;
        if (sizes[at] > 0) queue.fill(operands[at], sizes[at], &ones, 1);
    }
    run_launch(context, runner, operands, [&] {
        auto launch = candidate.engine->build(context, problem, candidate.tuning);
        launch->set_owner(owner_of(*candidate.engine));
        if (const std::vector<Scalar> scalars = scalars_of(problem); !scalars.empty())
            launch->set_scalars(scalars);
        return launch;
    });
    Results all;
    for (std::size_t k = 0; k < problem.outputs.size(); ++k) {
        const Operand& output = problem.outputs[k];
        Bytes bytes(sizes[inputs.size() + k]);
        if (!bytes.empty())
            queue.read(operands[inputs.size() + k], bytes.data(), bytes.size(), true);
        if (output.layout.is_strided())
            bytes = gathered(bytes, output);
        else if (!output.layout.is_plain())
            bytes = reordered(bytes, output, output.layout, Layout::plain());
        std::vector<double> values(static_cast<std::size_t>(output.shape.numel()));
        convert(bytes.data(), output.dtype, values.data(), DType::f64, values.size());
        all.push_back(std::move(values));
    }
    return all;
}

void EngineCheck::write_input(ContextImpl& context, const Candidate& candidate, std::size_t i,
                              const Bytes& plain, const BufferRef& to) {
    const Operand& operand = candidate.problem.inputs[i];
    Queue& queue = context.queue();
    if (operand.layout.kind == Layout::Kind::packed) {
        const auto from = context.allocate(plain.size());
        queue.write({from.get(), 0}, plain.data(), plain.size(), true);
        const BufferRef pair[] = {{from.get(), 0}, to};
        const auto packing = candidate.engine->build_packing(context, candidate.problem,
                                                             candidate.tuning, static_cast<int>(i));
        packing->enqueue(queue, pair);
        queue.finish();
        return;
    }
    Bytes moved;
    if (operand.layout.is_strided())
        moved = scattered(plain, operand);
    else if (!operand.layout.is_plain())
        moved = reordered(plain, operand, Layout::plain(), operand.layout);
    const Bytes& data = operand.layout.is_plain() ? plain : moved;
    if (!data.empty()) queue.write(to, data.data(), data.size(), true);
}

double EngineCheck::excess(const Problem& problem, const Results& found, const Results& wanted,
                           bool elementwise, std::string& where) {
    double most = 0;
    for (std::size_t k = 0; k < found.size(); ++k) {
        if (found[k].empty()) continue;
        const double error = elementwise ? largest_distance(found[k], wanted[k])
                                         : result_distance(found[k], wanted[k]);
        const double tolerance = result_tolerance(problem, problem.outputs[k].dtype);
        const double times = error <= tolerance ? 0 : tolerance > 0 ? error / tolerance : INFINITY;
        if (times <= most) continue;
        most = times;
        where =
            cat("output ", k, " of shape ", problem.outputs[k].shape.str(), " is off by ", error,
                elementwise ? " for one of the edges of its inputs' types" : " of its size");
    }
    return most;
}

EngineCheck::Results EngineCheck::wanted_results(const Candidate& host, const Problem& problem,
                                                 const std::vector<Bytes>& inputs) {
    if (problem.op != "Reorder") return results(host_, host, inputs);
    std::vector<double> values(static_cast<std::size_t>(problem.inputs[0].shape.numel()));
    convert(inputs[0].data(), problem.inputs[0].dtype, values.data(), DType::f64, values.size());
    return {std::move(values)};
}

std::optional<bool> EngineCheck::reference_agrees(const Engine& engine, const Problem& problem,
                                                  const std::vector<Bytes>& inputs,
                                                  const Results& found, bool elementwise) {
    const Candidate other = reference(engine, problem);
    if (other.engine == nullptr) return std::nullopt;
    try {
        std::string unused;
        return excess(problem, found, results(device_, other, inputs), elementwise, unused) == 0;
    } catch (const RefusedIndex&) {
        throw;
    } catch (const Error&) {
        return std::nullopt;  // the reference does not run here
    }
}

std::optional<EngineCheck::Finding> EngineCheck::compare(const Engine& engine,
                                                         const Problem& problem,
                                                         const Tuning& tuning, Draw draw) {
    const Candidate checked{&engine, problem, tuning}, host = on_host(problem);
    const bool edges = draw.numbers == Draw::Numbers::edges;
    std::string first;
    for (;;) {
        const std::vector<Bytes> inputs = make_inputs(problem, draw);
        const Results wanted = wanted_results(host, problem, inputs);
        Results found;
        try {
            found = results(device_, checked, inputs, runner_);
        } catch (const RefusedIndex& refused) {
            // Another thread's kernel may have refused something, too.
            if (std::string_view(refused.what()).find(owner_of(engine)) == std::string_view::npos)
                throw;
            return Finding{Outcome::wrong, cat("it refuses what is valid: ", refused.what())};
        } catch (const Error& error) {
            if (error.kind() == ErrorKind::out_of_memory || runner_)
                return Finding{Outcome::unknown, error.what()};
            return Finding{Outcome::failed, error.what()};
        }
        std::string where;
        const bool again = draw.numbers == Draw::Numbers::above_half;
        if (excess(problem, found, wanted, edges, where) == 0) {
            if (!again) return std::nullopt;
            return Finding{Outcome::unknown,
                           cat("it differs from the host for some numbers: ", first)};
        }
        if (first.empty()) first = where;
        if (!again && !edges) {
            draw.numbers = Draw::Numbers::above_half;
            continue;
        }
        // Two against one.
        if (reference_agrees(engine, problem, inputs, found, edges).value_or(false))
            return Finding{Outcome::unknown,
                           cat("it agrees with ", reference(engine, problem).engine->name(),
                               " and not with the host: ", where)};
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
