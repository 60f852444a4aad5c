// SPDX-License-Identifier: MIT
// Steps of recurrent operators; see recurrent_cells.hpp.
#include "formats/onnx/rules/recurrent_cells.hpp"

namespace dlprim::onnx {

namespace {

/// A function of ONNX's list, with the defaults of its parameters; @ stands for the value, A and B
/// for alpha and beta.
struct FunctionRow {
    std::string_view name, text;
    std::optional<double> alpha, beta;
};

const FunctionRow function_rows[] = {
    {"affine", "A * @ + B", 1.0, 0.0},
    {"elu", "(@ >= 0 ? @ : A * expm1(@))", 1.0, {}},
    {"hardsigmoid", "min(max(A * @ + B, 0), 1)", 0.2f, 0.5},
    {"leakyrelu", "(@ >= 0 ? @ : A * @)", 0.01f, {}},
    {"relu", "max(@, 0)", {}, {}},
    {"scaledtanh", "A * tanh(B * @)", 1.0, 1.0},
    {"sigmoid", "sigmoid(@)", {}, {}},
    {"softplus", "(max(@, 0) + log1p(exp(-abs(@))))", {}, {}},
    {"softsign", "@ / (1 + abs(@))", {}, {}},
    {"tanh", "tanh(@)", {}, {}},
    {"thresholdedrelu", "(@ > A ? @ : 0)", 1.0, {}},
};

std::string replaced(std::string_view text, char sign, std::string_view by) {
    std::string result;
    for (const char c : text) {
        if (c == sign)
            result += by;
        else
            result += c;
    }
    return result;
}

/// The next of a list of parameters, of which `given` is what is left.
double parameter(double otherwise, std::vector<double>& given) {
    if (given.empty()) return otherwise;
    const double value = given.front();
    given.erase(given.begin());
    return value;
}

const FunctionRow& function_row(Call& call, const std::string& name) {
    std::string lower;
    for (const char c : name) lower += ascii::lower(c);
    for (const FunctionRow& row : function_rows)
        if (row.name == lower) return row;
    call.unsupported("activation '", name, "' is not known");
}

/// A program over operands that get their names as they are added.
struct Program {
    std::string code;
    std::vector<Ref> operands;

    std::string name(Ref value) {
        operands.push_back(value);
        return cat("x", operands.size() - 1);
    }
    /// The names of `count` equal parts of a value's second dimension.
    std::vector<std::string> parts(Builder& build, Ref value, int count) {
        if (count == 1) return {name(value)};
        std::vector<std::string> names;
        for (const Ref part : build.add("Split", {value}, {{"dim", 1}, {"parts", count}}))
            names.push_back(name(part));
        return names;
    }
    void line(std::string_view target, std::string_view text) {
        code += cat(target, " = ", text, "; ");
    }
};

Ref product(Builder& build, Ref h, Ref weights, Ref bias = nullptr) {
    std::vector<Ref> inputs{h, weights};
    if (bias) inputs.push_back(bias);
    return build.add1("MatMul", inputs, {{"transpose_b", true}, {"bias", bias != nullptr}});
}

/// The input's and the state's share of the gates.
Ref gates_of(Builder& build, Ref projected, Ref h, Ref weights) {
    if (!h) return projected;
    return build.pointwise("y0 = x0 + x1", {product(build, h, weights), projected});
}

/// Runs the program, whose new states are `h` and perhaps `c`. `old_h` and `old_c` name the states
/// before.
Ref finish(Builder& build, const Cell& cell, Program& program, std::int64_t t, CellState& state,
           const std::string& old_h, const std::string& old_c) {
    const bool has_c = cell.kind == Cell::Kind::lstm;
    Attrs options;
    if (cell.lengths) {
        program.line("on", cat(program.name(cell.lengths), " > p0"));
        program.line("y0", cat("on ? h : ", old_h));
        if (has_c) program.line("y1", cat("on ? c : ", old_c));
        program.line(has_c ? "y2" : "y1", "on ? h : 0");
        options.set("scalars", Doubles{static_cast<double>(t)});
    } else {
        program.line("y0", "h");
        if (has_c) program.line("y1", "c");
    }
    options.set("code", program.code);
    options.set("dtypes", Strings{std::string(name_of(cell.weights->spec.dtype))});
    const std::vector<Ref> made = build.add("Pointwise", program.operands, options);
    state.h = made[0];
    if (has_c) state.c = made[1];
    return cell.lengths ? made.back() : state.h;
}

Ref rnn_step(Builder& build, const Cell& cell, Ref projected, std::int64_t t, CellState& state) {
    Program program;
    program.line("s", program.name(gates_of(build, projected, state.h, cell.weights)));
    program.line("h", applied(cell.functions[0], "s"));
    const std::string old_h = cell.lengths && state.h ? program.name(state.h) : "0";
    return finish(build, cell, program, t, state, old_h, {});
}

Ref lstm_step(Builder& build, const Cell& cell, Ref projected, std::int64_t t, CellState& state) {
    Program program;
    const bool quantizes = state.h && cell.integers;
    const Ref gates = quantizes
                          ? scaled_matmul(build, dynamically_quantized(build, state.h),
                                          cell.integers->values, cell.integers->scale, projected)
                          : gates_of(build, projected, state.h, cell.weights);
    const auto gate = program.parts(build, gates, 4);  // i o f c
    const std::string old_c = state.c ? program.name(state.c) : "0";
    const auto peephole = [&](std::size_t i, std::string_view c) {
        return cell.peepholes.empty() || c == "0"
                   ? std::string()
                   : cat(" + ", program.name(cell.peepholes[i]), " * ", c);
    };
    program.line("si", cat(gate[0], peephole(0, old_c)));
    program.line("i", applied(cell.functions[0], "si"));
    if (cell.couples_forget) {
        program.line("f", "1 - i");
    } else {
        program.line("sf", cat(gate[2], peephole(2, old_c)));
        program.line("f", applied(cell.functions[0], "sf"));
    }
    program.line("sc", gate[3]);
    program.line("c", cat("f * ", old_c, " + i * ", applied(cell.functions[1], "sc")));
    program.line("so", cat(gate[1], peephole(1, "c")));
    program.line("o", applied(cell.functions[0], "so"));
    program.line("h", cat("o * ", applied(cell.functions[2], "c")));
    const std::string old_h = cell.lengths && state.h ? program.name(state.h) : "0";
    return finish(build, cell, program, t, state, old_h, old_c);
}

Ref gru_step(Builder& build, const Cell& cell, Ref projected, std::int64_t t, CellState& state) {
    const std::int64_t two = 2 * cell.hidden;
    Program program;
    std::string old_h = "0";
    if (cell.linear_before_reset) {
        const auto x = program.parts(build, projected, 3);  // z r h
        Ref own = state.h     ? product(build, state.h, cell.weights, cell.bias)
                  : cell.bias ? build.reshape(cell.bias, {1, 3 * cell.hidden})
                              : nullptr;
        const auto u = own ? program.parts(build, own, 3) : std::vector<std::string>(3, "0");
        program.line("sz", cat(x[0], " + ", u[0]));
        program.line("sr", cat(x[1], " + ", u[1]));
        program.line("r", applied(cell.functions[0], "sr"));
        program.line("sh", cat(x[2], " + r * ", u[2]));
        if (state.h) old_h = program.name(state.h);
    } else {
        const auto columns = [&](std::int64_t begin, std::int64_t end) {
            return build.slice(projected, 1, begin, end);
        };
        const Ref gates = gates_of(build, columns(0, two), state.h,
                                   state.h ? build.slice(cell.weights, 0, 0, two) : nullptr);
        const std::vector<Ref> both = build.add("Split", {gates}, {{"dim", 1}, {"parts", 2}});
        program.line("sz", program.name(both[0]));
        Ref candidate = columns(two, 3 * cell.hidden);
        if (state.h) {
            const Ref reset = build.pointwise(
                cat("s = x0; y0 = x1 * ", applied(cell.functions[0], "s")), {both[1], state.h});
            candidate = gates_of(build, candidate, reset,
                                 build.slice(cell.weights, 0, two, 3 * cell.hidden));
            old_h = program.name(state.h);
        }
        program.line("sh", program.name(candidate));
    }
    program.line("z", applied(cell.functions[0], "sz"));
    program.line("n", applied(cell.functions[1], "sh"));
    program.line("h", cat("(1 - z) * n + z * ", old_h));
    return finish(build, cell, program, t, state, old_h, {});
}

}  // namespace

std::vector<GateFunction> read_gate_functions(Call& call, std::vector<std::string> defaults,
                                              int directions) {
    std::vector<std::string> names = call.texts("activations");
    std::vector<double> alphas = call.numbers("activation_alpha"),
                        betas = call.numbers("activation_beta");
    const std::size_t count = defaults.size() * static_cast<std::size_t>(directions);
    if (names.empty())
        for (int d = 0; d < directions; ++d)
            names.insert(names.end(), defaults.begin(), defaults.end());
    call.check(names.size() == count, "activations names ", names.size(), " functions, ", count,
               " are needed");
    const double clip = call.number("clip", 0);
    call.check(clip >= 0, "clip is ", clip);
    std::vector<GateFunction> functions;
    for (std::size_t i = 0; i < names.size(); ++i) {
        const FunctionRow& row = function_row(call, names[i]);
        std::string text(row.text);
        if (row.alpha)
            text = replaced(text, 'A', cat("(", exact(parameter(*row.alpha, alphas)), ")"));
        if (row.beta) text = replaced(text, 'B', cat("(", exact(parameter(*row.beta, betas)), ")"));
        // The third function is LSTM's of the cell's state, which is no gate.
        if (call.given("clip") && i % defaults.size() < 2)
            text = replaced(text, '@', cat("min(max(@, -", exact(clip), "), ", exact(clip), ")"));
        functions.push_back(cat("(", text, ")"));
    }
    return functions;
}

std::string applied(const GateFunction& function, std::string_view name) {
    return replaced(function, '@', name);
}

Ref run_cell(Builder& build, const Cell& cell, Ref projected, std::int64_t t, CellState& state) {
    switch (cell.kind) {
        case Cell::Kind::lstm:
            return lstm_step(build, cell, projected, t, state);
        case Cell::Kind::gru:
            return gru_step(build, cell, projected, t, state);
        default:
            return rnn_step(build, cell, projected, t, state);
    }
}

}  // namespace dlprim::onnx
