// SPDX-License-Identifier: MIT
// RotaryEmbedding, which turns pairs of features by an angle that depends on the position: ONNX's
// own and com.microsoft's.
#include "formats/onnx/rules/shared.hpp"

namespace dlprim::onnx {

namespace {

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
    const Ref x = flat ? build.reshape(call.in(0), {given[0], given[1], heads, given[2] / heads})
                       : call.in(0);
    const std::int64_t length = flat ? given[1] : given[2], size = x->spec.shape[3];
    std::int64_t turned = call.integer("rotary_embedding_dim", 0);
    if (turned == 0) turned = size;
    call.check(turned >= 2 && turned % 2 == 0 && turned <= size, "rotary_embedding_dim is ", turned,
               " of ", size, " features");
    // Of each position: [B, L, 1, ...], or [B, 1, L, ...].
    const auto of_positions = [&](Ref value, Ints sizes) {
        sizes.insert(sizes.begin() + (flat ? 2 : 1), 1);
        return build.reshape(value, Shape(sizes));
    };
    std::vector<Ref> inputs{x};
    for (const int i : {1, 2}) {
        const Shape& cache = call.shape(i);
        const bool fits = call.has(3) ? cache.rank() == 2 && cache[1] == turned / 2
                                      : cache == Shape({given[0], length, turned / 2});
        call.check(fits, "a cache of shape ", cache.str(), " does not fit an input of shape ",
                   given.str());
        inputs.push_back(call.has(3) ? call.in(i) : of_positions(call.in(i), cache.to_vector()));
    }
    if (call.has(3)) {
        call.check(call.shape(3) == Shape({given[0], length}), "positions of shape ",
                   call.shape(3).str(), " do not fit an input of shape ", given.str());
        inputs.push_back(of_positions(call.in(3), {given[0], length}));
    }
    const Ref y = build.add1("RotaryEmbedding", inputs,
                             {{"interleaved", interleaved}, {"rotary_dim", turned}});
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
