// SPDX-License-Identifier: MIT
// RotaryEmbedding, which turns pairs of features by an angle that depends on the position: ONNX's
// own and com.microsoft's.
#include "formats/onnx/rules/shared.hpp"

namespace dlprim::onnx {

namespace {

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
    const DType type = x->spec.dtype;
    const Ref real = build.pointwise("y0 = x2 * x0 - x3 * x1", inputs, type),
              other = build.pointwise("y0 = x3 * x0 + x2 * x1", inputs, type);
    return build.reshape(build.concat({real, other}, rank - 1), shape);
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
    if (turned < size) y = build.concat({y, build.slice(x, 3, turned, size)}, 3);
    call.set(0, build.reshape(y, given));
}

/// Positions [B, L], or a single one, from which each row counts on.
Ref positions_of(Call& call, std::int64_t batch, std::int64_t length) {
    const Ref given = call.build.cast(call.in(1), DType::i64);
    if (given->spec.shape.numel() != 1 || length == 1) {
        call.check(given->spec.shape.numel() == batch * length || given->spec.shape.numel() == 1,
                   "positions of shape ", given->spec.shape.str(), " for ", batch, " rows of ",
                   length, " places");
        if (given->spec.shape.numel() == batch * length)
            return call.build.reshape(given, {batch, length});
    }
    return call.build.pointwise_of({batch, length}, "y0 = x0 + index(1)",
                                   {call.build.reshape(given, {1, 1})}, DType::i64);
}

/// com.microsoft's: positions stand before the caches, and heads may follow from the caches.
void packed_rotary_embedding(Call& call) {
    const Shape x = call.shape(0);
    const bool flat = x.rank() == 3;
    call.check(flat || x.rank() == 4, "an input of shape ", x.str(),
               " has neither 3 nor 4 dimensions");
    call.supports(call.integer("is_packed_batching", 0) == 0,
                  "is_packed_batching is not supported");
    call.ignore("scale");  // ONNX Runtime does not read it either
    const Shape& cosines = call.shape(2);
    call.check(cosines.rank() == 2 && cosines[1] >= 1, "cosines of shape ", cosines.str(),
               " are no rows of pairs");
    const std::int64_t turned = call.integer("rotary_embedding_dim", 0), pairs = cosines[1];
    std::int64_t heads = call.integer("num_heads", 0);
    if (flat && (turned == 0 || heads == 0)) heads = x[2] / (2 * pairs);
    if (!flat) heads = x[1];
    const Ref positions = positions_of(call, x[0], flat ? x[1] : x[2]);
    call.set(0, call.made_by("RotaryEmbedding", 23, {call.in(0), call.in(2), call.in(3), positions},
                             {{"interleaved", {call.integer("interleaved", 0)}},
                              {"num_heads", {heads}},
                              {"rotary_embedding_dim", {turned}}})[0]);
}

}  // namespace

std::vector<Rule> rotary_rules() {
    return {{"RotaryEmbedding", 23, rotary_embedding},
            {"com.microsoft.RotaryEmbedding", 1, packed_rotary_embedding}};
}

}  // namespace dlprim::onnx
