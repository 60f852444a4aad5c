// SPDX-License-Identifier: MIT
// gather_packings and join_packings.
#include "plan/packings.hpp"

#include "base/text.hpp"
#include "engine/call_batch.hpp"
#include "engine/disabled.hpp"

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
    const ValueId source = stored(schedule.root(item.reads[0])).value;
    return source != no_value && graph.value(source).role == Role::parameter &&
           stored(item.reads[0]).bytes + stored(item.writes[0]).bytes <= most_bytes;
}

/// Whether the step packs a value that is not scratch. Such packings in a row may run in any order.
/// The memory of scratch may be that of another packing's result from the next step on.
bool packs_lasting_value(const Step& step) {
    return step.type == "Pack" && step.operands.at(0).kind != Place::Kind::slab;
}

/// Packings with equal keys can become one step. Empty if the step cannot be joined with any.
std::string join_key(const Step& step) {
    if (!step.launch) return {};
    std::string key;
    for (const KernelCall& call : step.launch->calls()) {
        const std::optional<std::string> own = batch_key(call);
        if (!own || (!key.empty() && key != *own)) return {};
        key = *own;
    }
    if (key.empty()) return {};
    for (const Place& place : step.operands)
        key += cat('\n', static_cast<int>(place.kind), ' ', place.index);
    return key;
}

BuiltStep joined(ContextImpl& context, const std::vector<const Step*>& members) {
    BuiltStep built;
    Step& step = built.step;
    step.name = cat("pack ", members.size(), " parameters");
    step.type = members[0]->type;
    step.part = members[0]->part;
    step.disable_key = joined_packings_key;
    std::vector<BatchedCall> calls;
    for (const Step* member : members) {
        for (const KernelCall& call : member->launch->calls())
            calls.push_back({&call, static_cast<int>(step.operands.size())});
        step.operands.insert(step.operands.end(), member->operands.begin(), member->operands.end());
        step.bytes += member->bytes;
        step.bound_seconds += member->bound_seconds;
    }
    const NotedBuilds noted;
    step.launch = std::make_unique<CallBatch>(context, calls);
    built.programs = noted.programs();
    return built;
}

}  // namespace

std::uint64_t small_packing_bytes(ContextImpl& context) {
    const Traits& device = context.traits();
    if (device.host || device.wide_vectors || has_failed(context, joined_packings_key)) return 0;
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

void join_packings(ContextImpl& context, std::vector<BuiltStep>& steps) {
    std::vector<BuiltStep> result;
    for (std::size_t begin = 0; begin < steps.size();) {
        std::size_t end = begin;
        std::vector<std::string> keys;
        std::map<std::string, std::vector<const Step*>> groups;
        for (; end < steps.size() && packs_lasting_value(steps[end].step) &&
               steps[end].step.part == steps[begin].step.part;
             ++end) {
            keys.push_back(join_key(steps[end].step));
            groups[keys.back()].push_back(&steps[end].step);
        }
        for (std::size_t i = begin; i < end; ++i) {
            const std::string& key = keys[i - begin];
            const std::vector<const Step*>& group = groups.at(key);
            if (key.empty() || group.size() == 1)
                result.push_back(std::move(steps[i]));
            else if (group[0] == &steps[i].step)
                result.push_back(joined(context, group));
        }
        if (end == begin) result.push_back(std::move(steps[end++]));
        begin = end;
    }
    steps = std::move(result);
}

}  // namespace dlprim
