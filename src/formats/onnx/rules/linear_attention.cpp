// SPDX-License-Identifier: MIT
// LinearAttention: a state of keys times values that every position updates and reads; and
// CausalConvWithState: a convolution that takes up where the last one ended.
#include "formats/onnx/call.hpp"

#include <cmath>

namespace dlprim::onnx {

namespace {

/// More positions would be as many nodes.
constexpr std::int64_t most_attended_positions = 1024;

/// Position `i` of [B, T, H * D] as [B, H, 1, D] or [B, H, D, 1].
Ref at_position(Builder& build, Ref x, std::int64_t i, std::int64_t heads, bool column) {
    const Shape& shape = x->spec.shape;
    const Ref one = shape[1] == 1 ? x : build.slice(x, 1, i, i + 1);
    const std::int64_t size = shape[2] / heads;
    return build.reshape(
        one, column ? Shape{shape[0], heads, size, 1} : Shape{shape[0], heads, 1, size});
}

/// The inputs of a linear attention in float, and its heads.
struct LinearInputs {
    Ref q, k, v, decay = nullptr, beta = nullptr, state;
    std::int64_t q_heads, kv_heads;
};

/// One position: decays the state, writes into it, and returns what the queries read.
Ref step(Builder& build, const LinearInputs& in, Ref& state, std::int64_t i, double scale) {
    const Ref k = at_position(build, in.k, i, in.kv_heads, true),
              v = at_position(build, in.v, i, in.kv_heads, false);
    if (in.decay) {
        const Ref g = at_position(build, in.decay, i, in.kv_heads, true);
        state = build.pointwise("y0 = x0 * exp(x1)", {state, g});
    }
    if (in.beta) {
        const Ref seen = build.pointwise("y0 = sum[2](x0 * x1)", {state, k});
        const std::int64_t heads = in.beta->spec.shape[2];
        const Ref beta = at_position(build, in.beta, i, heads, false);
        state = build.pointwise("y0 = x0 + x1 * (x4 * (x2 - x3))", {state, k, v, seen, beta});
    } else {
        state = build.pointwise("y0 = x0 + x1 * x2", {state, k, v});
    }
    // Several heads of queries read one state.
    const Shape& s = state->spec.shape;
    const std::int64_t group = in.q_heads / in.kv_heads;
    const Ref q = build.reshape(at_position(build, in.q, i, in.q_heads, false),
                                {s[0], in.kv_heads, group, s[2]});
    const Ref y = build.add1("MatMul", {q, state}, {{"alpha", scale}});
    return build.reshape(y, {s[0], 1, in.q_heads * s[3]});
}

void linear_attention(Call& call) {
    Builder& build = call.build;
    call.ignore("chunk_size");  // a hint
    const std::string rule = call.text("update_rule", "gated_delta");
    const bool gated = rule == "gated" || rule == "gated_delta",
               delta = rule == "delta" || rule == "gated_delta";
    call.check(gated || delta || rule == "linear", "update_rule '", rule, "' is unknown");
    call.check(gated == call.has(4) && delta == call.has(5), "update_rule '", rule, "' ",
               gated ? "needs" : "takes no", " decay and ", delta ? "needs" : "takes no", " beta");
    LinearInputs in;
    in.q_heads = call.integer("q_num_heads", 0);
    in.kv_heads = call.integer("kv_num_heads", 0);
    for (int i = 0; i < 3; ++i)
        call.check(call.shape(i).rank() == 3, "an input of shape ", call.shape(i).str(),
                   " has not 3 dimensions");
    for (int i = 4; i < 6; ++i)
        call.check(!call.has(i) || (call.shape(i).rank() == 3 && !call.shape(i).empty()),
                   "a decay or beta of shape ", call.has(i) ? call.shape(i).str() : "");
    const Shape &q = call.shape(0), &v = call.shape(2);
    call.check(in.kv_heads >= 1 && in.q_heads >= 1 && in.q_heads % in.kv_heads == 0 &&
                   q[2] % in.q_heads == 0 && v[2] % in.kv_heads == 0,
               in.q_heads, " heads of queries and ", in.kv_heads, " of keys for inputs of shapes ",
               q.str(), " and ", v.str());
    call.supports(q[1] >= 1 && q[1] <= most_attended_positions, q[1],
                  " positions are not supported; 1 to ", most_attended_positions, " are");
    const auto in_float = [&](int i) { return build.cast(call.in(i), DType::f32); };
    in.q = in_float(0);
    in.k = in_float(1);
    in.v = in_float(2);
    if (gated) in.decay = in_float(4);
    if (delta) in.beta = in_float(5);
    const std::int64_t keys = q[2] / in.q_heads, values = v[2] / in.kv_heads;
    const double given = call.number("scale", 0);
    const double scale = given != 0 ? given : 1 / std::sqrt(static_cast<double>(keys));
    const Shape shape{q[0], in.kv_heads, keys, values};
    Ref state = call.has(3) ? in_float(3) : build.constant("", build.allocate(shape, DType::f32));
    call.check(state->spec.shape == shape, "a state of shape ", state->spec.shape.str(),
               " must be of shape ", shape.str());
    std::vector<Ref> parts;
    for (std::int64_t i = 0; i < q[1]; ++i) parts.push_back(step(build, in, state, i, scale));
    const Ref y = build.concat(parts, 1);
    call.set(0, build.cast(y, call.dtype(0)));
    call.set(1, build.cast(state, call.dtype(call.has(3) ? 3 : 0)));
}

/// A convolution of each channel that sees earlier positions alone, those of the state first.
void causal_convolution(Call& call) {
    Builder& build = call.build;
    const Shape &x = call.shape(0), &weight = call.shape(1);
    const std::string activation = call.text("activation", "none");
    call.check(x.rank() == 3 && weight.rank() == 3 && weight[0] == x[1] && weight[1] == 1,
               "an input of shape ", x.str(), " and a weight of shape ", weight.str(),
               " do not fit");
    call.check(activation == "none" || activation == "silu" || activation == "swish",
               "activation '", activation, "' is unknown");
    const std::int64_t kernel = weight[2];
    Ref padded = call.in(0);
    if (kernel > 1) {
        const Shape state{x[0], x[1], kernel - 1};
        const Ref past =
            call.has(3) ? call.in(3) : build.constant("", build.allocate(state, call.dtype(0)));
        call.check(past->spec.shape == state, "a state of shape ", past->spec.shape.str(),
                   " must be of shape ", state.str());
        padded = build.concat({past, padded}, 2);
    }
    const auto flat = [&](Ref value) {
        const Shape& s = value->spec.shape;
        return build.reshape(value, {s[0], s[1], 1, s[2]});
    };
    std::vector<Ref> params{flat(call.in(1))};
    if (call.has(2)) params.push_back(call.in(2));
    Ref y = build.add1("Convolution", {flat(padded)},
                       {{"channels_in", x[1]},
                        {"channels_out", x[1]},
                        {"groups", x[1]},
                        {"bias", call.has(2)},
                        {"kernel", Ints{1, kernel}}},
                       params);
    if (activation != "none") y = build.pointwise("y0 = x0 * sigmoid(x0)", {y}, call.dtype(0));
    call.set(0, build.cast(build.reshape(y, x), call.dtype(0)));
    const std::int64_t all = padded->spec.shape[2];
    call.set(1, kernel > 1 ? build.slice(padded, 2, all - kernel + 1, all)
                           : build.constant("", build.allocate({x[0], x[1], 0}, call.dtype(0))));
}

}  // namespace

std::vector<Rule> linear_attention_rules() {
    return {{"LinearAttention", 27, linear_attention},
            {"CausalConvWithState", 27, causal_convolution}};
}

}  // namespace dlprim::onnx
