// SPDX-License-Identifier: MIT
// If, Loop, Scan and SequenceMap: the branch is taken, and bodies are imported once per iteration,
// so that what comes out of them is a straight list of operators. Conditions and trip counts are
// known values; where they are computed, the network so far is run for them.
#include "formats/onnx/call.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

Ref known_boolean(Call& call, const Shape& shape, bool value) {
    return call.build.constant("", host_integers(shape, {value}, DType::boolean));
}

/// The condition's value, which must be one boolean.
bool is_true(Call& call, const AnyValue& value) {
    const Ref tensor = value.tensor();
    call.check(tensor && tensor->spec.dtype == DType::boolean && tensor->spec.shape.numel() == 1,
               "a condition is ", value.str(), "; it must be one bool");
    return call.known(tensor, "conditions")->data[0] != std::byte{0};
}

void check_iteration(Call& call, std::int64_t done) {
    call.supports(done < call.graphs.max_iterations(), "there are more than ",
                  call.graphs.max_iterations(), " iterations (max_iterations)");
}

void choose_branch(Call& call) {
    const Graph &then_branch = call.graph("then_branch"), &else_branch = call.graph("else_branch");
    const Graph& taken = is_true(call, call.value(0)) ? then_branch : else_branch;
    const std::vector<AnyValue> results = call.graphs.run_graph(taken, {});
    call.check(static_cast<int>(results.size()) >= call.outputs(), "the branch has ",
               results.size(), " outputs, the node has ", call.outputs());
    for (int i = 0; i < call.outputs(); ++i) call.set(i, results[static_cast<std::size_t>(i)]);
}

Ref with_axis(Call& call, Ref value, int axis) {
    Ints sizes = value->spec.shape.to_vector();
    call.supports(sizes.size() < Shape::max_rank, "a result of more than ", Shape::max_rank,
                  " dimensions is not supported");
    sizes.insert(sizes.begin() + axis, 1);
    return call.build.reshape(value, Shape(sizes));
}

/// What the iterations made, behind each other along a new axis. Without iterations the shape is
/// what the body declares, with 0 for what it leaves open.
Ref stacked(Call& call, const std::vector<Ref>& parts, const ValueInfo& declared, int axis) {
    if (parts.empty()) {
        Ints sizes;
        if (declared.shape)
            for (const Dimension& dim : *declared.shape) sizes.push_back(dim.size.value_or(0));
        sizes.insert(sizes.begin() + std::min<std::ptrdiff_t>(axis, std::ssize(sizes)), 0);
        const DType dtype = declared.dtype.value_or(DType::f32);
        return call.build.constant("", call.build.allocate(Shape(sizes), dtype));
    }
    std::vector<Ref> rows;
    for (Ref part : parts) {
        call.check(part->spec == parts[0]->spec && part->strings == parts[0]->strings,
                   "an iteration makes ", AnyValue(part).str(), " and another one ",
                   AnyValue(parts[0]).str());
        rows.push_back(with_axis(call, part, axis));
    }
    if (rows.size() == 1) return rows[0];
    const Ref all = call.build.concat(rows, axis);
    return parts[0]->strings ? call.build.as_strings(all) : all;
}

/// What a body's outputs from `first` on have made in all iterations.
class Stacks {
  public:
    Stacks(Call& call, const Graph& body, std::size_t first)
        : call_(call), body_(body), first_(first), parts_(body.outputs.size() - first) {}

    /// Takes an iteration's results, and keeps them and those before `first`, which are the state
    /// of the next one.
    void take(const std::vector<AnyValue>& results) {
        call_.kept.resize(kept_);
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const AnyValue& result = results[first_ + i];
            call_.check(result.tensor() != nullptr, "an iteration makes ", result.str(),
                        "; it must be a tensor");
            parts_[i].push_back(result.tensor());
            call_.kept.push_back(result);
        }
        kept_ = call_.kept.size();
        call_.kept.insert(call_.kept.end(), results.begin(),
                          results.begin() + static_cast<std::ptrdiff_t>(first_));
    }
    /// Keeps values that all iterations need.
    void keep(const std::vector<Ref>& values) {
        call_.kept.resize(kept_);
        call_.kept.insert(call_.kept.end(), values.begin(), values.end());
        kept_ = call_.kept.size();
    }
    std::size_t size() const { return parts_.size(); }
    /// The last iteration's results come first.
    void reverse(std::size_t i) { std::reverse(parts_[i].begin(), parts_[i].end()); }
    /// All that output `first` + `i` has made, along a new axis. A negative one counts from the
    /// end.
    Ref all(std::size_t i, std::int64_t axis) const {
        const ValueInfo& declared = body_.outputs[first_ + i];
        int rank = declared.shape ? static_cast<int>(declared.shape->size()) : 0;
        if (!parts_[i].empty()) rank = parts_[i][0]->spec.shape.rank();
        return stacked(call_, parts_[i], declared, call_.axis(axis, rank + 1));
    }

  private:
    Call& call_;
    const Graph& body_;
    std::size_t first_, kept_ = 0;
    std::vector<std::vector<Ref>> parts_;
};

void loop(Call& call) {
    const Graph& body = call.graph("body");
    const auto carried = static_cast<std::size_t>(std::max(call.inputs() - 2, 0));
    call.check(body.outputs.size() > carried && body.inputs.size() == carried + 2, "the body has ",
               body.inputs.size(), " inputs and ", body.outputs.size(), " outputs for ", carried,
               " carried values");
    std::vector<AnyValue> state;
    for (int i = 2; i < call.inputs(); ++i) state.push_back(call.value(i));
    const bool has_trips = call.has(0), has_condition = call.has(1);
    const std::int64_t trips = has_trips ? call.known_integer(0, "trip counts") : 0;
    bool goes_on = !has_condition || is_true(call, call.value(1));
    const Shape condition = has_condition ? call.shape(1) : Shape{};
    Stacks stacks(call, body, carried + 1);
    for (std::int64_t i = 0; goes_on && (!has_trips || i < trips); ++i) {
        check_iteration(call, i);
        std::vector<AnyValue> inputs{call.build.constant("", host_integers({}, {i})),
                                     known_boolean(call, condition, true)};
        inputs.insert(inputs.end(), state.begin(), state.end());
        const std::vector<AnyValue> results = call.graphs.run_graph(body, inputs);
        stacks.take(results);
        state.assign(results.begin() + 1, results.begin() + 1 + std::ssize(state));
        // Without a condition the body's is ignored, and behind the last trip nobody needs it.
        if (has_condition && (!has_trips || i + 1 < trips)) goes_on = is_true(call, results[0]);
    }
    for (std::size_t i = 0; i < carried; ++i) call.set(static_cast<int>(i), state[i]);
    for (std::size_t i = 0; i < stacks.size(); ++i)
        call.set(static_cast<int>(carried + i), stacks.all(i, 0));
}

/// Position `at` of dimension `axis`, without that dimension.
Ref part_at(Call& call, Ref value, int axis, std::int64_t at) {
    const Shape& shape = value->spec.shape;
    Ref part = value;
    if (shape[axis] != 1) part = call.build.slice(value, axis, at, at + 1);
    Ints sizes = shape.to_vector();
    sizes.erase(sizes.begin() + axis);
    part = call.build.reshape(part, Shape(sizes));
    return value->strings ? call.build.as_strings(part) : part;
}

/// The attributes of a Scan for its inputs or outputs: axes and directions.
struct ScanWay {
    Ints axes, reverse;
    ScanWay(Call& call, std::string_view axes_name, std::string_view directions_name,
            std::size_t count)
        : axes(call.integers(axes_name, Ints(count, 0))),
          reverse(call.integers(directions_name, Ints(count, 0))) {
        call.check(axes.size() == count && reverse.size() == count, axes_name, " and ",
                   directions_name, " want ", count, " entries, got ", axes.size(), " and ",
                   reverse.size());
    }
};

/// Runs the body once per position of the scanned inputs. `state` is what it begins with, and what
/// it ends with afterwards.
void scan_over(Call& call, const Graph& body, std::vector<AnyValue>& state,
               const std::vector<Ref>& scanned, const ScanWay& way, Stacks& stacks) {
    std::vector<int> axes;
    std::int64_t length = 0;
    for (std::size_t i = 0; i < scanned.size(); ++i) {
        const Shape& shape = scanned[i]->spec.shape;
        axes.push_back(call.axis(way.axes[i], shape.rank()));
        if (i == 0) length = shape[axes[0]];
        call.check(shape[axes[i]] == length, "scanned inputs have ", length, " and ",
                   shape[axes[i]], " positions");
    }
    stacks.keep(scanned);
    for (std::int64_t at = 0; at < length; ++at) {
        check_iteration(call, at);
        std::vector<AnyValue> inputs = state;
        for (std::size_t i = 0; i < scanned.size(); ++i)
            inputs.emplace_back(
                part_at(call, scanned[i], axes[i], way.reverse[i] != 0 ? length - 1 - at : at));
        const std::vector<AnyValue> results = call.graphs.run_graph(body, inputs);
        stacks.take(results);
        state.assign(results.begin(), results.begin() + std::ssize(state));
    }
}

/// A Scan's inputs from `first` on: those that are its state, and those that it scans.
struct ScanInputs {
    std::vector<AnyValue> state;
    std::vector<Ref> scanned;

    ScanInputs(Call& call, const Graph& body, int first) {
        const std::int64_t count = call.integer("num_scan_inputs", 0);
        const int states = call.inputs() - first -
                           static_cast<int>(std::clamp<std::int64_t>(count, 0, call.inputs()));
        call.check(count >= 1 && states >= 0 && std::ssize(body.outputs) >= states,
                   "num_scan_inputs is ", count, " for ", call.inputs() - first,
                   " inputs, and the body has ", body.outputs.size(), " outputs");
        for (int i = first; i < first + states; ++i) state.push_back(call.value(i));
        for (int i = first + states; i < call.inputs(); ++i) scanned.push_back(call.in(i));
    }
};

void scan(Call& call) {
    const Graph& body = call.graph("body");
    ScanInputs from(call, body, 0);
    const auto states = from.state.size();
    const ScanWay in(call, "scan_input_axes", "scan_input_directions", from.scanned.size());
    Stacks stacks(call, body, states);
    const ScanWay out(call, "scan_output_axes", "scan_output_directions", stacks.size());
    scan_over(call, body, from.state, from.scanned, in, stacks);
    for (std::size_t i = 0; i < states; ++i) call.set(static_cast<int>(i), from.state[i]);
    for (std::size_t i = 0; i < stacks.size(); ++i) {
        if (out.reverse[i] != 0) stacks.reverse(i);
        call.set(static_cast<int>(states + i), stacks.all(i, out.axes[i]));
    }
}

/// Version 8: all has a batch in front, and the body runs for one element of it at a time.
void scan_of_batch(Call& call) {
    const Graph& body = call.graph("body");
    call.supports(!call.has(0), "sequence_lens are not supported");
    const ScanInputs all(call, body, 1);
    const ScanWay in(call, "axes", "directions", all.scanned.size());
    const std::int64_t batch =
        all.scanned[0]->spec.shape.rank() > 0 ? all.scanned[0]->spec.shape[0] : 0;
    std::vector<std::vector<Ref>> results(body.outputs.size());
    for (std::int64_t b = 0; b < batch; ++b) {
        check_iteration(call, b);
        const auto element = [&](Ref value) {
            call.check(value && value->spec.shape.rank() > 0 && value->spec.shape[0] == batch,
                       "an input is ", AnyValue(value).str(), "; its batch must be ", batch);
            return part_at(call, value, 0, b);
        };
        std::vector<AnyValue> state;
        std::vector<Ref> scanned;
        for (const AnyValue& value : all.state) state.emplace_back(element(value.tensor()));
        for (Ref value : all.scanned) scanned.push_back(element(value));
        Stacks stacks(call, body, state.size());
        for (const auto& list : results) stacks.keep(list);
        scan_over(call, body, state, scanned, in, stacks);
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (i < state.size())
                call.check(state[i].tensor() != nullptr, "an iteration makes ", state[i].str(),
                           "; it must be a tensor");
            results[i].push_back(i < state.size() ? state[i].tensor()
                                                  : stacks.all(i - state.size(), 0));
        }
    }
    for (std::size_t i = 0; i < results.size(); ++i)
        call.set(static_cast<int>(i), stacked(call, results[i], body.outputs[i], 0));
}

void sequence_map(Call& call) {
    const Graph& body = call.graph("body");
    const std::size_t length = call.sequence(0).size();
    std::vector<AnyValue::Sequence> results(body.outputs.size());
    for (std::size_t at = 0; at < length; ++at) {
        check_iteration(call, static_cast<std::int64_t>(at));
        std::vector<AnyValue> inputs;
        for (int i = 0; i < call.inputs(); ++i) {
            const AnyValue::Sequence* const list = call.value(i).sequence();
            call.check(!list || list->size() == length, "sequences have ", length, " and ",
                       list ? list->size() : 0, " elements");
            inputs.push_back(list ? (*list)[at] : call.value(i));
        }
        const std::vector<AnyValue> made = call.graphs.run_graph(body, inputs);
        for (std::size_t i = 0; i < results.size(); ++i) results[i].push_back(made[i]);
        call.kept.insert(call.kept.end(), made.begin(), made.end());
    }
    for (std::size_t i = 0; i < results.size(); ++i)
        call.set(static_cast<int>(i), AnyValue(std::move(results[i])));
}

}  // namespace

std::vector<Rule> control_flow_rules() {
    return {
        {"If", 1, choose_branch, Rule::Strings::own},
        {"Loop", 1, loop, Rule::Strings::own},
        {"Scan", 8, scan_of_batch, Rule::Strings::own},
        {"Scan", 9, scan, Rule::Strings::own},
        {"SequenceMap", 17, sequence_map, Rule::Strings::own},
    };
}

}  // namespace dlprim::onnx
