// SPDX-License-Identifier: MIT
// Runs a case by the planner's choice, by other engines, on views, and each engine in its layouts.
#include "support/check_case.hpp"

#include "base/text.hpp"
#include "check/draw.hpp"
#include "check/engine_check.hpp"
#include "engine/laid_out.hpp"
#include "exec/operator_check.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace dlprim::testing {

namespace {

/// Strides in which the last dimension but two lies within the last but one, as heads do in their
/// projections.
std::vector<std::int64_t> heads_in_rows(const Shape& shape) {
    std::vector<std::int64_t> strides = shape.strides();
    if (shape.rank() < 3) return strides;
    const auto last = strides.end();
    last[-3] = shape[-1];
    last[-2] = shape[-1] * shape[-3];
    return strides;
}

/// The array in a strided view: with exchanged dimensions, with gaps, as channels_last, or with
/// heads in rows, beginning where vectors are not aligned.
Tensor upload_view(const Context& device, const HostArray& array, unsigned kind) {
    const Shape& shape = array.shape;
    std::vector<int> order;  // of dimensions in memory, outermost first
    for (int d = 0; d < shape.rank(); ++d) order.push_back(d);
    if (kind % 4 == 0) std::reverse(order.begin(), order.end());
    if (kind % 4 == 1 && order.size() > 2)
        std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    if (kind % 4 == 3 && order.size() > 2) std::swap(order.end()[-3], order.end()[-2]);
    const std::int64_t step = kind % 4 == 2 ? 2 : 1, offset = kind / 4 % 2;
    std::vector<std::int64_t> strides(order.size());
    std::int64_t inside = step;
    for (std::size_t i = order.size(); i-- > 0;) {
        strides[static_cast<std::size_t>(order[i])] = inside;
        inside *= std::max<std::int64_t>(1, shape[order[i]]);
    }
    const Tensor memory(device, {shape.numel() * step + offset + 1}, array.dtype);
    Tensor view = memory.view(shape, strides, offset);
    const PlainBytes bytes = stored_as(array.dtype, array.data);
    if (!bytes.empty()) view.copy_from_host(bytes.data(), bytes.size());
    return view;
}

class Checker {
  public:
    Checker(const Context& device, const Case& one, unsigned seed, Precision precision,
            Tally& tally)
        : device_(device),
          one_(one),
          seed_(seed),
          tally_(tally),
          check_(device, one, seed, precision) {}

    void direction(bool backward) {
        run({.backward = backward}, "");
        note_engines();
        check_.visit_problems([&](const Problem& problem) { check_layouts(problem); });
        for (const auto& [engine, type] : check_.other_engines())
            if (tally_.turns.take(one_.type + (backward ? " backward " : " ") + engine, device_)) {
                run({.backward = backward, .engines = {{type, engine}}}, " by " + engine);
                note_engines();  // a composite that stays whole for it has gradients of its own
            }
    }

    /// The same call with strided views of all operands. Devices that compile try some of the
    /// cases.
    void direction_on_views(bool backward) {
        if (!device_.traits().host && seed_ % 4 != 0) return;
        const auto upload = [this](const HostArray& array, unsigned number) {
            return upload_view(device_, array, seed_ + number);
        };
        run({.backward = backward, .upload = upload}, " on views");
    }

  private:
    /// Notes which engines could compute the problems of the latest call, here or elsewhere.
    void note_engines() {
        check_.visit_problems([&](const Problem& problem) {
            for (const Engine* engine :
                 EngineRegistry::instance().of(problem.op, device_.traits().host)) {
                if (applies_elsewhere(*engine, problem)) tally_.for_others.insert(engine);
                if (engine->is_applicable(device_.traits(), problem)) tally_.applied.insert(engine);
            }
        });
    }

    /// Whether a device of another kind would use the engine.
    bool applies_elsewhere(const Engine& engine, const Problem& problem) const {
        if (device_.traits().host) return false;
        Traits other = device_.traits();
        other.max_work_group = 1024;
        other.local_bytes = 256 << 10;
        other.fp16 = other.fp64 = other.wgmma = other.mma = true;
        other.matrix_fp16 = other.matrix_bf16 = true;
        other.mma_local_bytes = 227 << 10;
        other.subgroup_size = 16;
        for (const bool wide : {false, true}) {
            other.wide_vectors = wide;
            other.vector_width = wide ? 8 : 1;
            if (engine.is_applicable(other, problem)) return true;
        }
        return false;
    }

    /// Compares all engines in all layouts that they have for a problem with the host's engine.
    void check_layouts(const Problem& problem) {
        const Traits& traits = device_.traits();
        for (const Engine* engine : EngineRegistry::instance().of(problem.op, traits.host)) {
            if (!engine->is_applicable(traits, problem)) continue;
            std::vector<LayoutChoice> choices = engine->layouts(traits, problem);
            for (LayoutChoice& choice : engine->layouts(traits, with_heads_in_rows(problem)))
                if (std::find_if(choices.begin(), choices.end(), [&](const LayoutChoice& known) {
                        return known.name() == choice.name();
                    }) == choices.end())
                    choices.push_back(std::move(choice));
            for (const LayoutChoice& choice : choices)
                if (tally_.turns.take(cat(engine->name(), " as ", choice.name()), device_))
                    check_layout(*engine, with_layouts(problem, choice));
        }
    }

    static Problem with_heads_in_rows(Problem problem) {
        for (auto* operands : {&problem.inputs, &problem.outputs})
            for (Operand& operand : *operands)
                operand.layout = Layout::strided(heads_in_rows(operand.shape), true);
        return problem;
    }

    /// Operands begin by turns where vectors are aligned and where they are not. What addresses
    /// strides may rely on plain operands to be aligned: it gets others as strided ones.
    void check_layout(const Engine& engine, const Problem& laid) {
        static const Context host("cpu");
        const bool turn = tally_.runs++ % 3 == 0;
        const std::uint64_t margin = turn || engine.addresses_strides() ? 64 : 3;
        EngineCheck check(Access::impl(device_), Access::impl(host), {}, margin);
        // Half and bfloat16 are operands of engines of GPUs that the host casts to float instead.
        if (laid.op != "Reorder" && std::isinf(check.host_seconds(laid))) {
            ++tally_.skips[cat("engine ", engine.name(), " has no engine of the host beside it")];
            return;
        }
        const EngineCheck::Finding found =
            check.run(engine, laid, engine.default_tuning(device_.traits(), laid));
        if (found.outcome == EngineCheck::Outcome::right) return;
        // Drawn zeros need not be positions that the operator's forward engine makes.
        if (found.outcome == EngineCheck::Outcome::unknown && has_unknown_indices(laid))
            ++tally_.skips[cat("engine ", engine.name(), " may have drawn no valid indices")];
        else
            tally_.failures.push_back(
                cat(one_.title(), " by ", engine.name(), ": ", found.why, " (", laid.key(), ")"));
    }

    void run(const OperatorCheck::Call& call, const std::string& how) {
        const auto fail = [&](const std::string& what) {
            tally_.failures.push_back(
                cat(one_.title(), call.backward ? " backward" : " forward", how, ": ", what));
        };
        const OperatorCheck::Outcome outcome = check_.run(call);
        for (const std::string& fault : outcome.faults) fail(fault);
        if (check_.run(call).results != outcome.results) fail("two runs differ");
        tally_.runs += 2;
        bool used = call.engines.empty();
        for (const Engine* engine : outcome.used) {
            ++tally_.tried[engine];
            used = used || engine->name() == call.engines[0].second;
        }
        if (!used) fail("the engine applies, but was not used when forced");
    }

    const Context& device_;
    const Case& one_;
    const unsigned seed_;
    Tally& tally_;
    OperatorCheck check_;
};

}  // namespace

void check_case(const Context& device, const Case& one, unsigned seed, Precision precision,
                Tally& tally) {
    ++tally.cases;
    try {
        Checker checker(device, one, seed, precision, tally);
        checker.direction(false);
        if (one.gradient) checker.direction(true);
        checker.direction_on_views(false);
        if (one.gradient) checker.direction_on_views(true);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::unsupported)
            ++tally.skips[one.type + ": " + error.what()];
        else
            tally.failures.push_back(one.title() + ": " + error.what());
    } catch (const std::exception& error) {
        tally.failures.push_back(one.title() + ": " + error.what());
    }
}

}  // namespace dlprim::testing
