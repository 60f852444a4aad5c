// SPDX-License-Identifier: MIT
// CacheUpdate, CachedAttention and CachedStep as operators, and what their engines share.
#include "ops/attention/cache.hpp"

#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "engine/storage.hpp"
#include "graph/declared_operator.hpp"
#include "graph/indexed_operator.hpp"
#include "ops/attention/heads.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::attention {

namespace {

constexpr const char* join_path = "attention/cached_join.cl";

struct UpdateOptions {
    static constexpr std::string_view type = cache_update_type;
    bool interleaved = false;
    static constexpr auto fields() {
        return ops::option_table(ops::option<&UpdateOptions::interleaved>(
            "whether pairs of features are neighbours; else features of two halves"));
    }
};

struct CachedOptions {
    static constexpr std::string_view type = cached_type;
    double scale = 0, softcap = 0;
    std::int64_t window = 0;
    static constexpr auto fields() {
        return ops::option_table(
            ops::option<&CachedOptions::scale>("factor of q k^T; 0: 1 / sqrt(features)"),
            ops::option<&CachedOptions::softcap>("c: scores s become c tanh(s / c); 0: they stay"),
            ops::option<&CachedOptions::window>(
                "positions that a query sees, with its own; 0: all"));
    }
};

/// Reads the sizes of caches and places behind the new tokens' tensors. Throws
/// Error(invalid_argument) where they do not fit.
template <typename Inputs>
CacheSizes sizes_of(const Inputs& inputs, std::size_t keys) {
    const Shape &q = inputs[0].shape, &k = inputs[keys].shape, &v = inputs[keys + 1].shape,
                &places = inputs[keys + 2].shape;
    require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && k.with(3, 1) == v.with(3, 1),
            "queries ", q, " and caches ", k, " and ", v, " do not fit each other");
    require(k[1] >= 1 && q[2] % k[1] == 0 && q[3] == k[3], "queries ", q, " do not fit keys ", k);
    require(places == Shape({q[0], 2}) && inputs[keys + 2].dtype == DType::i32,
            "places must be int32 [", q[0], ", 2], got ", places);
    CacheSizes sizes;
    sizes.batch = q[0];
    sizes.length = q[1];
    sizes.heads = q[2];
    sizes.key_heads = k[1];
    sizes.depth = k[3];
    sizes.features = v[3];
    sizes.caches = k[0];
    sizes.capacity = k[2];
    sizes.stored = inputs[keys].dtype;
    require(inputs[0].dtype == DType::f32 && inputs[keys + 1].dtype == sizes.stored &&
                (sizes.stored == DType::f32 || sizes.stored == DType::f16),
            "queries must be float, and caches of one type, float or half");
    return sizes;
}

template <typename Inputs>
CacheSizes update_sizes(const Attrs& attrs, const Inputs& inputs) {
    CacheSizes sizes = sizes_of(inputs, 3);
    const Shape &k = inputs[1].shape, &v = inputs[2].shape;
    require(k == Shape({sizes.batch, sizes.length, sizes.key_heads, sizes.depth}) &&
                v == k.with(3, sizes.features) && inputs[1].dtype == DType::f32 &&
                inputs[2].dtype == DType::f32,
            "new keys ", k, " and values ", v, " do not fit queries ", inputs[0].shape,
            " and caches ", inputs[3].shape);
    require(inputs.size() == 6 || inputs.size() == 8, "takes cosines and sines together");
    if (inputs.size() == 6) return sizes;
    const Shape& table = inputs[6].shape;
    require(table.rank() == 2 && table == inputs[7].shape && table[0] >= 1 &&
                2 * table[1] <= sizes.depth && inputs[6].dtype == DType::f32 &&
                inputs[7].dtype == DType::f32,
            "tables of cosines ", table, " and sines ", inputs[7].shape, " do not turn heads of ",
            sizes.depth, " features");
    sizes.turned = 2 * table[1];
    sizes.table_rows = table[0];
    sizes.interleaved = attrs.boolean("interleaved");
    return sizes;
}

template <typename Inputs>
CacheSizes cached_sizes(const Attrs& attrs, const Inputs& inputs) {
    CacheSizes sizes = sizes_of(inputs, 1);
    const CachedOptions options = read<CachedOptions>(attrs);
    require(options.scale >= 0 && options.softcap >= 0 && options.window >= 0, "scale ",
            options.scale, ", softcap ", options.softcap, " and window ", options.window,
            " must not be below 0");
    sizes.scale =
        options.scale > 0 ? options.scale : 1 / std::sqrt(static_cast<double>(sizes.depth));
    sizes.softcap = options.softcap;
    sizes.window = options.window;
    return sizes;
}

struct StepOptions : CachedOptions {
    static constexpr std::string_view type = cached_step_type;
    bool interleaved = false;
    static constexpr auto fields() {
        return ops::joined(CachedOptions::fields(),
                           ops::option_table(ops::option<&StepOptions::interleaved>(
                               "whether pairs of features are neighbours; else of halves")));
    }
};

Attrs update_attrs(const Attrs& step) {
    return {{"interleaved", step.boolean("interleaved")}};
}
Attrs cached_attrs(const Attrs& step) {
    return {{"scale", step.number("scale")},
            {"softcap", step.number("softcap")},
            {"window", step.integer("window")}};
}

template <typename Inputs>
CacheSizes step_sizes(const Attrs& attrs, const Inputs& inputs) {
    CacheSizes sizes = update_sizes(attrs, inputs);
    const Inputs of_attention{inputs[0], inputs[3], inputs[4], inputs[5]};
    const CacheSizes cached = cached_sizes(attrs, of_attention);
    sizes.scale = cached.scale;
    sizes.softcap = cached.softcap;
    sizes.window = cached.window;
    return sizes;
}

class Update : public InternalOperator<UpdateOptions, IndexedOperator> {
  public:
    int min_inputs() const override { return 6; }
    int max_inputs() const override { return 8; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    IndexInput index_input(const Attrs&, std::span<const TensorSpec> inputs) const override {
        return {5, {inputs[3].shape[0], inputs[3].shape[2]}, false};
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        update_sizes(attrs, inputs);
        return {inputs[0]};
    }
    void oracle(OracleCall& call) const override {
        update_oracle(update_sizes(call.attrs, call.inputs), call);
    }
};

class Cached : public InternalOperator<CachedOptions, IndexedOperator> {
  public:
    int min_inputs() const override { return 4; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    IndexInput index_input(const Attrs&, std::span<const TensorSpec> inputs) const override {
        return {3, {inputs[1].shape[0], inputs[1].shape[2]}, false};
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{inputs[0].shape.with(3, cached_sizes(attrs, inputs).features), DType::f32}};
    }
    /// Of a cache that is full: how much of it counts is data.
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec>) const override {
        const CacheSizes sizes = cached_sizes(attrs, inputs);
        const std::int64_t seen =
            sizes.window > 0 ? std::min(sizes.window, sizes.capacity) : sizes.capacity;
        return 2.0 * static_cast<double>(sizes.batch * sizes.length * sizes.heads) *
               static_cast<double>(seen) * static_cast<double>(sizes.depth + sizes.features);
    }
    void oracle(OracleCall& call) const override {
        cached_oracle(cached_sizes(call.attrs, call.inputs), call);
    }
};

class CachedStep : public InternalOperator<StepOptions, IndexedOperator> {
  public:
    int min_inputs() const override { return 6; }
    int max_inputs() const override { return 8; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    IndexInput index_input(const Attrs&, std::span<const TensorSpec> inputs) const override {
        return {5, {inputs[3].shape[0], inputs[3].shape[2]}, false};
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const std::vector<TensorSpec> all(inputs.begin(), inputs.end());
        return {{all[0].shape.with(3, step_sizes(attrs, all).features), DType::f32}};
    }
    bool may_stay_whole() const override { return true; }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const ValueId queries = graph.add1(cache_update_type, node.name + "/update", node.inputs,
                                           update_attrs(node.attrs));
        outputs = {graph.add1(cached_type, node.name,
                              {queries, node.inputs[3], node.inputs[4], node.inputs[5]},
                              cached_attrs(node.attrs))};
        return true;
    }
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override {
        const std::vector<TensorSpec> of_attention{inputs[0], inputs[3], inputs[4], inputs[5]};
        return Cached().flops(cached_attrs(attrs), of_attention, outputs);
    }
    void oracle(OracleCall& call) const override {
        update_oracle(step_sizes(call.attrs, call.inputs), call);
        const std::vector<HostArray>& in = call.inputs;
        OracleCall cached{
            call.attrs, false, {call.outputs[0], in[3], in[4], in[5]}, call.outputs, {}};
        cached_oracle(step_sizes(call.attrs, call.inputs), cached);
        call.outputs = cached.outputs;
    }
};

}  // namespace

CacheSizes CacheSizes::of(const Problem& problem) {
    if (problem.op == cached_type) return cached_sizes(problem.attrs, problem.inputs);
    return problem.op == cached_step_type ? step_sizes(problem.attrs, problem.inputs)
                                          : update_sizes(problem.attrs, problem.inputs);
}

CacheOperands::CacheOperands(const Problem& problem) : y(static_cast<int>(problem.inputs.size())) {
    if (problem.op != cached_step_type) return;
    keys = 3;
    values = 4;
    places = 5;
}

Problem update_problem(const Problem& step) {
    Problem update = step;
    update.op = cache_update_type;
    update.attrs = update_attrs(step.attrs);
    update.outputs[0].shape = step.inputs[0].shape;
    return update;
}

Problem cached_problem(const Problem& step) {
    Problem cached = step;
    cached.op = cached_type;
    cached.attrs = cached_attrs(step.attrs);
    cached.inputs = {step.inputs[0], step.inputs[3], step.inputs[4], step.inputs[5]};
    return cached;
}

CacheParts::CacheParts(const CacheSizes& sizes, std::int64_t most_rows, std::int64_t tile,
                       std::int64_t groups)
    : rows(std::min(most_rows, sizes.length * sizes.group())),
      blocks(ceil_div(sizes.length * sizes.group(), rows)) {
    constexpr std::int64_t most_parts = 64;
    const std::int64_t tiles = ceil_div(sizes.capacity, tile);
    parts = ceil_div(groups, sizes.batch * sizes.key_heads * blocks);
    parts = std::clamp<std::int64_t>(parts, 1, std::min(most_parts, tiles));
}

std::uint64_t CacheParts::workspace_bytes(const CacheSizes& sizes) const {
    if (parts == 1) return 0;
    return static_cast<std::uint64_t>(sizes.batch * sizes.length * sizes.heads * parts *
                                      (sizes.features + 2) * 4);
}

std::string cached_options(const CacheSizes& sizes, const CacheParts& parts) {
    return cat(define("ROWS", parts.rows), define("DEPTH", sizes.depth),
               define("FEATURES", sizes.features), define("PARTS", parts.parts),
               define("WINDOW", sizes.window > 0 ? 1 : 0),
               define("SOFTCAP", sizes.softcap > 0 ? 1 : 0),
               storage_options({{'A', sizes.stored}}));
}

std::unique_ptr<Launch> cached_launch(ContextImpl& context, KernelCall call, const Problem& problem,
                                      const CacheParts& parts) {
    const CacheSizes sizes = CacheSizes::of(problem);
    const CacheOperands at(problem);
    call.tensor("q", 0)
        .tensor("keys", at.keys, size_of(sizes.stored))
        .tensor("values", at.values, size_of(sizes.stored))
        .tensor("places", at.places)
        .tensor("y", at.y)
        .tensor("made", parts.parts > 1 ? at.y + 1 : at.y)
        .sizes({{"length", sizes.length},
                {"heads", sizes.heads},
                {"key_heads", sizes.key_heads},
                {"caches", sizes.caches},
                {"capacity", sizes.capacity},
                {"window", sizes.window},
                {"blocks", parts.blocks}})
        .scalar("scale", static_cast<float>(sizes.scale * log2_e))
        .scalar("softcap", static_cast<float>(sizes.softcap * log2_e));
    auto launch = std::make_unique<KernelLaunch>();
    launch->add(std::move(call));
    if (parts.parts == 1) return launch;
    const std::int64_t lanes = context.traits().wide_vectors ? 1 : 64;
    KernelCall join(context.build({join_path, kernel_source(join_path), define("LANES", lanes)}),
                    "attention_cached_join",
                    group_range(sizes.batch * sizes.length * sizes.heads, lanes));
    join.tensor("made", at.y + 1).tensor("y", at.y);
    join.size("parts", parts.parts).size("features", sizes.features);
    launch->add(std::move(join));
    return launch;
}

Verdict check_cached(const Problem& problem) {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    for (const Operand& operand : problem.inputs)
        if (operand.shape.empty()) return Verdict::no("it needs tensors with elements");
    const CacheSizes sizes = CacheSizes::of(problem);
    constexpr std::int64_t limit = std::int64_t{1} << 30;
    if (sizes.batch * sizes.length * sizes.heads >= limit || sizes.capacity >= limit)
        return Verdict::no("it needs sizes below 2^30");
    return Verdict::yes();
}

double cached_seconds(const Traits& device, const Problem& problem, double share) {
    const CacheSizes sizes = CacheSizes::of(problem);
    const std::int64_t seen =
        sizes.window > 0 ? std::min(sizes.window, sizes.capacity) : sizes.capacity;
    const double flops = static_cast<double>(sizes.batch * sizes.length * sizes.heads) *
                         static_cast<double>(seen) *
                         static_cast<double>(sizes.depth + sizes.features);
    return roofline_seconds(device, problem, flops, share);
}

std::unique_ptr<dlprim::Operator> make_cache_update() {
    return std::make_unique<Update>();
}

std::unique_ptr<dlprim::Operator> make_cached() {
    return std::make_unique<Cached>();
}

std::unique_ptr<dlprim::Operator> make_cached_step() {
    return std::make_unique<CachedStep>();
}

}  // namespace dlprim::attention
