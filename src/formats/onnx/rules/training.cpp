// SPDX-License-Identifier: MIT
// Updates of parameters, of the domain ai.onnx.preview.training: R is the learning rate, T the
// number of updates so far. Inputs and outputs come in groups: all parameters X, all gradients G,
// all states.
#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

namespace {

/// Runs a program for each of the optimised tensors. Its operands are R, T, X, G and `states`
/// states; its outputs are the new X and states.
void update(Call& call, int states, const std::string& code, const std::vector<double>& scalars) {
    const int groups = 2 + states;
    call.check(call.inputs() > 2 && (call.inputs() - 2) % groups == 0, "there are ", call.inputs(),
               " inputs; R and T and groups of ", groups, " are needed");
    const int count = (call.inputs() - 2) / groups;
    Builder& build = call.build;
    const Ref rate = build.reshape(call.in(0), {}), steps = build.reshape(call.in(1), {});
    for (int i = 0; i < count; ++i) {
        std::vector<Ref> operands{rate, steps};
        for (int group = 0; group < groups; ++group) {
            const Ref value = call.in(2 + group * count + i);
            call.check(value->spec == call.in(2 + i)->spec, "the tensors of parameter ", i,
                       " differ in shape or type");
            operands.push_back(value);
        }
        const std::vector<Ref> made =
            build.add("Pointwise", operands,
                      {{"code", code},
                       {"scalars", Doubles(scalars)},
                       {"dtypes", Strings{std::string(name_of(operands[2]->spec.dtype))}}});
        for (int output = 0; output <= states; ++output)
            call.set(output * count + i, made[static_cast<std::size_t>(output)]);
    }
}

void adagrad(Call& call) {
    update(call, 1,
           "g = p2 * x2 + x3; y1 = x4 + g * g;"
           "y0 = x2 - x0 / (1 + x1 * p0) * g / (sqrt(y1) + p1)",
           {call.number("decay_factor", 0), call.number("epsilon", 1e-6f),
            call.number("norm_coefficient", 0)});
}

void adam(Call& call) {
    update(call, 2,
           "g = p3 * x2 + x3; y1 = p0 * x4 + (1 - p0) * g; y2 = p1 * x5 + (1 - p1) * g * g;"
           "r = x1 > 0 ? x0 * sqrt(1 - pow(p1, x1)) / (1 - pow(p0, x1)) : x0;"
           "y0 = (1 - p4) * (x2 - r * y1 / (sqrt(y2) + p2))",
           {call.number("alpha", 0.9f), call.number("beta", 0.999f), call.number("epsilon", 1e-6f),
            call.number("norm_coefficient", 0), call.number("norm_coefficient_post", 0)});
}

void momentum(Call& call) {
    const std::string mode = call.text("mode", "");
    call.check(mode == "standard" || mode == "nesterov", "mode '", mode,
               "' is neither standard nor nesterov");
    const std::string first = "g = p2 * x2 + x3; y1 = p0 * x4 + (x1 > 0 ? p1 : 1) * g;";
    update(call, 1,
           first + (mode == "standard" ? "y0 = x2 - x0 * y1" : "y0 = x2 - x0 * (g + p0 * y1)"),
           {call.number("alpha", 0), call.number("beta", 0), call.number("norm_coefficient", 0)});
}

}  // namespace

std::vector<Rule> training_rules() {
    return {
        {"ai.onnx.preview.training.Adagrad", 1, adagrad},
        {"ai.onnx.preview.training.Adam", 1, adam},
        {"ai.onnx.preview.training.Momentum", 1, momentum},
    };
}

}  // namespace dlprim::onnx
