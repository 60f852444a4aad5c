// SPDX-License-Identifier: MIT
// nonzero.host: NonzeroRows on the host's threads. Each finds its first row by a binary search, and
// the others behind it.
#include "ops/nonzero/operators.hpp"
#include "ops/nonzero/rows.hpp"

#include <algorithm>
#include <cmath>

namespace dlprim::nonzero {

namespace {

void write_row(const Rows& rows, std::int64_t place, std::int64_t* row) {
    for (std::size_t d = rows.sizes.size(); d-- > 0;) {
        row[d] = place % rows.sizes[d];
        place /= rows.sizes[d];
    }
}

class Host : public Engine {
  public:
    Host() : Engine("nonzero.host", rows_type, true) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return seconds(device, problem);
    }
    std::unique_ptr<Launch> build(ContextImpl&, const Problem& problem,
                                  const Tuning&) const override {
        const Rows rows(problem.attrs, problem.inputs[0].shape);
        return std::make_unique<HostLaunch>([rows](HostPool& pool,
                                                   std::span<const BufferRef> operands) {
            const auto* const counts = reinterpret_cast<const std::int64_t*>(operands[0].host());
            auto* const result = reinterpret_cast<std::int64_t*>(operands[1].host());
            const std::int64_t* const end = counts + rows.elements;
            const std::int64_t count = rows.elements == 0 ? 0 : end[-1];
            *reinterpret_cast<std::int64_t*>(operands[2].host()) = count;
            const auto rank = static_cast<std::int64_t>(rows.sizes.size());
            pool.parallel_for(rows.size, 4096, [&](std::int64_t first, std::int64_t last) {
                const std::int64_t found = std::clamp(count, first, last);
                const std::int64_t* at = std::upper_bound(counts, end, first);
                for (std::int64_t r = first; r < found; ++r) {
                    while (*at <= r) ++at;
                    write_row(rows, at - counts, result + r * rank);
                }
                std::fill(result + found * rank, result + last * rank, rows.fill);
            });
        });
    }
};

}  // namespace

Verdict check(const Problem& problem) {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    return Verdict::yes();
}

double seconds(const Traits& device, const Problem& problem) {
    const Rows rows(problem.attrs, problem.inputs[0].shape);
    const double steps = 2 + std::log2(1.0 + static_cast<double>(rows.elements));
    const double rate = 1e9 * std::max(device.compute_units, 1);
    return static_cast<double>(rows.size) * steps / rate + device.launch_us * 1e-6;
}

void add_host_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Host>());
}

}  // namespace dlprim::nonzero
