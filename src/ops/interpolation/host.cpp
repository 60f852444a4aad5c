// SPDX-License-Identifier: MIT
// interpolation.host: Interpolation by the host's threads; a task is one row of the result.
#include "ops/interpolation/engines.hpp"
#include "ops/interpolation/options.hpp"

#include <algorithm>

namespace dlprim::interpolation {

namespace {

class Host : public Engine {
  public:
    std::string_view name() const override { return "interpolation.host"; }
    std::string_view op() const override { return "Interpolation"; }
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
        const interpolation::View view(problem.inputs[0].shape, problem.inputs[0].layout);
        return std::make_unique<HostLaunch>(
            [view,
             nearest = interpolation::Options(problem.attrs).mode != interpolation::Mode::bilinear,
             axes = interpolation::axes(problem.attrs, problem.inputs[0].shape,
                                        problem.outputs[0].shape)](
                HostPool& pool, std::span<const BufferRef> operands) {
                const interpolation::Axis &v = axes[0], &h = axes[1];
                const auto ih = static_cast<std::int64_t>(v.first.size()),
                           oh = static_cast<std::int64_t>(v.low.size());
                const auto iw = static_cast<std::int64_t>(h.first.size()),
                           ow = static_cast<std::int64_t>(h.low.size());
                const float* x = reinterpret_cast<const float*>(operands[0].host());
                float* y = reinterpret_cast<float*>(operands[1].host());
                const std::int64_t n = view.inner;
                // A task is one row of y.
                pool.parallel_for(view.outer * oh, 1, [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row) {
                        const std::size_t o = at(row % oh);
                        const float* plane = x + row / oh * ih * iw * n;
                        const float *top = plane + v.low[o] * iw * n,
                                    *bottom = plane + v.high[o] * iw * n;
                        float* to = y + row * ow * n;
                        if (nearest && n == 1) {
                            for (std::size_t p = 0; p < at(ow); ++p) to[p] = top[h.low[p]];
                            continue;
                        }
                        for (std::size_t p = 0; p < at(ow); ++p, to += n) {
                            const std::int64_t a = h.low[p] * n, b = h.high[p] * n;
                            if (nearest) {
                                std::copy(top + a, top + a + n, to);
                                continue;
                            }
                            const float wy = v.weight[o], wx = h.weight[p];
                            for (std::int64_t c = 0; c < n; ++c)
                                to[c] = (1 - wy) * ((1 - wx) * top[a + c] + wx * top[b + c]) +
                                        wy * ((1 - wx) * bottom[a + c] + wx * bottom[b + c]);
                        }
                    }
                });
            });
    }

  private:
    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
};

}  // namespace

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::interpolation
