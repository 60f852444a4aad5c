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

bool is_small_packing(const Graph& graph, const Schedule& schedule, const Item& item,
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

/// Whether the step may run at once with other ones that follow it in the plan, if they follow().
/// It has one operand that it reads and another one to which it writes. Neither is bound by the
/// caller, who may bind other memory for every run, so that the table would be uploaded each time.
bool may_begin(const Step& step) {
    if (!step.launch || step.operands.size() != 2 || step.operands[0] == step.operands[1])
        return false;
    for (const Place& place : step.operands)
        if (place.kind == Place::Kind::external) return false;
    // The memory of scratch may be that of another packing's result from the next step on.
    if (is_packing(step)) return step.operands[0].kind != Place::Kind::slab;
    return step.flops == 0;
}

/// Whether both write to the same bytes. This can be if nobody reads what one of them writes.
bool overlap(const Step& a, const Step& b) {
    for (const auto& [to, bytes] : a.written)
        for (const auto& [other, other_bytes] : b.written)
            if (to.kind == other.kind && to.index == other.index &&
                to.offset < other.offset + other_bytes && other.offset < to.offset + bytes)
                return true;
    return false;
}

/// Whether `step` does not depend on `first`, nor on steps between them that also follow it. All of
/// them pack values that last, or all copy from the same value: this is not free before the last of
/// them has run.
bool follows(const Step& first, const Step& step) {
    if (!may_begin(step) || step.type != first.type || step.part != first.part) return false;
    return is_packing(step) ||
           (step.operands[0] == first.operands[0] && step.engine == first.engine);
}

/// The end of the steps from `begin` on that may run in any order.
std::size_t end_of_run(const std::vector<BuiltStep>& steps, std::size_t begin) {
    std::size_t end = begin + 1;
    if (!may_begin(steps[begin].step)) return end;
    const auto is_free = [&](const Step& step) {
        for (std::size_t i = begin; i < end; ++i)
            if (overlap(steps[i].step, step)) return false;
        return true;
    };
    while (end < steps.size() && follows(steps[begin].step, steps[end].step) &&
           is_free(steps[end].step))
        ++end;
    return end;
}

/// Steps with equal keys can become one step. Empty if the step cannot be joined with any.
std::string join_key(const Step& step) {
    std::string key;
    for (const KernelCall& call : step.launch->calls()) {
        const std::optional<std::string> own = TableLaunch::key(call);
        if (!own || !is_copy(call) || (!key.empty() && key != *own)) return {};
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
        throw EngineFailed(error, joined_steps_key);
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

bool gather_packings(const Graph& graph, Schedule& schedule, std::uint64_t most_bytes) {
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

void join_steps(ContextImpl& context, std::vector<BuiltStep>& steps) {
    std::vector<BuiltStep> result;
    for (std::size_t begin = 0; begin < steps.size();) {
        const std::size_t end = end_of_run(steps, begin);
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
