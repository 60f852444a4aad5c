// SPDX-License-Identifier: MIT
// FlexAttention: attention whose scores and weights go through graphs that the node owns.
#include "formats/onnx/rules/attention.hpp"

#include <cmath>

namespace dlprim::onnx {

namespace {

/// What the node's graph makes of a value, or the value itself where it has none.
Ref modified(Call& call, std::string_view name, Ref value) {
    if (!call.given(name)) return value;
    const std::vector<AnyValue> made = call.graphs.run_graph(call.graph(name), {value});
    call.check(made.size() == 1 && made[0].tensor() && made[0].tensor()->spec == value->spec,
               "attribute '", name, "' must make one tensor of ", name_of(value->spec.dtype), " ",
               value->spec.shape.str());
    return made[0].tensor();
}

void flex_attention(Call& call) {
    Builder& build = call.build;
    Ref q = call.in(0), k = call.in(1), v = call.in(2);
    for (int i = 0; i < 3; ++i)
        call.check(call.shape(i).rank() == 4, "an input of shape ", call.shape(i).str(),
                   " has not 4 dimensions");
    const Shape shape = q->spec.shape, keys = k->spec.shape;
    const std::int64_t heads = shape[1], groups = keys[1];
    call.check(groups >= 1 && heads % groups == 0 && call.shape(2)[1] == groups, heads,
               " heads of queries for ", groups, " heads of keys");
    const DType type = q->spec.dtype;
    const DType inner = call.given("softmax_precision")
                            ? precision_type(call, call.integer("softmax_precision", 1))
                        : type == DType::f64 ? DType::f64
                                             : DType::f32;
    const double scale = call.number("scale", 1 / std::sqrt(static_cast<double>(shape[3])));
    if (groups != heads) {
        q = build.reshape(q, {shape[0], groups, heads / groups, shape[2], shape[3]});
        const auto spread = [&](Ref x) {
            const Shape s = x->spec.shape;
            return build.reshape(x, {s[0], s[1], 1, s[2], s[3]});
        };
        k = spread(k);
        v = spread(v);
    }
    call.kept = {v};
    Ref scores = build.cast(scaled_product(build, q, k, scale), inner);
    scores = build.reshape(scores, {shape[0], heads, shape[2], keys[2]});
    scores = modified(call, "score_mod", scores);
    Ref weights = modified(call, "prob_mod", masked_softmax(build, {scores, nullptr}, inner));
    if (groups != heads)
        weights = build.reshape(weights, {shape[0], groups, heads / groups, shape[2], keys[2]});
    const Ref y = product(build, weights, build.cast(v, inner), false, 1);
    call.set(0, build.cast(build.reshape(y, {shape[0], heads, shape[2], v->spec.shape[-1]}), type));
}

}  // namespace

std::vector<Rule> flex_attention_rules() {
    return {{"ai.onnx.preview.FlexAttention", 1, flex_attention}};
}

}  // namespace dlprim::onnx
