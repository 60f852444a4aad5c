// SPDX-License-Identifier: MIT
// attention.cached_split: attention of few queries over long caches on GPUs
// (kernels/attention/cached_split.cl), and attention.cached_step, which also writes the new token's
// key and value.
#include "base/text.hpp"
#include "engine/kernel_options.hpp"
#include "ops/attention/cache.hpp"

#include <algorithm>

namespace dlprim::attention {

namespace {

constexpr const char* split_source = "attention/cached_split.cl";
constexpr std::int64_t split_rows = 8, split_items = 128, split_turns = 4;
constexpr std::int64_t split_features = 4 * split_items;

std::int64_t split_lanes(std::int64_t features) {
    return (features + 3) / 4;
}
/// Positions at a time.
std::int64_t tile_of(const CacheSizes& sizes) {
    return split_items / split_lanes(sizes.depth) * split_turns;
}

/// Two work-groups for each compute unit.
CacheParts split_parts(const Traits& device, const CacheSizes& sizes) {
    return {sizes, split_rows, tile_of(sizes), std::int64_t{2} * std::max(1, device.compute_units)};
}

std::int64_t split_bytes(const CacheSizes& sizes, std::int64_t block) {
    const std::int64_t products = tile_of(sizes) * block * (split_lanes(sizes.depth) + 1);
    const std::int64_t slots =
        split_items / split_lanes(sizes.features) * block * (sizes.features + 2);
    return 4 * (std::max(products, slots) + tile_of(sizes) * block);
}

class CachedSplit : public CacheEngine {
  public:
    CachedSplit(const char* name, const char* op) : CacheEngine(name, op, false) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        if (Verdict verdict = check_cached(problem); !verdict) return verdict;
        const CacheSizes sizes = CacheSizes::of(problem);
        if (is_step() && sizes.length > 1)
            return Verdict::no(cat("it supports one new token of a sequence, not ", sizes.length));
        if (std::max(sizes.depth, sizes.features) > split_features)
            return Verdict::no(cat("it supports up to ", split_features,
                                   " features of a head, not ",
                                   std::max(sizes.depth, sizes.features)));
        const std::int64_t bytes = split_bytes(sizes, split_parts(device, sizes).rows);
        if (device.max_work_group < static_cast<std::uint64_t>(split_items) ||
            device.local_bytes < static_cast<std::uint64_t>(bytes))
            return Verdict::no(cat("it needs work-groups of ", split_items, " work-items and ",
                                   bytes, " bytes of local memory, and the device has ",
                                   device.max_work_group, " and ", device.local_bytes));
        return Verdict::yes();
    }
    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const CacheSizes sizes = CacheSizes::of(problem);
        return split_parts(device, sizes).workspace_bytes(sizes);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        // A CPU runs such work-groups one item after the other.
        // Of the tables little is read.
        return cached_seconds(device, is_step() ? cached_problem(problem) : problem,
                              device.wide_vectors ? 0.005 : 0.1);
    }
    std::vector<std::string> sources() const override {
        return {split_source, "attention/cached_join.cl"};
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const CacheSizes sizes = CacheSizes::of(problem);
        const CacheParts parts = split_parts(context.traits(), sizes);
        KernelCall call(
            context.build({split_source, kernel_source(split_source),
                           cat(cached_options(sizes, parts), define("ITEMS", split_items),
                               define("STEP", is_step() ? 1 : 0),
                               define("INTERLEAVED", sizes.interleaved ? 1 : 0))}),
            "attention_cached_split", group_range(parts.groups(sizes), split_items));
        // The kernel does not read what is bound in the place of others.
        const bool turns = is_step() && sizes.turned > 0;
        call.tensor("k", is_step() ? 1 : 0).tensor("v", is_step() ? 2 : 0);
        call.tensor("cosines", turns ? 6 : 0).tensor("sines", turns ? 7 : 0);
        call.size("turned", sizes.turned).size("table_rows", sizes.table_rows);
        return cached_launch(context, std::move(call), problem, parts);
    }

  private:
    bool is_step() const { return op() == cached_step_type; }
};

}  // namespace

void add_cached_split(EngineRegistry& engines) {
    engines.add(std::make_unique<CachedSplit>("attention.cached_split", cached_type));
    engines.add(std::make_unique<CachedSplit>("attention.cached_step", cached_step_type));
}

}  // namespace dlprim::attention
