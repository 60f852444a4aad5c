// SPDX-License-Identifier: MIT
// Attention (opset 23 and later): heads in three or four dimensions, several heads of queries per
// head of keys, caches, masks, windows, soft caps. It is the library's Attention, or, in double and
// where scores are a result, products and a softmax.
#include "formats/onnx/rules/attention.hpp"

#include <cmath>

namespace dlprim::onnx {

namespace {

/// [B, L, heads * D] as [B, heads, L, D]; four dimensions as they are.
Ref by_heads(Call& call, Ref x, std::int64_t heads) {
    const Shape& shape = x->spec.shape;
    if (shape.rank() == 4) return x;
    call.check(shape.rank() == 3, "a tensor of shape ", shape.str(),
               " has neither three dimensions nor four");
    call.check(heads >= 1, "inputs of three dimensions need the numbers of their heads, ",
               "q_num_heads and kv_num_heads");
    call.check(shape[2] % heads == 0, "the ", shape[2], " features of a tensor of shape ",
               shape.str(), " do not divide into ", heads, " heads");
    const Ref split = call.build.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
    return call.build.transpose(split, {0, 2, 1, 3});
}

/// What past steps left, and behind it what is new.
Ref with_past(Call& call, int past, Ref now) {
    if (!call.has(past)) return now;
    const Shape &a = call.shape(past), &b = now->spec.shape;
    call.check(a.rank() == 4, "a cache of shape ", a.str(), " has not 4 dimensions");
    if (a[2] == 0) return now;
    call.check(a.with(2, b[2]) == b, "a cache of shape ", a.str(), " does not fit ", b.str());
    return call.build.concat({call.in(past), now}, 2);
}

AttentionMask read_mask(Call& call) {
    AttentionMask mask;
    mask.causal = call.integer("is_causal", 0) != 0;
    mask.left = call.integer("left_window_size", -1);
    mask.right = call.integer("right_window_size", -1);
    call.check(mask.left >= -1 && mask.right >= -1, "left_window_size is ", mask.left,
               " and right_window_size is ", mask.right,
               "; each must be 0 or more, or -1 for no limit");
    if (call.has(3)) mask.given = call.in(3);
    call.check(!mask.given || mask.given->spec.shape.rank() >= 1, "the mask is a single number");
    if (call.has(4)) mask.offset = call.shape(4)[2];
    if (!call.has(6)) return mask;
    call.check(!call.has(4), "past_key and nonpad_kv_seqlen exclude each other");
    call.check(call.shape(6).numel() == call.shape(0)[0], "nonpad_kv_seqlen has shape ",
               call.shape(6).str(), ", and there are ", call.shape(0)[0], " sequences");
    mask.lengths = call.build.reshape(call.build.cast(call.in(6), DType::f32),
                                      {call.shape(6).numel(), 1, 1, 1});
    return mask;
}

/// Whether the library's Attention computes it: in float, of one type of at most that, and without
/// scores as a result.
bool is_plain(Call& call, double scale, std::int64_t precision) {
    const DType dtype = call.dtype(0);
    const bool narrow = is_float(dtype) && dtype != DType::f64 &&
                        (precision == 0 || precision_type(call, precision) != DType::f64);
    return narrow && call.dtype(1) == dtype && call.dtype(2) == dtype && scale != 0 &&
           !call.wants(3);
}

void attention(Call& call) {
    Builder& build = call.build;
    const bool flat = call.shape(0).rank() == 3;
    const std::int64_t q_heads = call.integer("q_num_heads", flat ? 0 : call.shape(0)[1]),
                       kv_heads = call.integer("kv_num_heads", flat ? 0 : call.shape(1)[1]);
    call.check(call.has(4) == call.has(5), "past_key and past_value need each other");
    const Ref q = by_heads(call, call.in(0), q_heads);
    const Ref k = with_past(call, 4, by_heads(call, call.in(1), kv_heads)),
              v = with_past(call, 5, by_heads(call, call.in(2), kv_heads));
    const Shape& shape = q->spec.shape;
    const double scale = call.number("scale", 1 / std::sqrt(static_cast<double>(shape[3])));
    const double cap = call.number("softcap", 0);
    const std::int64_t precision = call.integer("softmax_precision", 0),
                       mode = call.integer("qk_matmul_output_mode", 0);
    call.check(mode >= 0 && mode <= 3, "qk_matmul_output_mode is ", mode);
    const AttentionMask mask = read_mask(call);
    const std::int64_t heads = shape[1], groups = k->spec.shape[1];
    call.check(groups >= 1 && heads % groups == 0, heads,
               " heads of queries are not a multiple of ", groups, " heads of keys");
    call.set(1, k);
    call.set(2, v);
    Ref y = nullptr;
    if (is_plain(call, scale, precision)) {
        std::vector<Ref> inputs{q, k, v};
        Attrs options{
            {"scale", scale}, {"softcap", std::abs(cap)}, {"enable_gqa", heads != groups}};
        if (const Ref given =
                mask.for_operator(build, shape[2], k->spec.shape[2], q->spec.dtype, options))
            inputs.push_back(given);
        y = build.add1("Attention", inputs, options);
    } else {
        const Shape grouped{shape[0], groups, heads / groups, shape[2], shape[3]};
        const auto spread = [&](Ref x) {
            const Shape& s = x->spec.shape;
            return groups == heads ? x : build.reshape(x, {s[0], s[1], 1, s[2], s[3]});
        };
        Ref scores = scaled_product(build, groups == heads ? q : build.reshape(q, grouped),
                                    spread(k), scale);
        const std::int64_t keys = k->spec.shape[2];
        scores = build.reshape(scores, {shape[0], heads, shape[2], keys});
        if (mode == 0) call.set(3, scores);
        if (cap != 0)
            scores =
                build.pointwise("y0 = tanh(x0 / p0) * p0", {scores}, {cap}, scores->spec.dtype);
        if (mode == 1) call.set(3, scores);
        const auto softmax_type = precision == 0 ? q->spec.dtype : precision_type(call, precision);
        const MaskedScores masked = mask.apply(build, scores, keys);
        if (mode == 2) call.set(3, masked.scores);
        // Weights of 16 bits stay in float up to the product with the values.
        const DType type = q->spec.dtype;
        const DType inner = size_of(type) == 2 ? DType::f32 : type;
        Ref weights =
            masked_softmax(build, masked, size_of(softmax_type) == 2 ? DType::f32 : softmax_type);
        weights = build.cast(weights, inner);
        if (mode == 3) call.set(3, build.cast(weights, type));
        if (groups != heads)
            weights = build.reshape(weights, {shape[0], groups, heads / groups, shape[2], keys});
        y = build.cast(product(build, weights, build.cast(spread(v), inner), false, 1), type);
        y = build.reshape(y, {shape[0], heads, shape[2], v->spec.shape[3]});
    }
    if (flat) {
        y = build.transpose(y, {0, 2, 1, 3});
        y = build.reshape(y, {shape[0], shape[2], heads * v->spec.shape[3]});
    }
    call.set(0, y);
}

}  // namespace

std::vector<Rule> attention_rules() {
    return {{"Attention", 23, attention}};
}

}  // namespace dlprim::onnx
