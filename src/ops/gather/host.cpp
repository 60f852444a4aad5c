// SPDX-License-Identifier: MIT
// gather.host: Gather on the host's threads. An index out of range throws.
#include "engine/indexing/host_slots.hpp"
#include "engine/strided_copy.hpp"
#include "ops/gather/operator.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace dlprim::gather {

namespace {

/// Copies of `bytes` bytes each, which the compiler knows where they are single elements.
void copy_slices(const HostSlots& slots, std::int64_t begin, std::int64_t end, std::size_t bytes,
                 const std::byte* x, std::byte* y) {
    const auto copy = [&](auto size) {
        for (std::int64_t n = begin; n < end; ++n)
            std::memcpy(y + static_cast<std::size_t>(n) * size,
                        x + static_cast<std::size_t>(slots(n)) * size, size);
    };
    if (bytes == 4)
        copy(std::integral_constant<std::size_t, 4>());
    else if (bytes == 8)
        copy(std::integral_constant<std::size_t, 8>());
    else
        copy(bytes);
}

class Host : public Engine {
  public:
    Host() : Engine("gather.host", type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return copy_seconds(device, problem);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const Operand &x = problem.inputs[0], &indices = problem.inputs[1];
        const Indexing indexing(problem.attrs, x.shape, indices.shape, indices.dtype);
        const std::size_t bytes = static_cast<std::size_t>(indexing.slice) * size_of(x.dtype);
        if (bytes == 0) return std::make_unique<HostLaunch>([](auto&&...) {});
        return std::make_unique<HostLaunch>(
            [indexing, bytes, index_type = indices.dtype](HostPool& pool,
                                                          std::span<const BufferRef> operands) {
                const HostSlots slots(indexing, operands[1].host(), index_type);
                const std::byte* from = operands[0].host();
                std::byte* to = operands[2].host();
                const std::size_t grain = 1 + 32768 / std::max<std::size_t>(bytes, 8);
                pool.parallel_for(indexing.parts, static_cast<std::int64_t>(grain),
                                  [&](std::int64_t begin, std::int64_t end) {
                                      copy_slices(slots, begin, end, bytes, from, to);
                                  });
            });
    }
};

}  // namespace

Verdict check(const Problem& problem) {
    return copy_verdict(problem, 1);
}

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::gather
