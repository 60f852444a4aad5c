// SPDX-License-Identifier: MIT
// interpolation.backward_host: the gradient of Interpolation by the host's threads; a task is one
// row of the result.
#include "ops/interpolation/engines.hpp"
#include "ops/interpolation/options.hpp"

#include <algorithm>

namespace dlprim::interpolation {

namespace {

class BackwardHost : public Engine {
  public:
    std::string_view name() const override { return "interpolation.backward_host"; }
    std::string_view op() const override { return "InterpolationBackward"; }
    bool on_host() const override { return true; }
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return interpolation::is_applicable(problem);
    }
    std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) const override {
        return interpolation::layouts(device, problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.3);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const interpolation::View view(problem.outputs[0].shape, problem.outputs[0].layout);
        return std::make_unique<HostLaunch>(
            [view, axes = interpolation::axes(problem.attrs, problem.outputs[0].shape,
                                              problem.inputs[0].shape)](
                HostPool& pool, std::span<const BufferRef> operands) {
                const interpolation::Axis &v = axes[0], &h = axes[1];
                const auto ih = static_cast<std::int64_t>(v.first.size()),
                           oh = static_cast<std::int64_t>(v.low.size());
                const auto iw = static_cast<std::int64_t>(h.first.size()),
                           ow = static_cast<std::int64_t>(h.low.size());
                const float* dy = reinterpret_cast<const float*>(operands[0].host());
                float* dx = reinterpret_cast<float*>(operands[1].host());
                const std::int64_t n = view.inner;
                // A task is one row of dx.
                pool.parallel_for(view.outer * ih, 1, [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row) {
                        float* to = dx + row * iw * n;
                        std::fill(to, to + iw * n, 0.0f);
                        const std::int64_t i = row % ih;
                        for (std::int64_t o = v.first[at(i)]; o < v.last[at(i)]; ++o) {
                            const float wy = weight(v, o, i);
                            const float* from = dy + (row / ih * oh + o) * ow * n;
                            for (std::int64_t p = 0; p < ow; ++p) {
                                const float wx = h.weight[at(p)];
                                add(from + p * n, wy * (1 - wx), to + h.low[at(p)] * n, n);
                                if (wx != 0) add(from + p * n, wy * wx, to + h.high[at(p)] * n, n);
                            }
                        }
                    }
                });
            });
    }

  private:
    static float weight(const interpolation::Axis& axis, std::int64_t o, std::int64_t i) {
        const float w = axis.weight[at(o)];
        return (axis.low[at(o)] == i ? 1 - w : 0.0f) + (axis.high[at(o)] == i ? w : 0.0f);
    }
    static void add(const float* from, float factor, float* to, std::int64_t n) {
        for (std::int64_t c = 0; c < n; ++c) to[c] += factor * from[c];
    }
    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
};

}  // namespace

void add_backward_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<BackwardHost>());
}

}  // namespace dlprim::interpolation
