// SPDX-License-Identifier: MIT
// pooling2d.host and pooling2d.backward_host: plain windows and their gradient by the host's
// threads. The inner loops run over lanes of channels, which compilers vectorise.
#include "engine/pointwise/host_vectors.hpp"
#include "ops/pooling/engines.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace dlprim::pooling {

namespace {

constexpr std::int64_t most_lanes = 16;

/// A problem: its geometry and the ranges of all windows.
struct Images {
    Windows windows;
    View view;
    Ranges ranges;
    explicit Images(const Problem& problem)
        : windows(problem), view(problem.outputs[0]), ranges(ranges_of(windows)) {}
};

/// The maximum of a window for `n` contiguous lanes. Pixels are `pixel` elements apart.
template <bool with_index>
inline void maximum(const float* plane, std::int64_t pixel, const Windows& windows,
                    const Range& rows, const Range& columns, std::int64_t n, float* best,
                    std::int32_t* at) {
    const std::int64_t kw = windows.w().kernel, width = windows.w().in;
    const auto position = [&](std::int64_t i, std::int64_t j) {
        return static_cast<std::int32_t>((i - rows.first) * kw + (j - columns.first));
    };
    for (std::int64_t c = 0; c < n; ++c) {
        best[c] = -std::numeric_limits<float>::infinity();
        if (with_index) at[c] = position(rows.begin, columns.begin);
    }
    for (std::int64_t i = rows.begin; i < rows.end; ++i)
        for (std::int64_t j = columns.begin; j < columns.end; ++j) {
            const float* v = plane + (i * width + j) * pixel;
            const std::int32_t here = position(i, j);
            for (std::int64_t c = 0; c < n; ++c) {
                const bool better = !(v[c] <= best[c]);  // larger, or one of the two is NaN
                const bool taken = better && !(best[c] != best[c] && v[c] == v[c]);
                best[c] = taken ? v[c] : best[c];
                if (with_index) at[c] = taken ? here : at[c];
            }
        }
}

/// A task is one row of outputs.
template <bool average, typename Index>
void pool(HostPool& threads, const Images& images, const float* x, float* y, Index* index) {
    const Windows& o = images.windows;
    const Axis &h = o.h(), &w = o.w();
    const std::int64_t rows = images.view.outer * h.out, pixel = images.view.inner;
    const std::int64_t grain = std::max<std::int64_t>(1, 4096 / (w.out * pixel * 4 + 1));
    threads.parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
        float value[most_lanes];
        std::int32_t at[most_lanes];
        for (std::int64_t row = begin; row < end; ++row) {
            const Range& down = images.ranges[1][static_cast<std::size_t>(row % h.out)];
            const float* plane = x + row / h.out * h.in * w.in * pixel;
            std::int64_t to = row * w.out * pixel;
            for (const Range& across : images.ranges[2])
                for (std::int64_t lane = 0; lane < pixel; lane += most_lanes) {
                    const std::int64_t n = std::min(most_lanes, pixel - lane);
                    if constexpr (average) {
                        std::fill(value, value + n, 0.0f);
                        for (std::int64_t i = down.begin; i < down.end; ++i)
                            for (std::int64_t j = across.begin; j < across.end; ++j) {
                                const float* v = plane + (i * w.in + j) * pixel + lane;
                                for (std::int64_t c = 0; c < n; ++c) value[c] += v[c];
                            }
                        const auto divisor = static_cast<float>(down.count * across.count);
                        for (std::int64_t c = 0; c < n; ++c) y[to + c] = value[c] / divisor;
                    } else {
                        if (index)
                            maximum<true>(plane + lane, pixel, o, down, across, n, value, at);
                        else
                            maximum<false>(plane + lane, pixel, o, down, across, n, value, at);
                        std::copy(value, value + n, y + to);
                        if (index)
                            for (std::int64_t c = 0; c < n; ++c)
                                index[to + c] = static_cast<Index>(at[c]);
                    }
                    to += n;
                }
        }
    });
}

/// Maxima of plain tensors, without positions: the maximum of a window's rows first, as lines of
/// vectors, and then that of its columns.
void pool_lines(HostPool& threads, const Images& images, const float* x, float* y) {
    const auto max = [](const float* a, const float* b, float* to, std::int64_t n) {
        pointwise::vector_lines().compute(pointwise::Op::max, a, b, nullptr, to, n);
    };
    const Axis &h = images.windows.h(), &w = images.windows.w();
    const std::int64_t rows = images.view.outer * h.out, width = w.in, step = w.stride;
    // A row with its padding, up to the end of the last window.
    const std::int64_t padded = std::max((w.out - 1) * step + w.kernel, w.pad + width);
    const std::int64_t grain = std::max<std::int64_t>(1, 4096 / (w.out * 4 + 1));
    threads.parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
        static thread_local std::vector<float> scratch;
        scratch.assign(static_cast<std::size_t>(padded + w.out),
                       -std::numeric_limits<float>::infinity());
        float *line = scratch.data() + w.pad, *column = scratch.data() + padded;
        for (std::int64_t row = begin; row < end; ++row) {
            const Range& down = images.ranges[1][static_cast<std::size_t>(row % h.out)];
            const float* plane = x + row / h.out * h.in * width;
            std::fill_n(line, width, -std::numeric_limits<float>::infinity());
            for (std::int64_t i = down.begin; i < down.end; ++i)
                max(line, plane + i * width, line, width);
            float* to = y + row * w.out;
            std::fill_n(to, w.out, -std::numeric_limits<float>::infinity());
            for (std::int64_t j = 0; j < w.kernel; ++j) {
                const float* from = scratch.data() + j;
                if (step == 1) {
                    max(to, from, to, w.out);
                    continue;
                }
                for (std::int64_t i = 0; i < w.out; ++i) column[i] = from[i * step];
                max(to, column, to, w.out);
            }
        }
    });
}

/// The gradient. A task owns whole planes of dx, so it can add windows to them in a fixed order.
template <bool average, typename Index>
void scatter(HostPool& threads, const Images& images, const float* dy, const Index* index,
             float* dx) {
    const Axis &h = images.windows.h(), &w = images.windows.w();
    const std::int64_t pixel = images.view.inner;
    const std::int64_t x_plane = h.in * w.in * pixel, y_plane = h.out * w.out * pixel;
    // Wide pixels (channels_last) are also divided by lanes, so that a single image gives several
    // tasks.
    const std::int64_t cut = std::min<std::int64_t>(pixel, 16), cuts = (pixel + cut - 1) / cut;
    threads.parallel_for(images.view.outer * cuts, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t lane = task % cuts * cut, n = std::min(cut, pixel - lane);
            float* plane = dx + task / cuts * x_plane + lane;
            std::int64_t at = task / cuts * y_plane + lane;
            if (n == pixel)
                std::fill(plane, plane + x_plane, 0.0f);
            else
                for (std::int64_t i = 0; i < h.in * w.in; ++i)
                    std::fill(plane + i * pixel, plane + i * pixel + n, 0.0f);
            for (const Range& down : images.ranges[1])
                for (const Range& across : images.ranges[2]) {
                    if constexpr (average) {
                        const auto divisor = static_cast<float>(down.count * across.count);
                        for (std::int64_t i = down.begin; i < down.end; ++i)
                            for (std::int64_t j = across.begin; j < across.end; ++j)
                                for (std::int64_t c = 0; c < n; ++c)
                                    plane[(i * w.in + j) * pixel + c] += dy[at + c] / divisor;
                    } else {
                        for (std::int64_t c = 0; c < n; ++c) {
                            const std::int64_t p = index[at + c];
                            const std::int64_t i = down.first + p / w.kernel,
                                               j = across.first + p % w.kernel;
                            // The positions of padding lanes are undefined, so they must not write
                            // to another task's plane.
                            if (i < 0 || i >= h.in || j < 0 || j >= w.in) continue;
                            plane[(i * w.in + j) * pixel + c] += dy[at + c];
                        }
                    }
                    at += pixel;
                }
        }
    });
}

class HostImages : public ImageEngine {
  public:
    explicit HostImages(bool backward)
        : ImageEngine(backward ? "pooling2d.backward_host" : "pooling2d.host", backward, true) {}

    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const bool bytes = Windows(problem).index_type(Positions::window) == DType::u8;
        return std::make_unique<HostLaunch>(
            [images = Images(problem), bytes, is_backward = backward(),
             positions = has_positions(problem)](HostPool& threads,
                                                 std::span<const BufferRef> operands) {
                const auto run = [&]<typename Index>(Index*) {
                    if (is_backward)
                        backward_of<Index>(threads, images, operands);
                    else
                        forward_of<Index>(threads, images, positions, operands);
                };
                bytes ? run(static_cast<std::uint8_t*>(nullptr))
                      : run(static_cast<std::int32_t*>(nullptr));
            });
    }

  private:
    using Operands = std::span<const BufferRef>;
    template <typename Index>
    static void forward_of(HostPool& threads, const Images& images, bool positions,
                           Operands operands) {
        if (images.windows.output.empty()) return;
        const float* x = reinterpret_cast<const float*>(operands[0].host());
        float* y = reinterpret_cast<float*>(operands[1].host());
        Index* index = positions ? reinterpret_cast<Index*>(operands[2].host()) : nullptr;
        if (images.windows.average)
            pool<true>(threads, images, x, y, index);
        else if (!positions && images.view.inner == 1)
            pool_lines(threads, images, x, y);
        else
            pool<false>(threads, images, x, y, index);
    }

    template <typename Index>
    static void backward_of(HostPool& threads, const Images& images, Operands operands) {
        const float* dy = reinterpret_cast<const float*>(operands[0].host());
        float* dx = reinterpret_cast<float*>(operands.back().host());
        const Index* index = reinterpret_cast<const Index*>(operands[1].host());
        if (images.windows.average)
            scatter<true>(threads, images, dy, index, dx);
        else
            scatter<false>(threads, images, dy, index, dx);
    }
};

}  // namespace

void add_host_engines(EngineRegistry& engines) {
    for (const bool backward : {false, true}) engines.add(std::make_unique<HostImages>(backward));
}

}  // namespace dlprim::pooling
