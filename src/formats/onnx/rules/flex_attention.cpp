// SPDX-License-Identifier: MIT
// FlexAttention: attention whose scores and weights go through graphs that the node owns; and
// RotaryEmbedding, which turns pairs of features by an angle that depends on the position.
#include "formats/onnx/rules/attention.hpp"
#include "formats/onnx/rules/gather.hpp"

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

/// Turns [..., rotated] by the angles whose cosines and sines are [..., rotated / 2].
Ref rotated(Builder& build, Ref x, Ref cosine, Ref sine, bool interleaved) {
    const Shape shape = x->spec.shape;
    const std::int64_t half = shape[3] / 2;
    const int rank = interleaved ? 5 : 4;
    const auto with_pairs = [&](Ref angle) {
        Ints sizes = angle->spec.shape.to_vector();
        if (interleaved) sizes.push_back(1);
        return build.reshape(angle, Shape(sizes));
    };
    if (interleaved) x = build.reshape(x, {shape[0], shape[1], shape[2], half, 2});
    const std::int64_t middle = interleaved ? 1 : half;
    const std::vector<Ref> inputs{build.slice(x, rank - 1, 0, middle),
                                  build.slice(x, rank - 1, middle, 2 * middle), with_pairs(cosine),
                                  with_pairs(sine)};
    const auto type = name_of(x->spec.dtype);
    const Ref real = build.pointwise("y0 = x2 * x0 - x3 * x1", inputs, {}, type),
              other = build.pointwise("y0 = x3 * x0 + x2 * x1", inputs, {}, type);
    return build.reshape(
        build.add1("Concat", {real, other}, {{"dim", static_cast<std::int64_t>(rank - 1)}}), shape);
}

void rotary_embedding(Call& call) {
    Builder& build = call.build;
    const Shape given = call.shape(0);
    const bool flat = given.rank() == 3, interleaved = call.integer("interleaved", 0) != 0;
    call.check(flat || given.rank() == 4, "an input of shape ", given.str(),
               " has neither 3 nor 4 dimensions");
    const std::int64_t heads = call.integer("num_heads", flat ? 0 : given[1]);
    call.check(heads >= 1 && (!flat || given[2] % heads == 0), heads,
               " heads for an input of shape ", given.str());
    // [B, L, heads, D], or [B, heads, L, D].
    Ref x = flat ? build.reshape(call.in(0), {given[0], given[1], heads, given[2] / heads})
                 : call.in(0);
    const std::int64_t length = flat ? given[1] : given[2], size = x->spec.shape[3];
    std::int64_t turned = call.integer("rotary_embedding_dim", 0);
    if (turned == 0) turned = size;
    call.check(turned >= 2 && turned % 2 == 0 && turned <= size, "rotary_embedding_dim is ", turned,
               " of ", size, " features");
    const auto angle = [&](int i) {
        const Ref cache =
            call.has(3) ? gather_computed(call, call.in(i), call.in(3), 0) : call.in(i);
        const Shape& s = cache->spec.shape;
        call.check(s == Shape({given[0], length, turned / 2}), "a cache of shape ",
                   call.shape(i).str(), " does not fit an input of shape ", given.str());
        return build.reshape(cache, flat ? Shape{s[0], s[1], 1, s[2]} : Shape{s[0], 1, s[1], s[2]});
    };
    const Ref cosine = angle(1), sine = angle(2);
    Ref y = rotated(build, build.slice(x, 3, 0, turned), cosine, sine, interleaved);
    if (turned < size)
        y = build.add1("Concat", {y, build.slice(x, 3, turned, size)}, {{"dim", std::int64_t{3}}});
    call.set(0, build.reshape(y, given));
}

const Rule flex_attention_table[] = {{"ai.onnx.preview.FlexAttention", 1, flex_attention},
                                     {"RotaryEmbedding", 23, rotary_embedding}};

}  // namespace

std::span<const Rule> flex_attention_rules() {
    return flex_attention_table;
}

}  // namespace dlprim::onnx
