// SPDX-License-Identifier: MIT
// scatter.winners: Scatter without a reduction on OpenCL devices. The update that comes last wins a
// slot: an integer maximum of positions, which is the same in whatever order they arrive.
#include "base/text.hpp"
#include "engine/indexing/kernel.hpp"
#include "engine/strided_copy.hpp"
#include "ops/scatter/operator.hpp"
#include "ops/scatter/options.hpp"

#include <algorithm>

namespace dlprim::scatter {

namespace {

constexpr const char* source = "scatter/winners.cl";

class Winners : public Engine {
  public:
    Winners() : Engine("scatter.winners", type, false) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        if (reduction_of(problem.attrs) != Reduction::none)
            return Verdict::no("it supports the reduction none only, which replaces elements");
        return check(problem);
    }
    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        return static_cast<std::uint64_t>(
                   std::max<std::int64_t>(Operands(problem).indexing.slots, 1)) *
               sizeof(std::int32_t);
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return seconds(device, problem, 1);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        const Operands operands(problem);
        const Indexing& indexing = operands.indexing;
        auto launch = std::make_unique<KernelLaunch>();
        if (problem.outputs[0].shape.empty()) return launch;
        const DType index_type = problem.inputs[static_cast<std::size_t>(operands.indices)].dtype;
        const std::size_t bytes = size_of(problem.outputs[0].dtype);
        const std::int64_t step = slot_step(context.traits(), indexing);
        const std::int64_t pieces = (indexing.slice + step - 1) / step;
        const std::int64_t count = indexing.slots * pieces;
        const auto most = static_cast<std::uint64_t>(std::max(count, indexing.parts));
        const auto program = context.build(
            {source, kernel_source(source),
             cat("-DT=", raw_type(bytes), " -DSTEP=", step, " -DCOUNT=", count_type(most),
                 indexing_defines(indexing, index_type))});
        const int workspace = operands.result + 1;
        KernelCall clear(program, "clear_winners", line_range(context.traits(), indexing.slots));
        clear.tensor("winners", workspace).scalar("count", indexing.slots);
        launch->add(std::move(clear));
        if (indexing.parts > 0) {
            KernelCall choose(program, "choose_winners",
                              line_range(context.traits(), indexing.parts));
            choose.tensor("winners", workspace).scalar("count", indexing.parts);
            set_indexing(choose, context, indexing, operands.indices, index_type);
            launch->add(std::move(choose));
        }
        KernelCall write(program, "write_winners", line_range(context.traits(), count));
        write.tensor("winners", workspace);
        // Without data, any operand stands for it, and is not read.
        write.tensor("data", operands.has_data ? 0 : operands.updates, bytes);
        write.tensor("updates", operands.updates, bytes).tensor("y", operands.result, bytes);
        write.scalar("has_data", std::int32_t{operands.has_data}).scalar("count", count);
        write.scalar("slice", indexing.slice).scalar("pieces", pieces);
        launch->add(std::move(write));
        return launch;
    }
    std::vector<std::string> sources() const override { return {source}; }
};

}  // namespace

void add_winners_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Winners>());
}

}  // namespace dlprim::scatter
