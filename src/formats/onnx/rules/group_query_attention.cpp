// SPDX-License-Identifier: MIT
// GroupQueryAttention of com.microsoft: heads that share keys, a cache in which each sequence of
// the batch has its own length, rotary embedding inside.
#include "formats/onnx/call.hpp"

#include <algorithm>
#include <optional>

namespace dlprim::onnx {

namespace {

/// The sizes of a call. A sequence's tokens end at seqlens_k + 1; its new ones are the last of
/// these. In a prompt all are new, and sequences may be padded on the right.
struct Cache {
    std::int64_t batch, heads, kv_heads, size, queries, total, room;
    std::optional<std::int64_t> past;  ///< how many tokens the cache holds, where all hold as many
    Ref pasts = nullptr;               ///< [B] int64: the same where they do not
};

/// Queries, keys and values [B, heads, L, H], from three inputs or one.
std::vector<Ref> heads_of(Call& call, const Cache& cache) {
    Builder& build = call.build;
    const auto by_heads = [&](Ref x, std::int64_t heads) {
        return build.transpose(build.reshape(x, {cache.batch, cache.queries, heads, cache.size}),
                               {0, 2, 1, 3});
    };
    if (call.has(1))
        return {by_heads(call.in(0), cache.heads), by_heads(call.in(1), cache.kv_heads),
                by_heads(call.in(2), cache.kv_heads)};
    const Ref all = by_heads(call.in(0), cache.heads + 2 * cache.kv_heads);
    const std::int64_t keys = cache.heads + cache.kv_heads;
    return {build.slice(all, 1, 0, cache.heads), build.slice(all, 1, cache.heads, keys),
            build.slice(all, 1, keys, keys + cache.kv_heads)};
}

Cache read_cache(Call& call) {
    const Shape& x = call.shape(0);
    call.check(x.rank() == 3, "queries of shape ", x.str(), " have not 3 dimensions");
    Cache cache{};
    cache.batch = x[0];
    cache.queries = x[1];
    cache.heads = call.integer("num_heads", 0);
    cache.kv_heads = call.integer("kv_num_heads", 0);
    const std::int64_t all = cache.heads + (call.has(1) ? 0 : 2 * cache.kv_heads);
    call.check(cache.heads >= 1 && cache.kv_heads >= 1 && cache.heads % cache.kv_heads == 0,
               "num_heads is ", cache.heads, ", which is not a multiple of kv_num_heads, ",
               cache.kv_heads);
    call.check(x[2] % all == 0, "queries of shape ", x.str(), " do not divide into ", all,
               " heads");
    cache.size = x[2] / all;
    for (int i = 1; i <= 2 && call.has(1); ++i)
        call.check(call.shape(i) == x.with(2, cache.kv_heads * cache.size), "keys of shape ",
                   call.shape(1).str(), " and values of shape ", call.shape(2).str(),
                   " are not of ", cache.kv_heads, " heads with ", cache.size,
                   " features, as those of queries of shape ", x.str());
    cache.total = call.known_integer(6, "total_sequence_length");
    std::int64_t held = 0;
    if (call.has(3)) {
        call.check(call.shape(3).rank() == 4, "a cache of shape ", call.shape(3).str(),
                   " has not 4 dimensions");
        held = call.shape(3)[2];
    }
    call.check(cache.total >= cache.queries && cache.total <= held + cache.queries,
               "total_sequence_length is ", cache.total, " with a cache of ", held, " tokens and ",
               cache.queries, " new ones");
    cache.room = std::max(cache.total, held);
    if (cache.total == cache.queries)
        cache.past = 0;
    else if (cache.batch == 1)
        cache.past = cache.total - cache.queries;
    else
        cache.pasts = call.build.pointwise("y0 = max(x0 + 1 - p0, 0)",
                                           {call.build.reshape(call.in(5), {cache.batch})},
                                           {static_cast<double>(cache.queries)}, DType::i64);
    return cache;
}

/// Tokens with zeros behind them for the rest of the cache.
Ref padded(Builder& build, const Cache& cache, Ref x) {
    const std::int64_t missing = cache.room - x->spec.shape[2];
    if (missing == 0) return x;
    return build.add1("Pad", {x},
                      {{"pads", Ints{0, 0, 0, missing}}, {"mode", "constant"}, {"value", 0.0}});
}

/// What a cache holds of its first tokens, where all sequences hold as many.
Ref held(Call& call, const Cache& cache, int past) {
    return call.build.slice(call.in(past), 2, 0, *cache.past);
}

/// The cache with the new tokens of each sequence behind its old ones, and zeros behind these.
Ref with_new(Call& call, const Cache& cache, int past, Ref now) {
    Builder& build = call.build;
    if (cache.past == 0) return padded(build, cache, now);
    if (cache.past) return padded(build, cache, build.concat({held(call, cache, past), now}, 2));
    const Ref used = build.pointwise(
        "y0 = index(2) < x1 ? x0 : 0",
        {call.in(past), build.reshape(cache.pasts, {cache.batch, 1, 1, 1})}, now->spec.dtype);
    return call.made_by("TensorScatter", 24, {padded(build, cache, used), now, cache.pasts})[0];
}

/// x with each pair of features turned by its position's angle.
Ref rotated(Call& call, const Cache& cache, Ref x) {
    Builder& build = call.build;
    call.check(call.shape(7).rank() == 2, "cosines of shape ", call.shape(7).str(),
               " have not 2 dimensions");
    Ref positions = nullptr;
    if (call.has(9) && cache.past != 0) {
        positions = build.reshape(call.in(9), {cache.batch, cache.queries});
    } else {
        // A prompt takes the first of the positions alone.
        const Ref first =
            call.has(9)  ? build.slice(build.reshape(call.in(9), {call.shape(9).numel()}), 0, 0, 1)
            : cache.past ? build.integers("", {*cache.past})
                         : cache.pasts;
        positions =
            build.pointwise_of({cache.batch, cache.queries}, "y0 = x0 + index(1)",
                               {build.reshape(first, {first->spec.shape[0], 1})}, DType::i64);
    }
    return call.made_by("RotaryEmbedding", 23, {x, call.in(7), call.in(8), positions},
                        {{"interleaved", {call.integer("rotary_interleaved", 0)}},
                         {"rotary_embedding_dim", {2 * call.shape(7)[-1]}}})[0];
}

/// What is added to the scores [B, heads, L, total]: attention_bias, and -inf for keys that a query
/// does not see.
Ref score_bias(Call& call, const Cache& cache, bool causal, std::int64_t window) {
    std::vector<Ref> inputs;
    std::vector<double> past;
    std::string position = "index(2)", bias = "0";
    if (cache.past) {
        position += " + p0";
        past.push_back(static_cast<double>(*cache.past));
    } else {
        inputs.push_back(
            call.build.reshape(call.build.cast(cache.pasts, DType::f32), {cache.batch, 1, 1, 1}));
        position += " + x0";
    }
    if (call.has(10)) {
        bias = cat("x", inputs.size());
        inputs.push_back(call.in(10));
    }
    if (inputs.empty())
        inputs.push_back(call.build.constant("", host_numbers({1, 1, 1, 1}, {0}, DType::f32)));
    const std::string last = causal ? "pos" : "pos - index(2) + size(2) - 1";
    const std::string inside = window > 0 ? cat(" && index(3) > pos - ", window) : "";
    return call.build.pointwise_of(
        {cache.batch, 1, cache.queries, cache.total},
        cat("pos = ", position, "; y0 = index(3) <= ", last, inside, " ? ", bias, " : -inf"),
        inputs, call.dtype(0), past);
}

/// A further key and value of zeros, whose bias is each head's sink, or 0: its weight takes its
/// part of the softmax and adds nothing to the result.
void add_sink(Call& call, const Cache& cache, Ref& k, Ref& v, Ref& bias) {
    Builder& build = call.build;
    const auto longer = [&](Ref x) {
        return build.add1("Pad", {x},
                          {{"pads", Ints{0, 0, 0, 1}}, {"mode", "constant"}, {"value", 0.0}});
    };
    k = longer(k);
    v = longer(v);
    const DType dtype = call.dtype(0);
    const auto spread = [&](Ref x, std::int64_t columns) {
        return build.pointwise_of({cache.batch, cache.heads, cache.queries, columns}, "y0 = x0",
                                  {x}, dtype);
    };
    const Ref sink = call.has(11) ? build.reshape(call.in(11), {1, cache.heads, 1, 1})
                                  : build.constant("", host_numbers({1, 1, 1, 1}, {0}, dtype));
    bias = build.concat({spread(bias, cache.total), spread(sink, 1)}, 3);
}

/// RMS normalisation of each head.
Ref normalized(Call& call, Ref x, int weight, std::string_view eps) {
    if (!call.has(weight)) return x;
    const double both = call.number("qk_norm_epsilon", 1e-6f);
    return call.made_by("RMSNormalization", 23, {x, call.in(weight)},
                        {{"epsilon", {call.number(eps, both)}}})[0];
}

void check_supported(Call& call) {
    for (const char* const name : {"k_quant_type", "v_quant_type"})
        call.supports(call.text(name, "NONE") == "NONE", "a quantised cache is not supported");
    call.ignore("kv_cache_bit_width");
    call.supports(!call.has(12) && !call.has(13), "a quantised cache is not supported");
    call.supports(!call.has(16), "query_seqlens is not supported");
    call.supports(call.integer("sliding_window_cache", 0) == 0,
                  "sliding_window_cache is not supported");
    call.supports(call.integer("qk_output", 0) == 0 && !call.wants(3),
                  "the output of scores is not supported");
}

void group_query_attention(Call& call) {
    Builder& build = call.build;
    check_supported(call);
    const Cache cache = read_cache(call);
    std::vector<Ref> qkv = heads_of(call, cache);
    Ref q = normalized(call, qkv[0], 14, "q_norm_epsilon"),
        k = normalized(call, qkv[1], 15, "k_norm_epsilon");
    for (const char* const name : {"qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"})
        call.ignore(name);
    if (call.integer("do_rotary", 0) != 0) {
        q = rotated(call, cache, q);
        k = rotated(call, cache, k);
    }
    call.ignore("rotary_interleaved");
    const bool causal = call.integer("causal", 1) != 0,
               sink = call.integer("smooth_softmax", 0) == 1 || call.has(11);
    const std::int64_t window = call.integer("local_window_size", -1);
    call.check(window == -1 || window >= 1, "local_window_size is ", window,
               ", and must be 1 or more, or -1 for none");
    Attributes attributes{{"softcap", {call.number("softcap", 0)}}};
    if (const double scale = call.number("scale", 0); scale != 0) attributes["scale"] = {scale};
    const auto attend = [&](std::vector<AnyValue> inputs) {
        std::vector<Ref> made = call.made_by("Attention", 23, std::move(inputs), attributes, 3);
        call.set(0, build.reshape(build.transpose(made[0], {0, 2, 1, 3}),
                                  {cache.batch, cache.queries, cache.heads * cache.size}));
        return made;
    };
    if (cache.past && !sink) {  // Attention has words for all of it
        attributes["is_causal"] = {std::int64_t{causal}};
        if (window > 0) attributes["left_window_size"] = {window - 1};
        std::vector<AnyValue> inputs{q, k, qkv[2],
                                     call.has(10) ? AnyValue(call.in(10)) : AnyValue()};
        if (*cache.past > 0)
            inputs.insert(inputs.end(), {held(call, cache, 3), held(call, cache, 4)});
        const std::vector<Ref> made = attend(std::move(inputs));
        call.set(1, padded(build, cache, made[1]));
        call.set(2, padded(build, cache, made[2]));
        return;
    }
    const Ref keys = with_new(call, cache, 3, k), values = with_new(call, cache, 4, qkv[2]);
    call.set(1, keys);
    call.set(2, values);
    k = build.slice(keys, 2, 0, cache.total);
    Ref v = build.slice(values, 2, 0, cache.total), bias = score_bias(call, cache, causal, window);
    if (sink) add_sink(call, cache, k, v, bias);
    attend({q, k, v, bias});
}

}  // namespace

std::vector<Rule> group_query_attention_rules() {
    return {
        {"com.microsoft.GroupQueryAttention", 1, group_query_attention},
    };
}

}  // namespace dlprim::onnx
