// SPDX-License-Identifier: MIT
// pad.gather_host: PadBackward by the host's threads. Each input element is the sum over the
// outputs that read it.
#include "ops/pad/gather_geometry.hpp"

namespace dlprim::pad {

namespace {

class PadGatherHost : public GatherEngine {
  public:
    PadGatherHost() : GatherEngine("pad.gather_host", true) {}
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        return std::make_unique<HostLaunch>(
            [g = pad::GatherGeometry(problem)](HostPool& pool,
                                               std::span<const BufferRef> operands) {
                const float* dy = reinterpret_cast<const float*>(operands[0].host());
                float* dx = reinterpret_cast<float*>(operands[1].host());
                pool.parallel_for(
                    g.outer * g.x[0] * g.x[1], 8, [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t row = begin; row < end; ++row) {
                            const std::int64_t b = row % g.x[1], a = row / g.x[1] % g.x[0];
                            const std::int64_t o = row / g.x[1] / g.x[0];
                            const pad::Readers ra(g.mode, a, g.before[0], g.x[0], g.y[0]);
                            const pad::Readers rb(g.mode, b, g.before[1], g.x[1], g.y[1]);
                            for (std::int64_t c = 0; c < g.x[2]; ++c) {
                                const pad::Readers rc(g.mode, c, g.before[2], g.x[2], g.y[2]);
                                float sum = 0;
                                each(ra, [&](std::int64_t i) {
                                    each(rb, [&](std::int64_t j) {
                                        const float* line =
                                            dy + ((o * g.y[0] + i) * g.y[1] + j) * g.y[2];
                                        each(rc, [&](std::int64_t k) { sum += line[k]; });
                                    });
                                });
                                dx[row * g.x[2] + c] = sum;
                            }
                        }
                    });
            });
    }

  private:
    template <typename F>
    static void each(const pad::Readers& readers, F&& f) {
        for (int k = 0; k < 3; ++k)
            for (std::int64_t i = readers.first[k]; i < readers.last[k]; ++i) f(i);
    }
};

}  // namespace

void add_gather_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<PadGatherHost>());
}

}  // namespace dlprim::pad
