// SPDX-License-Identifier: MIT
// Builder: parts of what is built, and values that a part computes before the rest is known; see
// builder.hpp.
#include "base/text.hpp"
#include "formats/onnx/builder.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// Whether an operator of a part makes the value, and not its memory or an earlier part.
bool is_computed(Ref value) {
    return value->producer >= 0 && !value->known;
}

}  // namespace

void Builder::run_stages_by(StageRunner& runner, std::function<void(std::set<Ref>&)> live) {
    runner_ = &runner;
    live_ = std::move(live);
}

std::vector<bool> Builder::pending_for(const std::vector<Ref>& wanted) const {
    std::vector<bool> result(made_.size(), false);
    const auto want = [&](Ref value) {
        if (!is_computed(value)) return;
        const auto at = static_cast<std::size_t>(value->producer);
        if (!taken_[at]) result[at] = true;
    };
    for (Ref value : wanted) want(value);
    for (auto at = pending_.rbegin(); at != pending_.rend(); ++at) {
        if (!result[*at]) continue;
        for (const auto* list : {&made_[*at].inputs, &made_[*at].params})
            for (Ref value : *list) want(value);
    }
    return result;
}

Part Builder::take_part(const std::vector<Ref>& wanted, const std::set<Ref>& live) {
    std::vector<Ref> all(live.begin(), live.end());
    all.insert(all.end(), wanted.begin(), wanted.end());
    const std::vector<bool> is_needed = pending_for(all), is_now = pending_for(wanted);
    std::set<Ref> later = live;
    later.insert(wanted.begin(), wanted.end());
    Part part;
    std::vector<std::size_t> still_pending;
    for (const std::size_t at : pending_) {
        if (is_now[at]) {
            part.operators.push_back(std::move(made_[at]));  // nobody reads it there again
        } else if (is_needed[at]) {
            still_pending.push_back(at);
            for (const auto* list : {&made_[at].inputs, &made_[at].params})
                later.insert(list->begin(), list->end());
            continue;
        }
        taken_[at] = true;
    }
    pending_ = std::move(still_pending);
    std::set<Ref> seen;
    for (const BuiltOperator& op : part.operators) {
        for (const auto* list : {&op.inputs, &op.params})
            for (Ref value : *list)
                if (!value->known && seen.insert(value).second) part.inputs.push_back(value);
        for (Ref value : op.outputs) {
            seen.insert(value);
            if (!value->known && later.count(value)) part.outputs.push_back(value);
        }
    }
    return part;
}

bool Builder::know(Ref value) {
    if (value->known) return true;
    if (!runner_) return false;
    std::set<Ref> live;
    live_(live);
    HostValue contents = runner_->read(take_part({value}, live), value);
    values_[static_cast<std::size_t>(value->index)].known = std::move(contents);
    return true;
}

std::vector<Ref> Builder::call_host(const std::vector<Ref>& inputs, const HostFunction& function) {
    std::vector<HostValue> known;
    for (Ref value : inputs)
        if (value->known) known.push_back(value->known);
    std::vector<Ref> results;
    if (known.size() == inputs.size()) {
        for (HostValue& value : function(known)) results.push_back(constant("", std::move(value)));
        return results;
    }
    if (!runner_) return {};
    std::set<Ref> live;
    live_(live);
    const Part part = take_part(inputs, live);
    for (const TensorSpec& spec : runner_->call(part, inputs, function))
        results.push_back(fed(spec, {}));
    return results;
}

}  // namespace dlprim::onnx
