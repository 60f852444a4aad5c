// SPDX-License-Identifier: MIT
// attention.cached_host: attention over caches on the host's threads, by the tiles of its matrix
// products. As on devices (kernels/attention/cached.clh), rows of queries that share a head of keys
// are a block, and its positions are divided into parts, which are combined in their order.
#include "base/integers.hpp"
#include "engine/host_element.hpp"
#include "engine/host_gemm_kernels.hpp"
#include "ops/attention/cache.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace dlprim::attention {

namespace {

constexpr float unbounded = std::numeric_limits<float>::infinity();
constexpr std::int64_t part_tile = 256;     // positions of the shortest part
constexpr std::int64_t wanted_groups = 64;  // whatever the number of threads: results are the same

struct CachedOperands {
    const float* q;
    const std::byte *keys, *values;
    const std::int32_t* places;
    float* y;
};

/// A part of a block, and what is computed of it.
class PartRun {
  public:
    PartRun(const CacheSizes& sizes, const CacheParts& parts, const CachedOperands& operands)
        : sizes_(sizes),
          parts_(parts),
          of_(operands),
          kernels_(host_gemm_kernels()),
          panels_(ceil_div(sizes.features, columns())) {
        const std::size_t rows = as_size(kernels_.rows), width = as_size(columns());
        queries_.resize(rows * as_size(sizes.depth));
        keys_.resize(width * as_size(sizes.depth));
        values_.resize(width * width);
        floats_.resize(width * as_size(std::max(sizes.depth, sizes.features)));
        scores_.resize(rows * width);
        weights_.resize(rows * width);
        made_.resize(rows * width);
        sums_.resize(rows * width * as_size(panels_));
        most_.resize(rows);
        total_.resize(rows);
        shrink_.resize(rows);
    }

    /// Writes each row's largest score, sum of weights and sums of values to `to`, whose rows are
    /// those of the block.
    void run(std::int64_t number, float* to);
    std::int64_t rows_of_block(std::int64_t number) const;
    std::int64_t row(std::int64_t number, std::int64_t r) const;

  private:
    static std::size_t as_size(std::int64_t n) { return static_cast<std::size_t>(n); }
    std::int64_t columns() const { return kernels_.columns; }
    /// Rows [begin, begin + count) of a head in a cache, as floats.
    const float* rows_in(const std::byte* cache, std::int64_t head, std::int64_t begin,
                         std::int64_t count, std::int64_t features);
    void load_queries(std::int64_t number);
    void weigh(std::int64_t first_row, std::int64_t start, std::int64_t begin, std::int64_t count);
    void add_values(std::int64_t head, std::int64_t begin, std::int64_t count);

    const CacheSizes& sizes_;
    const CacheParts& parts_;
    const CachedOperands of_;
    const HostGemmKernels& kernels_;
    const std::int64_t panels_;  ///< of features, as wide as a tile
    std::vector<float> queries_, keys_, values_, floats_, scores_, weights_, made_, sums_;
    std::vector<float> most_, total_, shrink_;
};

std::int64_t PartRun::rows_of_block(std::int64_t number) const {
    const std::int64_t row0 = number / parts_.parts % parts_.blocks * parts_.rows;
    return std::min(parts_.rows, sizes_.length * sizes_.group() - row0);
}

/// Row r of the block among all rows [batch, length, heads].
std::int64_t PartRun::row(std::int64_t number, std::int64_t r) const {
    const std::int64_t block = number / parts_.parts, head = block / parts_.blocks;
    const std::int64_t at = block % parts_.blocks * parts_.rows + r;
    return (head / sizes_.key_heads * sizes_.length + at / sizes_.group()) * sizes_.heads +
           head % sizes_.key_heads * sizes_.group() + at % sizes_.group();
}

const float* PartRun::rows_in(const std::byte* cache, std::int64_t head, std::int64_t begin,
                              std::int64_t count, std::int64_t features) {
    const std::int64_t at = (head * sizes_.capacity + begin) * features;
    if (sizes_.stored == DType::f32) return reinterpret_cast<const float*>(cache) + at;
    const HostHalf* const halves = reinterpret_cast<const HostHalf*>(cache) + at;
    std::copy_n(halves, count * features, floats_.begin());
    return floats_.data();
}

void PartRun::load_queries(std::int64_t number) {
    std::fill(queries_.begin(), queries_.end(), 0.0f);
    for (std::int64_t r = 0; r < rows_of_block(number); ++r) {
        const float* const from = of_.q + row(number, r) * sizes_.depth;
        for (std::int64_t d = 0; d < sizes_.depth; ++d)
            queries_[as_size(d * kernels_.rows + r)] = from[d] * static_cast<float>(sizes_.scale);
    }
}

/// Makes weights of the scores of `count` positions, and rescales what was summed before.
void PartRun::weigh(std::int64_t first_row, std::int64_t start, std::int64_t begin,
                    std::int64_t count) {
    const auto softcap = static_cast<float>(sizes_.softcap);
    for (std::int64_t r = 0; r < parts_.rows; ++r) {
        const std::int64_t own = start + (first_row + r) / sizes_.group();
        const std::int64_t first =
            sizes_.window > 0 ? std::max<std::int64_t>(own - sizes_.window + 1, 0) : 0;
        float* const scores = &scores_[as_size(r * columns())];
        float largest = most_[as_size(r)];
        for (std::int64_t i = 0; i < count; ++i) {
            float& score = scores[i];
            if (softcap > 0) score = softcap * std::tanh(score / softcap);
            if (begin + i > own || begin + i < first) score = -unbounded;
            largest = std::max(largest, score);
        }
        const float base = largest == -unbounded ? 0 : largest;
        shrink_[as_size(r)] = std::exp(most_[as_size(r)] - base);
        most_[as_size(r)] = largest;
        float sum = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            const float weight = std::exp(scores[i] - base);
            weights_[as_size(i * kernels_.rows + r)] = weight;
            sum += weight;
        }
        total_[as_size(r)] = total_[as_size(r)] * shrink_[as_size(r)] + sum;
    }
}

void PartRun::add_values(std::int64_t head, std::int64_t begin, std::int64_t count) {
    const float* const rows = rows_in(of_.values, head, begin, count, sizes_.features);
    for (std::int64_t panel = 0; panel < panels_; ++panel) {
        const std::int64_t first = panel * columns(),
                           wide = std::min(columns(), sizes_.features - first);
        for (std::int64_t i = 0; i < count; ++i) {
            float* const to = &values_[as_size(i * columns())];
            std::copy_n(rows + i * sizes_.features + first, wide, to);
            std::fill(to + wide, to + columns(), 0.0f);
        }
        kernels_.multiply(count, weights_.data(), values_.data(), made_.data());
        for (std::int64_t r = 0; r < parts_.rows; ++r) {
            float* const sums = &sums_[as_size((r * panels_ + panel) * columns())];
            const float* const made = &made_[as_size(r * columns())];
            const float shrink = shrink_[as_size(r)];
            for (std::int64_t e = 0; e < columns(); ++e) sums[e] = sums[e] * shrink + made[e];
        }
    }
}

void PartRun::run(std::int64_t number, float* to) {
    const std::int64_t part = number % parts_.parts, block = number / parts_.parts % parts_.blocks;
    const std::int64_t heads = number / parts_.parts / parts_.blocks;
    const std::int32_t* const place = of_.places + heads / sizes_.key_heads * 2;
    const std::int64_t cache = std::clamp<std::int64_t>(place[0], 0, sizes_.caches - 1);
    const std::int64_t start = std::clamp<std::int64_t>(place[1], 0, sizes_.capacity - 1);
    const std::int64_t head = cache * sizes_.key_heads + heads % sizes_.key_heads;
    const std::int64_t first_row = block * parts_.rows, rows = rows_of_block(number);
    const std::int64_t last = start + (first_row + rows - 1) / sizes_.group();
    const std::int64_t own = start + first_row / sizes_.group();
    const std::int64_t first =
        sizes_.window > 0 ? std::max<std::int64_t>(own - sizes_.window + 1, 0) : 0;
    const std::int64_t seen = std::min(last + 1, sizes_.capacity);
    const std::int64_t tiles = ceil_div(std::max<std::int64_t>(seen - first, 0), part_tile);
    const std::int64_t chunk = ceil_div(tiles, parts_.parts) * part_tile;
    const std::int64_t begin = first + part * chunk, end = std::min(begin + chunk, seen);

    load_queries(number);
    std::fill(most_.begin(), most_.end(), -unbounded);
    std::fill(total_.begin(), total_.end(), 0.0f);
    std::fill(sums_.begin(), sums_.end(), 0.0f);
    std::fill(weights_.begin(), weights_.end(), 0.0f);
    for (std::int64_t at = begin; at < end; at += columns()) {
        const std::int64_t count = std::min(columns(), end - at);
        pack_rows(rows_in(of_.keys, head, at, count, sizes_.depth), sizes_.depth,
                  static_cast<int>(count), static_cast<int>(columns()), sizes_.depth, keys_.data());
        kernels_.multiply(sizes_.depth, queries_.data(), keys_.data(), scores_.data());
        weigh(first_row, start, at, count);
        add_values(head, at, count);
    }
    for (std::int64_t r = 0; r < rows; ++r, to += sizes_.features + 2) {
        to[0] = most_[as_size(r)];
        to[1] = total_[as_size(r)];
        std::copy_n(&sums_[as_size(r * panels_ * columns())], sizes_.features, to + 2);
    }
}

/// Combines the results of a block's parts.
void join_parts(const CacheSizes& sizes, const CacheParts& parts, std::int64_t block,
                const PartRun& run, const float* made, float* y) {
    const std::int64_t step = sizes.features + 2, number = block * parts.parts;
    for (std::int64_t r = 0; r < run.rows_of_block(number); ++r) {
        const auto part = [&](std::int64_t p) {
            return made + ((number + p) * parts.rows + r) * step;
        };
        float most = -unbounded, weights = 0;
        for (std::int64_t p = 0; p < parts.parts; ++p) most = std::max(most, part(p)[0]);
        const float base = most == -unbounded ? 0 : most;
        float* const to = y + run.row(number, r) * sizes.features;
        std::fill_n(to, sizes.features, 0.0f);
        for (std::int64_t p = 0; p < parts.parts; ++p) {
            const float factor = std::exp(part(p)[0] - base);
            weights += factor * part(p)[1];
            for (std::int64_t e = 0; e < sizes.features; ++e) to[e] += factor * part(p)[2 + e];
        }
        if (weights > 0)
            for (std::int64_t e = 0; e < sizes.features; ++e) to[e] /= weights;
    }
}

class CachedHost : public CacheEngine {
  public:
    CachedHost() : CacheEngine("attention.cached_host", cached_type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check_cached(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return cached_seconds(device, problem, 0.3);
    }
    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        const CacheSizes sizes = CacheSizes::of(problem);
        const CacheParts parts = parts_of(sizes);
        return static_cast<std::uint64_t>(parts.groups(sizes) * parts.rows * (sizes.features + 2) *
                                          4);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const CacheSizes sizes = CacheSizes::of(problem);
        return std::make_unique<HostLaunch>(
            [sizes, parts = parts_of(sizes)](HostPool& pool, std::span<const BufferRef> operands) {
                const CachedOperands of{reinterpret_cast<const float*>(operands[0].host()),
                                        operands[1].host(), operands[2].host(),
                                        reinterpret_cast<const std::int32_t*>(operands[3].host()),
                                        reinterpret_cast<float*>(operands[4].host())};
                auto* const made = reinterpret_cast<float*>(operands[5].host());
                const std::int64_t step = parts.rows * (sizes.features + 2);
                pool.parallel_for(parts.groups(sizes), 1,
                                  [&](std::int64_t begin, std::int64_t end) {
                                      PartRun run(sizes, parts, of);
                                      for (std::int64_t number = begin; number < end; ++number)
                                          run.run(number, made + number * step);
                                  });
                const PartRun rows(sizes, parts, of);
                for (std::int64_t block = 0; block < parts.groups(sizes) / parts.parts; ++block)
                    join_parts(sizes, parts, block, rows, made, of.y);
            });
    }

  private:
    static CacheParts parts_of(const CacheSizes& sizes) {
        return {sizes, host_gemm_kernels().rows, part_tile, wanted_groups};
    }
};

/// One launch after the other, with the turned queries between them at the workspace's beginning.
class StepLaunch : public Launch {
  public:
    StepLaunch(std::unique_ptr<Launch> update, std::unique_ptr<Launch> attend, std::size_t inputs,
               std::uint64_t query_bytes)
        : update_(std::move(update)),
          attend_(std::move(attend)),
          inputs_(inputs),
          query_bytes_(query_bytes) {}
    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        const BufferRef& made = operands[inputs_ + 1];
        std::vector<BufferRef> of_update(operands.begin(),
                                         operands.begin() + static_cast<std::ptrdiff_t>(inputs_));
        of_update.push_back(made);
        update_->enqueue(queue, of_update);
        BufferRef rest = made;
        rest.byte_offset += query_bytes_;
        const BufferRef of_attention[] = {made,        operands[3],       operands[4],
                                          operands[5], operands[inputs_], rest};
        attend_->enqueue(queue, of_attention);
    }

  private:
    std::unique_ptr<Launch> update_, attend_;
    std::size_t inputs_;
    std::uint64_t query_bytes_;
};

/// Engines of devices are compared with it. On the host itself a CachedStep is expanded.
class StepHost : public CacheEngine {
  public:
    StepHost() : CacheEngine("attention.step_host", cached_step_type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check_cached(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return cached_seconds(device, cached_problem(problem), 0.3) + device.launch_us * 1e-6;
    }
    std::uint64_t workspace_bytes(const Traits& device, const Problem& problem,
                                  const Tuning&) const override {
        return query_bytes(problem) + attend().workspace_bytes(device, cached_problem(problem), {});
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Engine& update = *EngineRegistry::instance().find("cache_update.host");
        return std::make_unique<StepLaunch>(update.build(context, update_problem(problem), {}),
                                            attend().build(context, cached_problem(problem), {}),
                                            problem.inputs.size(), query_bytes(problem));
    }

  private:
    static const Engine& attend() {
        return *EngineRegistry::instance().find("attention.cached_host");
    }
    static std::uint64_t query_bytes(const Problem& problem) {
        constexpr std::uint64_t line = 64;
        const auto bytes = static_cast<std::uint64_t>(problem.inputs[0].shape.numel()) * 4;
        return (bytes + line - 1) / line * line;
    }
};

}  // namespace

void add_cached_host(EngineRegistry& engines) {
    engines.add(std::make_unique<CachedHost>());
    engines.add(std::make_unique<StepHost>());
}

}  // namespace dlprim::attention
