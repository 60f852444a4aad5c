// SPDX-License-Identifier: MIT
// cast.host: the host's conversions, in pieces on the host's threads.
#include "ops/cast/operator.hpp"

#include <algorithm>

namespace dlprim::cast {

namespace {

class Host : public Engine {
  public:
    Host() : Engine("cast.host", "Cast", true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
        return Verdict::yes();
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return roofline_seconds(device, problem, 0, 1, 0.4);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const DType from = problem.inputs[0].dtype, to = problem.outputs[0].dtype;
        const std::int64_t count = problem.outputs[0].shape.numel();
        const bool reinterpret = problem.attrs.boolean("reinterpret");
        return std::make_unique<HostLaunch>([=](HostPool& pool,
                                                std::span<const BufferRef> operands) {
            const std::byte* x = operands[0].host();
            std::byte* y = operands[1].host();
            pool.parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
                const auto at = static_cast<std::size_t>(begin);
                const auto n = static_cast<std::size_t>(end - begin);
                if (reinterpret) {
                    std::copy_n(x + at * size_of(from), n * size_of(from), y + at * size_of(to));
                    return;
                }
                convert(x + at * size_of(from), from, y + at * size_of(to), to, n);
            });
        });
    }
};

}  // namespace

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::cast
