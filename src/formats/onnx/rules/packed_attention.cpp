// SPDX-License-Identifier: MIT
// Attention and MultiHeadAttention of com.microsoft: projections, packed heads and masks become
// what ONNX's own Attention takes.
#include "formats/onnx/call.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// Sizes that both operators have.
struct Sizes {
    std::int64_t batch, heads, queries, keys, past;
    std::int64_t total() const { return past + keys; }
};

/// mask_index or key_padding_mask as numbers to add to scores: 0, or mask_filter_value for keys
/// that are masked. The forms: the ends of all sequences [B], behind them their begins [2 B], truth
/// values [B, total] or [B, queries, total].
Ref mask_bias(Call& call, int input, const Sizes& sizes) {
    Builder& build = call.build;
    const double filter = call.number("mask_filter_value", -10000);
    if (!call.has(input)) return nullptr;
    const Ref mask = build.cast(call.in(input), DType::f32);
    const Shape shape = mask->spec.shape;
    const auto by_ends = [&](const std::vector<Ref>& inputs, const char* masked) {
        return build.pointwise_of({sizes.batch, 1, 1, sizes.total()},
                                  cat("y0 = ", masked, " ? p0 : 0"), inputs, call.dtype(0),
                                  {filter});
    };
    const auto part = [&](std::int64_t i) {
        return build.reshape(build.slice(mask, 0, i * sizes.batch, (i + 1) * sizes.batch),
                             {sizes.batch, 1, 1, 1});
    };
    if (shape == Shape{sizes.batch}) return by_ends({part(0)}, "index(3) >= x0");
    if (shape == Shape{2 * sizes.batch})
        return by_ends({part(0), part(1)}, "index(3) >= x0 || index(3) < x1");
    if (sizes.total() != 1 && (shape == Shape{1, 1} || shape == Shape{sizes.batch, 1}))
        return nullptr;  // optimisers write it where there is no mask
    const bool by_key = shape == Shape{sizes.batch, sizes.total()},
               by_query = shape == Shape{sizes.batch, sizes.queries, sizes.total()};
    call.supports(by_key || by_query, "a mask of shape ", shape.str(), " for ", sizes.batch,
                  " sequences of ", sizes.queries, " queries and ", sizes.total(),
                  " keys is not supported");
    return build.pointwise(
        "y0 = x0 > 0 ? 0 : p0",
        {build.reshape(mask, {sizes.batch, 1, by_key ? 1 : sizes.queries, sizes.total()})},
        {filter}, call.dtype(0));
}

/// The sum of the masks that are there, or null.
Ref added(Builder& build, Ref mask, Ref bias) {
    if (!mask || !bias) return mask ? mask : bias;
    return build.pointwise("y0 = x0 + x1", {mask, bias}, bias->spec.dtype);
}

/// What ONNX's Attention makes: the result, all keys, all values, and scores behind the masks.
std::vector<Ref> attend(Call& call, const std::vector<Ref>& qkv, const std::vector<Ref>& past,
                        const Sizes& sizes, Ref bias, bool scores) {
    Attributes attributes{
        {"is_causal", {std::int64_t{call.integer("unidirectional", 0) != 0 && sizes.queries > 1}}},
        {"qk_matmul_output_mode", {std::int64_t{2}}},
        {"q_num_heads", {sizes.heads}},
        {"kv_num_heads", {sizes.heads}}};
    const double scale = call.number("scale", 0);
    if (scale != 0) attributes["scale"] = {scale};
    std::vector<AnyValue> inputs{qkv[0], qkv[1], qkv[2], bias ? AnyValue(bias) : AnyValue()};
    for (const Ref value : past) inputs.emplace_back(value);
    return call.made_by("Attention", 23, inputs, attributes, scores ? 4 : 3);
}

/// One of the two halves of a cache [2, B, heads, past, size].
Ref half_of(Builder& build, Ref cache, std::int64_t i) {
    const Ints sizes = cache->spec.shape.to_vector();
    return build.reshape(build.slice(cache, 0, i, i + 1),
                         Shape(Ints(sizes.begin() + 1, sizes.end())));
}

Ref stacked(Builder& build, Ref k, Ref v) {
    const auto one = [&](Ref x) {
        Ints sizes = x->spec.shape.to_vector();
        sizes.insert(sizes.begin(), 1);
        return build.reshape(x, Shape(sizes));
    };
    return build.concat({one(k), one(v)}, 0);
}

/// Queries, keys and values by one product of the input.
std::vector<Ref> projected(Call& call, Ints& widths) {
    Builder& build = call.build;
    const Shape x = call.shape(0), weight = call.shape(1);
    call.check(x.rank() == 3 && weight.rank() == 2 && weight[0] == x[2], "an input of shape ",
               x.str(), " does not fit weights of shape ", weight.str());
    if (widths.empty()) widths.assign(3, weight[1] / 3);
    call.check(widths.size() == 3 && *std::min_element(widths.begin(), widths.end()) >= 1 &&
                   widths[0] == widths[1] && widths[0] + widths[1] + widths[2] == weight[1],
               "qkv_hidden_sizes do not fit weights of shape ", weight.str());
    std::vector<AnyValue> inputs{build.reshape(call.in(0), {x[0] * x[1], x[2]}, 0), call.in(1)};
    if (call.has(2)) inputs.emplace_back(call.in(2));
    const Ref y = build.reshape(call.made_by("Gemm", 13, inputs)[0], {x[0], x[1], weight[1]}, 0);
    return {build.slice(y, 2, 0, widths[0]), build.slice(y, 2, widths[0], 2 * widths[0]),
            build.slice(y, 2, 2 * widths[0], weight[1])};
}

void attention(Call& call) {
    call.supports(call.integer("do_rotary", 0) == 0, "do_rotary is not supported");
    call.supports(call.integer("past_present_share_buffer", 0) == 0 && !call.has(6),
                  "past_present_share_buffer is not supported");
    call.ignore("rotary_embedding_dim");
    Ints widths = call.integers("qkv_hidden_sizes");
    const std::int64_t heads = call.integer("num_heads", 0);
    const std::vector<Ref> qkv = projected(call, widths);
    call.check(heads >= 1 && widths[0] % heads == 0 && widths[2] % heads == 0, "num_heads is ",
               heads, ", which does not divide ", widths[0], " and ", widths[2], " features");
    const Shape x = call.shape(0);
    std::vector<Ref> past;
    if (call.has(4)) {
        const Shape& cache = call.shape(4);
        call.check(cache.rank() == 5 && cache[0] == 2 && cache[1] == x[0] && cache[2] == heads,
                   "a cache of shape ", cache.str(), " does not fit an input of shape ", x.str());
        past = {half_of(call.build, call.in(4), 0), half_of(call.build, call.in(4), 1)};
    }
    const Sizes sizes{x[0], heads, x[1], x[1], past.empty() ? 0 : past[0]->spec.shape[2]};
    const Ref bias =
        added(call.build, mask_bias(call, 3, sizes), call.has(5) ? call.in(5) : nullptr);
    const std::vector<Ref> made = attend(call, qkv, past, sizes, bias, false);
    call.set(0, made[0]);
    if (call.wants(1)) call.set(1, stacked(call.build, made[1], made[2]));
}

/// Heads [B, L, N, parts, H] as `parts` tensors [B, N, L, H].
std::vector<Ref> unpacked(Builder& build, Ref x) {
    const Shape shape = x->spec.shape;
    std::vector<Ref> parts;
    for (std::int64_t i = 0; i < shape[3]; ++i)
        parts.push_back(build.transpose(
            build.reshape(build.slice(x, 3, i, i + 1), {shape[0], shape[1], shape[2], shape[4]}),
            {0, 2, 1, 3}));
    return parts;
}

/// Queries, keys and values as inputs 0 to 2 have them: apart, keys with values, or all in one.
std::vector<Ref> given_heads(Call& call) {
    Builder& build = call.build;
    std::vector<Ref> qkv;
    if (!call.has(1)) {
        call.check(call.shape(0).rank() == 5 && call.shape(0)[3] == 3,
                   "without keys, queries of shape ", call.shape(0).str(),
                   " have no keys and values in them");
        qkv = unpacked(build, call.in(0));
    } else if (call.shape(1).rank() == 5) {
        call.check(call.shape(1)[3] == 2, "keys of shape ", call.shape(1).str(),
                   " have no values in them");
        qkv = unpacked(build, call.in(1));
        qkv.insert(qkv.begin(), call.in(0));
    } else {
        qkv = {call.in(0), call.in(1), call.in(2)};
    }
    return qkv;
}

/// Adds each one's part of the bias [D + D + Dv].
void add_bias(Call& call, std::vector<Ref>& qkv) {
    std::int64_t begin = 0;
    for (Ref& x : qkv) {
        const Shape shape = x->spec.shape;
        const bool flat = shape.rank() == 3;
        const std::int64_t width = flat ? shape[2] : shape[1] * shape[3];
        Ref bias = call.build.slice(call.in(3), 0, begin, begin + width);
        if (!flat) bias = call.build.reshape(bias, {shape[1], 1, shape[3]});
        x = call.build.pointwise("y0 = x0 + x1", {x, bias}, x->spec.dtype);
        begin += width;
    }
}

void multi_head_attention(Call& call) {
    Builder& build = call.build;
    const std::int64_t heads = call.integer("num_heads", 0);
    call.supports(!call.has(8) && !call.has(9),
                  "past_sequence_length and cache_indirection are not supported");
    std::vector<Ref> qkv = given_heads(call);
    const Shape q = qkv[0]->spec.shape, k = qkv[1]->spec.shape;
    call.check((q.rank() == 3 || q.rank() == 4) && (k.rank() == 3 || k.rank() == 4),
               "queries of shape ", q.str(), " and keys of shape ", k.str(),
               " have neither three dimensions nor four");
    call.check(heads >= 1, "num_heads is ", heads, ", and must be 1 or more");
    call.check(call.has(6) == call.has(7), "past_key and past_value need each other");
    if (call.has(3)) add_bias(call, qkv);
    std::vector<Ref> past;
    if (call.has(6)) past = {call.in(6), call.in(7)};
    for (const Ref cache : past)
        call.check(cache->spec.shape.rank() == 4, "a cache of shape ", cache->spec.shape.str(),
                   " has not 4 dimensions");
    const Sizes sizes{q[0], heads, q[q.rank() - 2], k[k.rank() - 2],
                      past.empty() ? 0 : past[0]->spec.shape[2]};
    // The result has three dimensions where the queries have.
    const bool flat = q.rank() == 3;
    const Ref bias = added(build, mask_bias(call, 4, sizes), call.has(5) ? call.in(5) : nullptr);
    const std::vector<Ref> made = attend(call, qkv, past, sizes, bias, call.wants(3));
    Ref y = made[0];
    if (!flat)
        y = build.reshape(build.transpose(y, {0, 2, 1, 3}),
                          {q[0], sizes.queries, heads * y->spec.shape[3]});
    call.set(0, y);
    for (int i = 1; i <= 3; ++i)
        if (call.wants(i)) call.set(i, made[static_cast<std::size_t>(i)]);
}

}  // namespace

std::vector<Rule> packed_attention_rules() {
    return {
        {"com.microsoft.Attention", 1, attention},
        {"com.microsoft.MultiHeadAttention", 1, multi_head_attention},
    };
}

}  // namespace dlprim::onnx
