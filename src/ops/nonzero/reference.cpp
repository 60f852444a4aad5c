// SPDX-License-Identifier: MIT
// nonzero.reference: NonzeroRows on OpenCL devices. Every row is found by a binary search, so that
// rows are written in order and the work grows with their number. A CPU first looks at the elements
// behind that of the row before.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "ops/nonzero/operators.hpp"
#include "ops/nonzero/rows.hpp"

#include <algorithm>

namespace dlprim::nonzero {

namespace {

constexpr const char* source = "nonzero/reference.cl";

class Reference : public Engine {
  public:
    Reference() : Engine("nonzero.reference", rows_type, false) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return seconds(device, problem);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Rows rows(problem.attrs, problem.inputs[0].shape);
        const auto rank = rows.sizes.size();
        const std::int64_t step = context.traits().wide_vectors ? 64 : 1;
        const std::int64_t count = ceil_div(std::max<std::int64_t>(rows.size, 1), step);
        const std::string options = cat("-DRANK=", rank, " -DSTEP=", step);
        KernelCall call(context.build({source, kernel_source(source), options}), "find_rows",
                        line_range(context.traits(), count));
        call.tensor("counts", 0, 8).tensor("rows", 1, 8).tensor("found", 2, 8);
        call.scalar("elements", rows.elements).scalar("size", rows.size).scalar("fill", rows.fill);
        for (std::size_t d = 0; d < 8; ++d)
            call.scalar(cat('s', d), d < rank ? rows.sizes[d] : std::int64_t{1});
        return std::make_unique<KernelLaunch>(std::move(call));
    }
    std::vector<std::string> sources() const override { return {source}; }
};

}  // namespace

void add_reference_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Reference>());
}

}  // namespace dlprim::nonzero
