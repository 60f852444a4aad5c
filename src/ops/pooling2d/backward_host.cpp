// SPDX-License-Identifier: MIT
// pooling2d.backward_host: the gradient of Pooling2D by the host's threads. A task owns whole
// planes of dx, so it can add windows to them in a fixed order.
#include "ops/pooling2d/engines.hpp"
#include "ops/pooling2d/options.hpp"

#include <algorithm>

namespace dlprim::pooling2d {

namespace {

template <bool average, typename Index>
void scatter(HostPool& pool, const pooling2d::Options& o, const pooling2d::View& view,
             const Shape& xs, const Shape& ys, const float* dy, const Index* index, float* dx) {
    const std::int64_t pixel = view.inner;
    const std::int64_t x_plane = xs[2] * xs[3] * pixel, y_plane = ys[2] * ys[3] * pixel;
    // Wide pixels (channels_last) are also divided by lanes, so that a single image gives several
    // tasks.
    const std::int64_t cut = std::min<std::int64_t>(pixel, 16), cuts = (pixel + cut - 1) / cut;
    pool.parallel_for(view.outer * cuts, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
            const std::int64_t lane = task % cuts * cut, n = std::min(cut, pixel - lane);
            float* plane = dx + task / cuts * x_plane + lane;
            const std::int64_t from = task / cuts * y_plane + lane;
            if (n == pixel)
                std::fill(plane, plane + x_plane, 0.0f);
            else
                for (std::int64_t i = 0; i < xs[2] * xs[3]; ++i)
                    std::fill(plane + i * pixel, plane + i * pixel + n, 0.0f);
            for (std::int64_t oy = 0; oy < ys[2]; ++oy)
                for (std::int64_t ox = 0; ox < ys[3]; ++ox) {
                    const std::int64_t at = from + (oy * ys[3] + ox) * pixel;
                    const std::int64_t top = oy * o.stride[0] - o.pad[0],
                                       left = ox * o.stride[1] - o.pad[1];
                    if constexpr (average) {
                        const std::int64_t bottom = std::min(top + o.kernel[0], xs[2] + o.pad[2]);
                        const std::int64_t right = std::min(left + o.kernel[1], xs[3] + o.pad[3]);
                        const std::int64_t y0 = std::max<std::int64_t>(top, 0),
                                           y1 = std::min(bottom, xs[2]);
                        const std::int64_t x0 = std::max<std::int64_t>(left, 0),
                                           x1 = std::min(right, xs[3]);
                        const auto divisor =
                            static_cast<float>(o.count_include_pad ? (bottom - top) * (right - left)
                                                                   : (y1 - y0) * (x1 - x0));
                        for (std::int64_t i = y0; i < y1; ++i)
                            for (std::int64_t j = x0; j < x1; ++j)
                                for (std::int64_t c = 0; c < n; ++c)
                                    plane[(i * xs[3] + j) * pixel + c] += dy[at + c] / divisor;
                    } else {
                        for (std::int64_t c = 0; c < n; ++c) {
                            const std::int64_t p = index[at + c];
                            const std::int64_t i = top + p / o.kernel[1],
                                               j = left + p % o.kernel[1];
                            // The positions of padding lanes are undefined, so they must not write
                            // to another task's plane.
                            if (i < 0 || i >= xs[2] || j < 0 || j >= xs[3]) continue;
                            plane[(i * xs[3] + j) * pixel + c] += dy[at + c];
                        }
                    }
                }
        }
    });
}

class BackwardHost : public Engine {
  public:
    std::string_view name() const override { return "pooling2d.backward_host"; }
    std::string_view op() const override { return "Pooling2DBackward"; }
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
        const pooling2d::View view(problem.outputs[0].shape, problem.outputs[0].layout);
        return std::make_unique<HostLaunch>(
            [o, view, xs = problem.outputs[0].shape, ys = problem.inputs[0].shape](
                HostPool& threads, std::span<const BufferRef> operands) {
                const float* dy = reinterpret_cast<const float*>(operands[0].host());
                float* dx = reinterpret_cast<float*>(operands.back().host());
                const std::byte* index = operands[1].host();
                if (o.average)
                    scatter<true>(threads, o, view, xs, ys, dy,
                                  static_cast<const std::uint8_t*>(nullptr), dx);
                else if (o.index_type() == DType::u8)
                    scatter<false>(threads, o, view, xs, ys, dy,
                                   reinterpret_cast<const std::uint8_t*>(index), dx);
                else
                    scatter<false>(threads, o, view, xs, ys, dy,
                                   reinterpret_cast<const std::int32_t*>(index), dx);
            });
    }
};

}  // namespace

void add_backward_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<BackwardHost>());
}

}  // namespace dlprim::pooling2d
