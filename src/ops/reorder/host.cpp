// SPDX-License-Identifier: MIT
// reorder.host: layout conversion by the host's threads.
#include "ops/reorder/operator.hpp"
#include "ops/reorder/sides.hpp"

namespace dlprim::reorder {

namespace {

template <typename T>
void move(HostPool& pool, const Side& x, const Side& y, const Shape& shape, std::int64_t block,
          const T* from, T* to) {
    const std::int64_t images = shape[0], channels = shape[1], pixels = shape[2] * shape[3];
    const std::int64_t blocks = (y.channels + block - 1) / block;
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (block * pixels + 1));
    pool.parallel_for(images * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t item = begin; item < end; ++item) {
            const std::int64_t n = item / blocks, c0 = item % blocks * block;
            const std::int64_t all = std::min(y.channels - c0, block);
            const std::int64_t full = std::clamp<std::int64_t>(channels - c0, 0, all);
            const T* a =
                from + n * x.image + c0 / x.block * x.block_step + c0 % x.block * x.lane_step;
            T* b = to + n * y.image + c0 / y.block * y.block_step + c0 % y.block * y.lane_step;
            for (std::int64_t p = 0; p < pixels; ++p, a += x.pixel_step, b += y.pixel_step) {
                for (std::int64_t l = 0; l < full; ++l) b[l * y.lane_step] = a[l * x.lane_step];
                for (std::int64_t l = full; l < all; ++l) b[l * y.lane_step] = T(0);
            }
        }
    });
}

class Host : public Engine {
  public:
    Host() : Engine("reorder.host", type, true) {}

    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return applicable(problem);
    }

    std::vector<LayoutChoice> layouts(const Traits&, const Problem& problem) const override {
        return {{{problem.inputs[0].layout}, {problem.outputs[0].layout}}};
    }

    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.5);
    }

    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const Side x = side_of(problem.inputs[0]), y = side_of(problem.outputs[0]);
        const Shape shape = problem.inputs[0].shape;
        const std::int64_t block = common_block(problem);
        const std::size_t bytes = size_of(problem.inputs[0].dtype);
        return std::make_unique<HostLaunch>(
            [=](HostPool& pool, std::span<const BufferRef> operands) {
                const auto run = [&]<typename T>(T) {
                    move(pool, x, y, shape, block, reinterpret_cast<const T*>(operands[0].host()),
                         reinterpret_cast<T*>(operands[1].host()));
                };
                if (bytes == 1) run(std::uint8_t{});
                if (bytes == 2) run(std::uint16_t{});
                if (bytes == 4) run(std::uint32_t{});
                if (bytes == 8) run(std::uint64_t{});
            });
    }
};

}  // namespace

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::reorder
