// SPDX-License-Identifier: MIT
// gather.reference: Gather on OpenCL devices. An index out of range reads the nearest row
// and is an error at the next wait.
#include "base/text.hpp"
#include "engine/indexing/kernel.hpp"
#include "engine/strided_copy.hpp"
#include "ops/gather/operator.hpp"

#include <algorithm>

namespace dlprim::gather {

namespace {

constexpr const char* source = "gather/reference.cl";

class Reference : public Engine {
  public:
    Reference() : Engine("gather.reference", type, false) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check(problem);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const double bytes = static_cast<double>(problem.outputs[0].shape.numel()) *
                             static_cast<double>(2 * size_of(problem.outputs[0].dtype));
        return bytes / (std::max(device.gbytes_per_s, 1.0) * 0.5e9) + device.launch_us * 1e-6;
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Operand &x = problem.inputs[0], &indices = problem.inputs[1];
        const Indexing indexing(problem.attrs, x.shape, indices.shape, indices.dtype);
        if (indexing.values.empty()) return std::make_unique<KernelLaunch>();
        const std::int64_t step = slot_step(context.traits(), indexing);
        const std::int64_t pieces = (indexing.slice + step - 1) / step;
        const std::int64_t count = indexing.parts * pieces;
        const std::size_t bytes = size_of(x.dtype);
        const std::string options = cat("-DT=", raw_type(bytes), " -DSTEP=", step,
                                        " -DCOUNT=", count_type(static_cast<std::uint64_t>(count)),
                                        indexing_defines(indexing, indices.dtype));
        KernelCall call(context.build({source, kernel_source(source), options}), "gather",
                        line_range(context.traits(), count));
        call.tensor("x", 0, bytes).tensor("y", 2, bytes);
        call.scalar("count", count).scalar("slice", indexing.slice).scalar("pieces", pieces);
        set_indexing(call, context, indexing, 1, indices.dtype);
        return std::make_unique<KernelLaunch>(std::move(call));
    }
    std::vector<std::string> sources() const override { return {source}; }
};

}  // namespace

void add_reference_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Reference>());
}

}  // namespace dlprim::gather
