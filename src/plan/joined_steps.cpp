// SPDX-License-Identifier: MIT
// gather_packings and join_steps.
#include "plan/joined_steps.hpp"

#include "base/text.hpp"
#include "engine/disabled.hpp"
#include "engine/table_launch.hpp"
#include "plan/engine_failed.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace dlprim {

namespace {

bool is_small_packing(const Graph& graph, const LaunchSchedule& schedule, const Item& item,
                      std::uint64_t most_bytes) {
    if (item.kind != Item::Kind::pack) return false;
    const auto stored = [&](int id) -> const Stored& {
        return schedule.stored[static_cast<std::size_t>(id)];
    };
    // A parameter that is bound as a strided view is converted by an item before.
    const int root = schedule.root(item.reads[0]);
    const ValueId source = stored(root).value;
    return source != no_value && graph.value(source).role == Role::parameter &&
           schedule.native[static_cast<std::size_t>(source)] == root &&
           stored(item.reads[0]).bytes + stored(item.writes[0]).bytes <= most_bytes;
}

bool is_packing(const Step& step) {
    return step.type == "Pack";
}

/// Whether it computes one result of an inference without temporary memory, in about the time of a
/// launch, as products of a row with a matrix do.
bool is_short(const Step& step, double launch_seconds) {
    return step.engine != nullptr && step.problem && step.flops > 0 && !is_packing(step) &&
           step.problem->phase == Phase::inference && step.problem->outputs.size() == 1 &&
           step.operands.size() == step.problem->inputs.size() + 1 &&
           step.bound_seconds < 10 * launch_seconds;
}

/// What is known of the plan beside its steps.
struct Surroundings {
    double launch_seconds;
    std::span<const External> externals;

    /// Whether the caller may bind other memory for every run, so that a table would be uploaded
    /// each time. Parameters stay where they are.
    bool moves(const Place& place) const {
        return place.kind == Place::Kind::external &&
               externals[static_cast<std::size_t>(place.index)].kind != External::Kind::parameter;
    }
};

/// Whether the step may run at once with other ones that follow it in the plan, if they follow().
/// It is short, or it has one operand that it reads and another one to which it writes.
bool may_begin(const Step& step, const Surroundings& around) {
    if (!step.launch) return false;
    for (const Place& place : step.operands)
        if (around.moves(place)) return false;
    if (is_short(step, around.launch_seconds)) return true;
    if (step.operands.size() != 2 || step.operands[0] == step.operands[1]) return false;
    // The memory of scratch may be that of another packing's result from the next step on.
    if (is_packing(step)) return step.operands[0].kind != Place::Kind::slab;
    return step.flops == 0;
}

using Bytes = std::pair<Place, std::uint64_t>;

/// What a short step reads. Others read what lasts, or the same value as the steps around them.
std::vector<Bytes> read_by(const Step& step) {
    std::vector<Bytes> read;
    if (step.flops == 0 || is_packing(step)) return read;
    for (std::size_t i = 0; i < step.problem->inputs.size(); ++i) {
        const Operand& operand = step.problem->inputs[i];
        read.emplace_back(step.operands[i],
                          storage_bytes(operand.shape, operand.dtype, operand.layout));
    }
    return read;
}

bool overlap(const std::vector<Bytes>& some, const std::vector<Bytes>& others) {
    for (const auto& [to, bytes] : some)
        for (const auto& [other, other_bytes] : others)
            if (to.kind == other.kind && to.index == other.index &&
                to.offset < other.offset + other_bytes && other.offset < to.offset + bytes)
                return true;
    return false;
}

/// Whether one writes what the other one writes or reads. Both may write to the same bytes if
/// nobody reads what one of them writes.
bool depend(const Step& a, const Step& b) {
    return overlap(a.written, b.written) || overlap(a.written, read_by(b)) ||
           overlap(b.written, read_by(a));
}

/// Whether `step` may run at once with `first` if they do not depend() on each other. All of
/// them pack values that last, or all read the same value first: this is not free before the last
/// of them has run.
bool follows(const Step& first, const Step& step, const Surroundings& around) {
    if (!may_begin(step, around) || step.type != first.type || step.part != first.part)
        return false;
    return is_packing(step) ||
           (step.operands[0] == first.operands[0] && step.engine == first.engine);
}

/// The end of the steps from `begin` on that may run in any order.
std::size_t end_of_run(const std::vector<BuiltStep>& steps, std::size_t begin,
                       const Surroundings& around) {
    std::size_t end = begin + 1;
    if (!may_begin(steps[begin].step, around)) return end;
    const auto is_free = [&](const Step& step) {
        for (std::size_t i = begin; i < end; ++i)
            if (depend(steps[i].step, step)) return false;
        return true;
    };
    while (end < steps.size() && follows(steps[begin].step, steps[end].step, around) &&
           is_free(steps[end].step))
        ++end;
    return end;
}

/// Steps with equal keys can become one step. Empty if the step cannot be joined with any.
std::string join_key(const Step& step) {
    std::string key;
    for (const KernelCall& call : step.launch->calls()) {
        const std::optional<std::string> own = TableLaunch::key(call);
        if (!own || !(step.flops > 0 || is_copy(call)) || (!key.empty() && key != *own)) return {};
        key = *own;
    }
    return key;
}

BuiltStep joined(ContextImpl& context, const std::vector<const Step*>& members) {
    BuiltStep built;
    Step& step = built.step;
    step.type = members[0]->type;
    step.part = members[0]->part;
    step.joined = true;
    step.written_dtype = members[0]->written_dtype;
    std::vector<PlacedCall> calls;
    for (const Step* member : members) {
        for (const KernelCall& call : member->launch->calls())
            calls.push_back({&call, step.operands.size()});
        step.operands.insert(step.operands.end(), member->operands.begin(), member->operands.end());
        step.written.insert(step.written.end(), member->written.begin(), member->written.end());
        step.bytes += member->bytes;
        step.flops += member->flops;
        step.bound_seconds += member->bound_seconds;
        if (is_packing(step)) continue;
        if (member != members[0]) step.fused.push_back(member->name);
        step.fused.insert(step.fused.end(), member->fused.begin(), member->fused.end());
    }
    if (is_packing(step)) {
        step.name = cat("pack ", members.size(), " parameters");
    } else {
        step.name = members[0]->name;
        step.engine = members[0]->engine;
    }
    const NotedBuilds noted;
    try {
        step.launch = std::make_unique<TableLaunch>(context, calls);
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::out_of_memory) throw;
        throw EngineFailed(EngineFailed::Kind::build, error, {{joined_steps_key, error.what()}});
    }
    built.programs = noted.programs();
    return built;
}

}  // namespace

bool joins_steps(ContextImpl& context) {
    const Traits& device = context.traits();
    return !device.host && !device.wide_vectors && !has_failed(context, joined_steps_key);
}

std::uint64_t small_packing_bytes(const Traits& device) {
    return static_cast<std::uint64_t>(device.launch_us * 1e-6 * device.gbytes_per_s * 1e9);
}

bool gather_packings(const Graph& graph, LaunchSchedule& schedule, std::uint64_t most_bytes) {
    const auto is_small = [&](const Item& item) {
        return is_small_packing(graph, schedule, item, most_bytes);
    };
    bool gathered = false;
    // The items of a part are consecutive.
    for (auto begin = schedule.items.begin() + static_cast<std::ptrdiff_t>(schedule.setup);
         begin != schedule.items.end();) {
        const auto end = std::find_if(begin, schedule.items.end(),
                                      [&](const Item& item) { return item.part != begin->part; });
        if (std::count_if(begin, end, is_small) > 1) {
            std::stable_partition(begin, end, is_small);
            gathered = true;
        }
        begin = end;
    }
    return gathered;
}

void join_steps(ContextImpl& context, std::vector<BuiltStep>& steps,
                std::span<const External> externals) {
    std::vector<BuiltStep> result;
    const Surroundings around{context.traits().launch_us * 1e-6, externals};
    for (std::size_t begin = 0; begin < steps.size();) {
        const std::size_t end = end_of_run(steps, begin, around);
        if (end == begin + 1) {
            result.push_back(std::move(steps[begin++]));
            continue;
        }
        std::vector<std::string> keys;
        std::map<std::string, std::vector<const Step*>> groups;
        for (std::size_t i = begin; i < end; ++i) {
            keys.push_back(join_key(steps[i].step));
            groups[keys.back()].push_back(&steps[i].step);
        }
        for (std::size_t i = begin; i < end; ++i) {
            const std::string& key = keys[i - begin];
            const std::vector<const Step*>& group = groups.at(key);
            if (key.empty() || group.size() == 1)
                result.push_back(std::move(steps[i]));
            else if (group[0] == &steps[i].step)
                result.push_back(joined(context, group));
        }
        begin = end;
    }
    steps = std::move(result);
}

}  // namespace dlprim
