// SPDX-License-Identifier: MIT
// RNN, LSTM and GRU. Where the project's own operators LSTM and GRU have what the node asks for, it
// becomes one of them, in whose order the gates are brought; else its steps are imported one by one
// (recurrent_cells.hpp).
#include "formats/onnx/rules/recurrent_cells.hpp"

#include <algorithm>
#include <numeric>

namespace dlprim::onnx {

namespace {

/// The parameters of one direction.
struct Weights {
    Ref input, hidden;                                ///< W and R, [gates * hidden, ...]
    Ref input_bias = nullptr, hidden_bias = nullptr;  ///< the halves of B
};

struct Recurrent {
    Cell::Kind kind;
    std::int64_t hidden = 0, steps = 0, batch = 0;
    int directions = 1;
    bool reverse = false;  ///< there is one direction, from the last step to the first
    bool batch_first = false;
    bool is_plain = false;  ///< the functions are the usual ones, without clipping
    std::vector<GateFunction> functions;
    std::vector<Weights> weights;
    Ref x;                                    ///< [steps, batch, features]
    Ref lengths = nullptr;                    ///< null where all sequences have all steps
    Ref h = nullptr, c = nullptr;             ///< [directions, batch, hidden]
    std::vector<std::vector<Ref>> peepholes;  ///< by direction
    bool couples_forget = false, linear_before_reset = false;
    /// By direction, of DynamicQuantizeLSTM; else none.
    std::vector<IntegerWeights> input_integers, hidden_integers;
};

/// Direction `d` of an input [directions, ...], without that dimension.
Ref direction_of(Builder& build, Ref value, int d) {
    Ints rest = value->spec.shape.to_vector();
    rest.erase(rest.begin());
    return build.reshape(build.slice(value, 0, d, d + 1), Shape(rest));
}

void check_shape(const Call& call, int input, const Shape& wanted) {
    call.check(call.shape(input) == wanted, "input ", input, " has shape ", call.shape(input).str(),
               ", it must be ", wanted.str());
}

void read_direction(Call& call, Recurrent& node) {
    const std::string direction = call.text("direction", "forward");
    call.check(direction == "forward" || direction == "reverse" || direction == "bidirectional",
               "direction '", direction, "' is none of forward, reverse and bidirectional");
    node.directions = direction == "bidirectional" ? 2 : 1;
    node.reverse = direction == "reverse";
}

void read_functions(Call& call, Recurrent& node) {
    const std::vector<std::string> usual =
        node.kind == Cell::Kind::rnn    ? std::vector<std::string>{"Tanh"}
        : node.kind == Cell::Kind::lstm ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                        : std::vector<std::string>{"Sigmoid", "Tanh"};
    node.functions = read_gate_functions(call, usual, node.directions);
    const std::vector<std::string> named = call.texts("activations");
    node.is_plain = !call.given("clip");
    for (std::size_t i = 0; i < named.size(); ++i)
        node.is_plain = node.is_plain && named[i] == usual[i % usual.size()];
}

void read_weights(Call& call, Recurrent& node) {
    const std::int64_t gates = Cell{node.kind}.gates(), d = node.directions;
    call.check(call.shape(2).rank() == 3, "the recurrence weight has shape ", call.shape(2).str(),
               "; it must be [directions, ", gates, " * hidden, hidden]");
    const std::int64_t hidden = call.shape(2)[2], rows = gates * hidden;
    call.check(hidden >= 1 && hidden < (std::int64_t{1} << 40), "the recurrence weight has shape ",
               call.shape(2).str(), ", which has no elements or too many");
    node.hidden = hidden;
    const std::int64_t given = call.integer("hidden_size", hidden);
    call.check(given == hidden, "hidden_size is ", given, ", the recurrence weight has shape ",
               call.shape(2).str());
    check_shape(call, 1, {d, rows, node.x->spec.shape[2]});
    check_shape(call, 2, {d, rows, hidden});
    if (call.has(3)) check_shape(call, 3, {d, 2 * rows});
    Builder& build = call.build;
    for (int i = 0; i < node.directions; ++i) {
        Weights weights{direction_of(build, call.in(1), i), direction_of(build, call.in(2), i)};
        if (call.has(3)) {
            const Ref both = direction_of(build, call.in(3), i);
            weights.input_bias = build.slice(both, 0, 0, rows);
            weights.hidden_bias = build.slice(both, 0, rows, 2 * rows);
        }
        node.weights.push_back(weights);
    }
}

/// A state [directions, batch, hidden], or null.
Ref state_of(Call& call, const Recurrent& node, int input) {
    if (!call.has(input)) return nullptr;
    const Shape wanted{node.directions, node.batch, node.hidden};
    if (!node.batch_first) {
        check_shape(call, input, wanted);
        return call.in(input);
    }
    check_shape(call, input, {node.batch, node.directions, node.hidden});
    return call.build.transpose(call.in(input), {1, 0, 2});
}

void read_lengths(Call& call, Recurrent& node) {
    if (!call.has(4)) return;
    check_shape(call, 4, {node.batch});
    const Ref lengths = call.in(4);
    if (lengths->known) {
        const Ints values = call.known_integers(4, "sequence_lens");
        if (std::all_of(values.begin(), values.end(),
                        [&](std::int64_t length) { return length >= node.steps; }))
            return;
    }
    node.lengths = call.build.reshape(lengths, {node.batch, 1}, 0);
}

Recurrent read_node(Call& call, Cell::Kind kind) {
    if (call.version() < 7) call.ignore("output_sequence");
    Recurrent node{kind};
    node.batch_first = call.integer("layout", 0) != 0;
    read_direction(call, node);
    read_functions(call, node);
    const Shape& x = call.shape(0);
    call.check(x.rank() == 3, "the input has shape ", x.str(), "; it must have 3 dimensions");
    call.check(is_float(call.dtype(0)), "the input is ", name_of(call.dtype(0)),
               "; it must be a float");
    node.x = node.batch_first ? call.build.transpose(call.in(0), {1, 0, 2}) : call.in(0);
    node.steps = node.x->spec.shape[0];
    node.batch = node.x->spec.shape[1];
    read_weights(call, node);
    read_lengths(call, node);
    node.h = state_of(call, node, 5);
    if (kind == Cell::Kind::gru)
        node.linear_before_reset = call.integer("linear_before_reset", 0) != 0;
    if (kind != Cell::Kind::lstm) return node;
    node.couples_forget = call.integer("input_forget", 0) != 0;
    node.c = state_of(call, node, 6);
    if (!call.has(7)) return node;
    check_shape(call, 7, {node.directions, 3 * node.hidden});
    for (int d = 0; d < node.directions; ++d) {
        const Ref all = direction_of(call.build, call.in(7), d);
        node.peepholes.emplace_back();
        for (std::int64_t i = 0; i < 3; ++i)
            node.peepholes.back().push_back(
                call.build.slice(all, 0, i * node.hidden, (i + 1) * node.hidden));
    }
    return node;
}

/// Whether the project's operator of the same name computes the same.
bool is_own_operator(const Call& call, const Recurrent& node) {
    if (!node.is_plain || node.lengths || node.reverse || !node.input_integers.empty() ||
        node.kind == Cell::Kind::rnn)
        return false;
    if (!call.in(1)->known || !call.in(2)->known || (call.has(3) && !call.in(3)->known))
        return false;
    return node.kind == Cell::Kind::lstm ? node.peepholes.empty() && !node.couples_forget
                                         : node.linear_before_reset;
}

/// The gates of direction `d` in PyTorch's order, of a known input [directions, rows, ...] from row
/// `first` on. The operators take parameters alone, not what other operators compute.
Ref reordered(Builder& build, Ref value, const Recurrent& node, int d, std::int64_t first) {
    const Ints order = node.kind == Cell::Kind::lstm ? Ints{0, 2, 3, 1} : Ints{1, 0, 2};
    const Shape& shape = value->spec.shape;
    Ints sizes = shape.to_vector();
    sizes.erase(sizes.begin());
    sizes[0] = std::ssize(order) * node.hidden;
    auto made = build.allocate(Shape(sizes), value->spec.dtype);
    const std::size_t row =
        static_cast<std::size_t>(shape.product(2, shape.rank())) * size_of(value->spec.dtype);
    std::byte* to = made->data.data();
    for (const std::int64_t gate : order) {
        const std::int64_t from = d * shape[1] + first + gate * node.hidden;
        to = std::copy_n(value->known->data.data() + static_cast<std::size_t>(from) * row,
                         static_cast<std::size_t>(node.hidden) * row, to);
    }
    return build.constant(build.name_of(value), std::move(made), value->stored);
}

/// Y [steps, directions, batch, hidden], and the last states [directions, batch, hidden].
std::vector<Ref> run_own_operator(Call& call, const Recurrent& node) {
    Builder& build = call.build;
    std::vector<Ref> inputs{node.x}, params;
    const auto zeros = [&] {
        const Shape shape{node.directions, node.batch, node.hidden};
        return build.constant("", build.allocate(shape, node.x->spec.dtype));
    };
    if (node.h || node.c) {
        inputs.push_back(node.h ? node.h : zeros());
        if (node.kind == Cell::Kind::lstm) inputs.push_back(node.c ? node.c : zeros());
    }
    for (int d = 0; d < node.directions; ++d) {
        params.push_back(reordered(build, call.in(1), node, d, 0));
        params.push_back(reordered(build, call.in(2), node, d, 0));
        if (!call.has(3)) continue;
        for (const std::int64_t half : {std::int64_t{0}, call.shape(3)[1] / 2})
            params.push_back(reordered(build, call.in(3), node, d, half));
    }
    std::vector<Ref> made = build.add(node.kind == Cell::Kind::lstm ? "LSTM" : "GRU", inputs,
                                      {{"hidden_size", node.hidden},
                                       {"bidirectional", node.directions == 2},
                                       {"bias", call.has(3)}},
                                      params);
    if (node.directions == 1) {
        made[0] = build.reshape(made[0], {node.steps, 1, node.batch, node.hidden}, 2);
    } else {
        const Ref split =
            build.reshape(made[0], {node.steps, node.batch, node.directions, node.hidden}, 1);
        made[0] = build.transpose(split, {0, 2, 1, 3});
    }
    return made;
}

/// What all steps of direction `d` share.
Cell cell_of(const Recurrent& node, int d) {
    Cell cell{node.kind, node.hidden};
    const auto at = static_cast<std::size_t>(d);
    const std::size_t each = node.functions.size() / static_cast<std::size_t>(node.directions);
    cell.functions.assign(node.functions.begin() + static_cast<std::ptrdiff_t>(at * each),
                          node.functions.begin() + static_cast<std::ptrdiff_t>((at + 1) * each));
    cell.weights = node.weights[at].hidden;
    if (node.linear_before_reset) cell.bias = node.weights[at].hidden_bias;
    if (!node.peepholes.empty()) cell.peepholes = node.peepholes[at];
    cell.lengths = node.lengths;
    cell.couples_forget = node.couples_forget;
    cell.linear_before_reset = node.linear_before_reset;
    if (!node.hidden_integers.empty()) cell.integers = node.hidden_integers[at];
    return cell;
}

/// The input's share of all steps' gates: one product, as [batch, gates * hidden] for each step.
std::vector<Ref> projections(Builder& build, const Recurrent& node, int d) {
    const auto at = static_cast<std::size_t>(d);
    const Weights& weights = node.weights[at];
    Ref bias = weights.input_bias;
    if (bias && !node.linear_before_reset)
        bias = build.pointwise("y0 = x0 + x1", {bias, weights.hidden_bias});
    Ref all = nullptr;
    if (!node.input_integers.empty()) {
        const IntegerWeights& integers = node.input_integers[at];
        all = scaled_matmul(build, dynamically_quantized(build, node.x), integers.values,
                            integers.scale, bias);
    } else {
        std::vector<Ref> inputs{node.x, weights.input};
        if (bias) inputs.push_back(bias);
        all = build.add1("MatMul", inputs, {{"transpose_b", true}, {"bias", bias != nullptr}});
    }
    std::vector<Ref> steps = node.steps == 1
                                 ? std::vector<Ref>{all}
                                 : build.add("Split", {all}, {{"dim", 0}, {"parts", node.steps}});
    for (Ref& step : steps) step = build.reshape(step, {node.batch, all->spec.shape[2]}, 0);
    return steps;
}

struct DirectionResult {
    Ref y, h, c;  ///< [steps, 1, batch, hidden], and [1, batch, hidden]
};

/// The state [batch, hidden] that direction `d` starts from. Sequences without steps end with
/// zeros, as in ONNX Runtime; ONNX does not say what their last state is.
Ref initial_state(Builder& build, const Recurrent& node, Ref all, int d) {
    if (!all) return nullptr;
    const Ref own = direction_of(build, all, d);
    return node.lengths ? build.pointwise("y0 = x1 > 0 ? x0 : 0", {own, node.lengths}) : own;
}

DirectionResult run_direction(Builder& build, const Recurrent& node, int d) {
    const Cell cell = cell_of(node, d);
    const std::vector<Ref> inputs = projections(build, node, d);
    CellState state;
    state.h = initial_state(build, node, node.h, d);
    state.c = initial_state(build, node, node.c, d);
    std::vector<Ref> outputs(inputs.size());
    const bool backwards = node.reverse || d == 1;
    for (std::int64_t i = 0; i < node.steps; ++i) {
        const std::int64_t t = backwards ? node.steps - 1 - i : i;
        const auto at = static_cast<std::size_t>(t);
        outputs[at] = build.reshape(run_cell(build, cell, inputs[at], t, state),
                                    {1, 1, node.batch, node.hidden}, 2);
    }
    const auto last = [&](Ref value) {
        return value ? build.reshape(value, {1, node.batch, node.hidden}, 1) : nullptr;
    };
    const Ref y = build.concat(outputs, 0);
    return {y, last(state.h), last(state.c)};
}

std::vector<Ref> run_steps(Builder& build, const Recurrent& node) {
    std::vector<Ref> y, h, c;
    for (int d = 0; d < node.directions; ++d) {
        const DirectionResult one = run_direction(build, node, d);
        y.push_back(one.y);
        h.push_back(one.h);
        c.push_back(one.c);
    }
    const auto joined = [&](const std::vector<Ref>& parts, std::int64_t dim) {
        return build.concat(parts, dim);
    };
    std::vector<Ref> made{joined(y, 1), joined(h, 0)};
    if (node.kind == Cell::Kind::lstm) made.push_back(joined(c, 0));
    return made;
}

void recurrent(Call& call, Cell::Kind kind, std::vector<IntegerWeights> input = {},
               std::vector<IntegerWeights> hidden = {}) {
    Recurrent node = read_node(call, kind);
    node.input_integers = std::move(input);
    node.hidden_integers = std::move(hidden);
    call.check(node.steps >= 1 && node.batch >= 1, "the input has shape ", call.shape(0).str(),
               ", which has no steps");
    call.supports(node.steps <= call.graphs.max_iterations(), "there are more than ",
                  call.graphs.max_iterations(), " steps (max_iterations)");
    Builder& build = call.build;
    const std::vector<Ref> made =
        is_own_operator(call, node) ? run_own_operator(call, node) : run_steps(call.build, node);
    for (std::size_t i = 0; i < made.size(); ++i) {
        if (!call.wants(static_cast<int>(i))) continue;
        const Ints order = i == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2};
        call.set(static_cast<int>(i), node.batch_first ? build.transpose(made[i], order) : made[i]);
    }
}

/// Weights [directions, features, gates * hidden] of integers, by direction. Scale and zero point
/// are numbers for each direction, or for each of its columns.
std::vector<IntegerWeights> integer_weights(Call& call, int i, int scale) {
    const Shape& weights = call.shape(i);
    call.check(weights.rank() == 3, "input ", i, " has shape ", weights.str(),
               "; it must be [directions, features, 4 * hidden]");
    const auto checked = [&](int at) {
        const Shape& given = call.shape(at);
        call.check(given == Shape{weights[0]} || given == Shape{weights[0], weights[2]}, "input ",
                   at, " has shape ", given.str(), " for weights of shape ", weights.str());
        return call.in(at);
    };
    const Ref zero = checked(scale + 1);
    const std::int64_t columns = zero->spec.shape.rank() == 2 ? weights[2] : 1;
    const Factor all =
        shifted(call, call.in(i), call.build.reshape(zero, {weights[0], 1, columns}));
    const std::int64_t each = weights[1] * weights[2];
    std::vector<IntegerWeights> made;
    for (int d = 0; d < static_cast<int>(weights[0]); ++d) {
        Factor own{direction_of(call.build, all.value, d), {}};
        if (!all.known.empty())
            own.known.assign(all.known.begin() + d * each, all.known.begin() + (d + 1) * each);
        made.push_back({settled(std::move(own)), direction_of(call.build, checked(scale), d)});
    }
    return made;
}

/// Zeros of the shape of such weights as ONNX's LSTM takes them: products read the integers alone.
Ref stand_in(Call& call, int i) {
    const Shape& weights = call.shape(i);
    return call.build.pointwise_of({weights[0], weights[2], weights[1]}, "y0 = 0", {}, DType::f32);
}

/// LSTM whose products are those of integers: of the weights, and of the input and the state by
/// their own ranges.
void dynamic_quantized_lstm(Call& call) {
    constexpr std::int64_t lstm_opset = 14;
    std::vector<AnyValue> inputs;
    inputs.reserve(8);
    for (int i = 0; i < 8; ++i) inputs.push_back(call.value(i));
    std::vector<IntegerWeights> input = integer_weights(call, 1, 8),
                                hidden = integer_weights(call, 2, 10);
    inputs[1] = stand_in(call, 1);
    inputs[2] = stand_in(call, 2);
    Call inner(call.build, call.graphs, call.node(), lstm_opset, std::move(inputs));
    recurrent(inner, Cell::Kind::lstm, std::move(input), std::move(hidden));
    inner.check_all_read();
    for (const auto& item : call.node().attributes) call.ignore(item.first);
    for (std::size_t i = 0; i < inner.results().size(); ++i)
        if (inner.results()[i]) call.set(static_cast<int>(i), *inner.results()[i]);
}

}  // namespace

std::vector<Rule> recurrent_rules() {
    return {
        {"RNN", 1, [](Call& call) { recurrent(call, Cell::Kind::rnn); }},
        {"LSTM", 1, [](Call& call) { recurrent(call, Cell::Kind::lstm); }},
        {"GRU", 1, [](Call& call) { recurrent(call, Cell::Kind::gru); }},
        {"com.microsoft.DynamicQuantizeLSTM", 1, dynamic_quantized_lstm},
    };
}

}  // namespace dlprim::onnx
