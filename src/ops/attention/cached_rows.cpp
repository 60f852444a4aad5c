// SPDX-License-Identifier: MIT
// attention.cached_rows: attention over caches by work-items with wide vectors
// (kernels/attention/cached_rows.cl). It is the reference of all devices with OpenCL.
#include "ops/attention/cache.hpp"

#include <algorithm>

namespace dlprim::attention {

namespace {

constexpr const char* rows_source = "attention/cached_rows.cl";
constexpr std::int64_t block_of_rows = 8;
constexpr std::int64_t rows_part_tile = 256;  // positions of the shortest part, as in the kernel

/// At least a work-group for each core.
CacheParts rows_parts(const Traits& device, const CacheSizes& sizes) {
    return {sizes, block_of_rows, rows_part_tile, std::max<std::int64_t>(1, device.compute_units)};
}

class CachedRows : public CacheEngine {
  public:
    CachedRows() : CacheEngine("attention.cached_rows", cached_type, false) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check_cached(problem);
    }
    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        const CacheSizes sizes = CacheSizes::of(problem);
        return rows_parts(device, sizes).workspace_bytes(sizes);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return cached_seconds(device, problem, device.wide_vectors ? 0.4 : 0.005);
    }
    std::vector<std::string> sources() const override {
        return {rows_source, "attention/cached_join.cl"};
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const CacheSizes sizes = CacheSizes::of(problem);
        const CacheParts parts = rows_parts(context.traits(), sizes);
        KernelCall call(
            context.build({rows_source, kernel_source(rows_source), cached_options(sizes, parts)}),
            "attention_cached_rows", group_range(parts.groups(sizes), 1));
        return cached_launch(context, std::move(call), problem, parts);
    }
};

}  // namespace

void add_cached_rows(EngineRegistry& engines) {
    engines.add(std::make_unique<CachedRows>());
}

}  // namespace dlprim::attention
