// SPDX-License-Identifier: MIT
// cache_update.reference and cache_update.host: CacheUpdate on OpenCL devices
// (kernels/attention/cache_update.cl) and on the host.
#include "base/text.hpp"
#include "engine/host_element.hpp"
#include "engine/kernel_options.hpp"
#include "engine/storage.hpp"
#include "ops/attention/cache.hpp"

#include <algorithm>

namespace dlprim::attention {

namespace {

constexpr const char* update_source = "attention/cache_update.cl";
constexpr int q_at = 0, k_at = 1, v_at = 2, keys_at = 3, values_at = 4, places_at = 5,
              cosines_at = 6, sines_at = 7;

/// The heads of all tokens: of queries, keys and values.
std::int64_t heads_of_all(const CacheSizes& sizes) {
    return sizes.batch * sizes.length * (sizes.heads + 2 * sizes.key_heads);
}

class UpdateReference : public CacheEngine {
  public:
    UpdateReference() : CacheEngine("cache_update.reference", cache_update_type, false) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check_cached(problem);
    }
    double estimate(const Traits& device, const Problem&, const Tuning&) const override {
        return device.launch_us * 1e-6;
    }
    std::vector<std::string> sources() const override { return {update_source}; }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const CacheSizes sizes = CacheSizes::of(problem);
        const bool turns = sizes.turned > 0;
        const int y = static_cast<int>(problem.inputs.size());
        const std::int64_t lanes =
            context.traits().wide_vectors
                ? 1
                : std::min<std::int64_t>(
                      64, static_cast<std::int64_t>(context.traits().max_work_group));
        KernelCall call(context.build({update_source, kernel_source(update_source),
                                       cat(define("LANES", lanes),
                                           define("INTERLEAVED", sizes.interleaved ? 1 : 0),
                                           storage_options({{'C', sizes.stored}}))}),
                        "attention_cache_update", group_range(heads_of_all(sizes), lanes));
        // Without tables the kernel does not read what is bound in their place.
        call.tensor("q", q_at).tensor("k", k_at).tensor("v", v_at);
        call.tensor("keys", keys_at, size_of(sizes.stored));
        call.tensor("values", values_at, size_of(sizes.stored));
        call.tensor("places", places_at);
        call.tensor("cosines", turns ? cosines_at : q_at).tensor("sines", turns ? sines_at : q_at);
        call.tensor("y", y).sizes({{"length", sizes.length},
                                   {"heads", sizes.heads},
                                   {"key_heads", sizes.key_heads},
                                   {"depth", sizes.depth},
                                   {"features", sizes.features},
                                   {"caches", sizes.caches},
                                   {"capacity", sizes.capacity},
                                   {"turned", sizes.turned},
                                   {"table_rows", sizes.table_rows}});
        return std::make_unique<KernelLaunch>(std::move(call));
    }
};

/// A head of queries or keys, turned by the position whose angles are given.
template <typename T>
void turn(const CacheSizes& sizes, const float* from, const float* cosines, const float* sines,
          T* to) {
    const std::int64_t half = sizes.turned / 2;
    for (std::int64_t pair = 0; pair < half; ++pair) {
        const std::int64_t a = sizes.interleaved ? 2 * pair : pair;
        const std::int64_t b = a + (sizes.interleaved ? 1 : half);
        const float x = from[a], y = from[b], c = cosines[pair], s = sines[pair];
        to[a] = T(x * c - y * s);
        to[b] = T(x * s + y * c);
    }
    for (std::int64_t d = sizes.turned; d < sizes.depth; ++d) to[d] = T(from[d]);
}

/// Operands of a launch on the host.
struct HostCaches {
    std::span<const BufferRef> operands;
    const float* floats(int i) const {
        return reinterpret_cast<const float*>(operands[static_cast<std::size_t>(i)].host());
    }
    template <typename T>
    T* write(int i) const {
        return reinterpret_cast<T*>(operands[static_cast<std::size_t>(i)].host());
    }
    const std::int32_t* places() const {
        return reinterpret_cast<const std::int32_t*>(operands[places_at].host());
    }
};

template <typename T>
void update_token(const CacheSizes& sizes, const HostCaches& of, int y, std::int64_t token) {
    const std::int32_t* place = of.places() + token / sizes.length * 2;
    const std::int64_t cache = std::clamp<std::int64_t>(place[0], 0, sizes.caches - 1);
    const std::int64_t position =
        std::clamp<std::int64_t>(place[1], 0, sizes.capacity - 1) + token % sizes.length;
    const std::int64_t angles =
        std::max<std::int64_t>(std::min(position, sizes.table_rows - 1), 0) * (sizes.turned / 2);
    const bool turns = sizes.turned > 0;
    const float* cosines = turns ? of.floats(cosines_at) + angles : nullptr;
    const float* sines = turns ? of.floats(sines_at) + angles : nullptr;
    for (std::int64_t h = 0; h < sizes.heads; ++h) {
        const std::int64_t at = (token * sizes.heads + h) * sizes.depth;
        turn(sizes, of.floats(q_at) + at, cosines, sines, of.write<float>(y) + at);
    }
    if (position >= sizes.capacity) return;
    for (std::int64_t h = 0; h < sizes.key_heads; ++h) {
        const std::int64_t from = token * sizes.key_heads + h,
                           to = (cache * sizes.key_heads + h) * sizes.capacity + position;
        turn(sizes, of.floats(k_at) + from * sizes.depth, cosines, sines,
             of.write<T>(keys_at) + to * sizes.depth);
        const float* value = of.floats(v_at) + from * sizes.features;
        T* stored = of.write<T>(values_at) + to * sizes.features;
        for (std::int64_t e = 0; e < sizes.features; ++e) stored[e] = T(value[e]);
    }
}

class UpdateHost : public CacheEngine {
  public:
    UpdateHost() : CacheEngine("cache_update.host", cache_update_type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check_cached(problem);
    }
    double estimate(const Traits& device, const Problem&, const Tuning&) const override {
        return device.launch_us * 1e-6;
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<HostLaunch>(
            [sizes = CacheSizes::of(problem), y = static_cast<int>(problem.inputs.size())](
                HostPool& pool, std::span<const BufferRef> operands) {
                const HostCaches of{operands};
                pool.parallel_for(sizes.batch * sizes.length, 4,
                                  [&](std::int64_t begin, std::int64_t end) {
                                      for (std::int64_t token = begin; token < end; ++token)
                                          if (sizes.stored == DType::f16)
                                              update_token<HostHalf>(sizes, of, y, token);
                                          else
                                              update_token<float>(sizes, of, y, token);
                                  });
            });
    }
};

}  // namespace

void add_cache_update(EngineRegistry& engines) {
    engines.add(std::make_unique<UpdateReference>());
    engines.add(std::make_unique<UpdateHost>());
}

}  // namespace dlprim::attention
