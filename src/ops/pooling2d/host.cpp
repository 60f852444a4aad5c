// SPDX-License-Identifier: MIT
// pooling2d.host: Pooling2D by the host's threads; a task is one row of outputs. The inner loop
// runs over lanes of channels, which compilers vectorise.
#include "engine/pointwise/host_vectors.hpp"
#include "ops/pooling2d/engines.hpp"
#include "ops/pooling2d/options.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace dlprim::pooling2d {

namespace {

constexpr std::int64_t most_lanes = 16;

/// The part of a window that lies in the input: rows [y0, y1) and columns [x0, x1). The window
/// begins at (top, left) and is kw wide.
struct Window {
    std::int64_t y0, y1, x0, x1, top, left, kw;
};

/// The maximum of a window for `n` contiguous lanes. Pixels are `pixel` elements apart.
template <bool with_index>
inline void maximum(const float* plane, std::int64_t pixel, std::int64_t width,
                    const Window& window, std::int64_t n, float* best, std::int32_t* at) {
    const auto [y0, y1, x0, x1, top, left, kw] = window;
    for (std::int64_t c = 0; c < n; ++c) {
        best[c] = -std::numeric_limits<float>::infinity();
        if (with_index) at[c] = static_cast<std::int32_t>((y0 - top) * kw + (x0 - left));
    }
    for (std::int64_t i = y0; i < y1; ++i)
        for (std::int64_t j = x0; j < x1; ++j) {
            const float* v = plane + (i * width + j) * pixel;
            const auto position = static_cast<std::int32_t>((i - top) * kw + (j - left));
            for (std::int64_t c = 0; c < n; ++c) {
                const bool better = !(v[c] <= best[c]);  // larger, or one of the two is NaN
                const bool taken = better && !(best[c] != best[c] && v[c] == v[c]);
                best[c] = taken ? v[c] : best[c];
                if (with_index) at[c] = taken ? position : at[c];
            }
        }
}

template <bool average, typename Index>
void pool(HostPool& pool_, const pooling2d::Options& o, const pooling2d::View& view,
          const Shape& xs, const Shape& ys, const float* x, float* y, Index* index) {
    const std::int64_t rows = view.outer * ys[2], pixel = view.inner;
    const std::int64_t grain = std::max<std::int64_t>(1, 4096 / (ys[3] * pixel * 4 + 1));
    pool_.parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
        float value[most_lanes];
        std::int32_t at[most_lanes];
        for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t top = row % ys[2] * o.stride[0] - o.pad[0];
            const std::int64_t y0 = std::max<std::int64_t>(top, 0),
                               y1 = std::min(top + o.kernel[0], xs[2]);
            const float* plane = x + row / ys[2] * xs[2] * xs[3] * pixel;
            for (std::int64_t ox = 0; ox < ys[3]; ++ox) {
                const std::int64_t left = ox * o.stride[1] - o.pad[1];
                const std::int64_t x0 = std::max<std::int64_t>(left, 0);
                const std::int64_t x1 = std::min(left + o.kernel[1], xs[3]);
                const std::int64_t to = (row * ys[3] + ox) * pixel;
                for (std::int64_t lane = 0; lane < pixel; lane += most_lanes) {
                    const std::int64_t n = std::min(most_lanes, pixel - lane);
                    if constexpr (average) {
                        std::fill(value, value + n, 0.0f);
                        for (std::int64_t i = y0; i < y1; ++i)
                            for (std::int64_t j = x0; j < x1; ++j) {
                                const float* v = plane + (i * xs[3] + j) * pixel + lane;
                                for (std::int64_t c = 0; c < n; ++c) value[c] += v[c];
                            }
                        const std::int64_t whole =
                            (std::min(top + o.kernel[0], xs[2] + o.pad[2]) - top) *
                            (std::min(left + o.kernel[1], xs[3] + o.pad[3]) - left);
                        const auto divisor =
                            static_cast<float>(o.count_include_pad ? whole : (y1 - y0) * (x1 - x0));
                        for (std::int64_t c = 0; c < n; ++c) y[to + lane + c] = value[c] / divisor;
                    } else {
                        const Window window{y0, y1, x0, x1, top, left, o.kernel[1]};
                        if (index)
                            maximum<true>(plane + lane, pixel, xs[3], window, n, value, at);
                        else
                            maximum<false>(plane + lane, pixel, xs[3], window, n, value, at);
                        for (std::int64_t c = 0; c < n; ++c) y[to + lane + c] = value[c];
                        if (index)
                            for (std::int64_t c = 0; c < n; ++c)
                                index[to + lane + c] = static_cast<Index>(at[c]);
                    }
                }
            }
        }
    });
}

// Maxima of plain tensors, without positions: the maximum of a window's rows first, as lines of
// vectors, and then that of its columns.
void pool_lines(HostPool& threads, const pooling2d::Options& o, const Shape& xs, const Shape& ys,
                const float* x, float* y) {
    const auto max = [](const float* a, const float* b, float* to, std::int64_t n) {
        pointwise::vector_lines().compute(pointwise::Op::max, a, b, nullptr, to, n);
    };
    const std::int64_t rows = xs[0] * xs[1] * ys[2], width = xs[3], step = o.stride[1];
    // A row with its padding, up to the end of the last window.
    const std::int64_t padded = std::max((ys[3] - 1) * step + o.kernel[1], o.pad[1] + width);
    const std::int64_t grain = std::max<std::int64_t>(1, 4096 / (ys[3] * 4 + 1));
    threads.parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
        static thread_local std::vector<float> scratch;
        scratch.assign(static_cast<std::size_t>(padded + ys[3]),
                       -std::numeric_limits<float>::infinity());
        float *line = scratch.data() + o.pad[1], *column = scratch.data() + padded;
        for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t top = row % ys[2] * o.stride[0] - o.pad[0];
            const std::int64_t y0 = std::max<std::int64_t>(top, 0),
                               y1 = std::min(top + o.kernel[0], xs[2]);
            const float* plane = x + row / ys[2] * xs[2] * width;
            std::fill_n(line, width, -std::numeric_limits<float>::infinity());
            for (std::int64_t i = y0; i < y1; ++i) max(line, plane + i * width, line, width);
            float* to = y + row * ys[3];
            std::fill_n(to, ys[3], -std::numeric_limits<float>::infinity());
            for (std::int64_t j = 0; j < o.kernel[1]; ++j) {
                const float* from = scratch.data() + j;
                if (step == 1) {
                    max(to, from, to, ys[3]);
                    continue;
                }
                for (std::int64_t i = 0; i < ys[3]; ++i) column[i] = from[i * step];
                max(to, column, to, ys[3]);
            }
        }
    });
}

class Host : public Engine {
  public:
    std::string_view name() const override { return "pooling2d.host"; }
    std::string_view op() const override { return "Pooling2D"; }
    bool on_host() const override { return true; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return pooling2d::is_applicable(problem);
    }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return pooling2d::layouts(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return pooling2d::seconds(device, problem);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const pooling2d::Options o(problem.attrs);
        const pooling2d::View view(problem.inputs[0].shape, problem.inputs[0].layout);
        return std::make_unique<HostLaunch>([o, view, xs = problem.inputs[0].shape,
                                             ys = problem.outputs[0].shape](
                                                HostPool& threads,
                                                std::span<const BufferRef> operands) {
            const float* x = reinterpret_cast<const float*>(operands[0].host());
            float* y = reinterpret_cast<float*>(operands[1].host());
            std::byte* index = o.return_indices ? operands[2].host() : nullptr;
            if (ys.empty()) return;
            if (!o.average && index == nullptr && view.inner == 1)
                pool_lines(threads, o, xs, ys, x, y);
            else if (o.average)
                pool<true>(threads, o, view, xs, ys, x, y, static_cast<std::uint8_t*>(nullptr));
            else if (o.index_type() == DType::u8)
                pool<false>(threads, o, view, xs, ys, x, y, reinterpret_cast<std::uint8_t*>(index));
            else
                pool<false>(threads, o, view, xs, ys, x, y, reinterpret_cast<std::int32_t*>(index));
        });
    }
};

}  // namespace

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::pooling2d
