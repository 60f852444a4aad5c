// SPDX-License-Identifier: MIT
// scatter.reference: Scatter with every reduction on OpenCL devices. A stable sort brings the
// updates of each slot together (engine/sort), which are then applied one after the other: no float
// atomics, and the same bits in every run.
#include "base/integers.hpp"
#include "base/text.hpp"
#include "engine/element.hpp"
#include "engine/element_types.hpp"
#include "engine/indexing/kernel.hpp"
#include "engine/kernel_type.hpp"
#include "engine/sort/merge_sort.hpp"
#include "engine/strided_copy.hpp"
#include "ops/scatter/operator.hpp"
#include "ops/scatter/options.hpp"

#include <algorithm>

namespace dlprim::scatter {

namespace {

constexpr const char* source = "scatter/reference.cl";

/// The sort of parts by slot, and where the workspace has the bounds of each slot's parts.
struct Plan {
    MergeSort sort;
    std::size_t key_bytes;
    std::uint64_t firsts, ends;

    explicit Plan(const Indexing& indexing)
        : Plan(indexing, indexing.slots < (std::int64_t{1} << 31) ? 4 : 8) {}
    Plan(const Indexing& indexing, std::size_t bytes)
        : sort(1, std::max<std::int64_t>(indexing.parts, 1),
               std::max<std::int64_t>(indexing.parts, 1), bytes),
          key_bytes(bytes),
          firsts(sort.workspace_bytes()),
          ends(firsts + static_cast<std::uint64_t>(indexing.slots) * sizeof(std::int32_t)) {}
    std::uint64_t bytes() const { return ends + (ends - firsts) + sizeof(std::int32_t); }
};

/// The type in which a kernel combines elements, as OpenCL calls it. Sums and products of integers
/// wrap around, which only those of unsigned ones may.
const char* sum_type(DType dtype, Reduction how) {
    if (dtype == DType::f16 || dtype == DType::bf16) return "float";
    const bool wraps = how == Reduction::add || how == Reduction::mul || how == Reduction::mean;
    if (wraps && is_integer(dtype)) return size_of(dtype) == 8 ? "ulong" : "uint";
    return kernel_type(dtype);
}

std::int64_t pieces_of(ContextImpl& context, const Indexing& indexing) {
    return ceil_div(indexing.slice, slot_step(context.traits(), indexing));
}

class Reference : public Engine {
  public:
    Reference() : Engine("scatter.reference", type, false) {}
    Verdict is_applicable(const Traits& device, const Problem& problem) const override {
        Verdict verdict = has_double(device, problem.outputs[0].dtype);
        return verdict ? check(problem) : verdict;
    }
    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        return Plan(Operands(problem).indexing).bytes();
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        return seconds(device, problem, 8);
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        if (!problem.outputs[0].shape.empty()) add_calls(*launch, context, problem);
        return launch;
    }
    std::vector<std::string> sources() const override { return {source, merge_sort_source}; }

  private:
    static std::shared_ptr<Program> program(ContextImpl& context, const Problem& problem,
                                            const Operands& operands, const Plan& plan) {
        const Indexing& indexing = operands.indexing;
        const DType dtype = problem.outputs[0].dtype;
        const Reduction how = operands.reduction;
        const auto most = static_cast<std::uint64_t>(
            std::max(indexing.slots * pieces_of(context, indexing), indexing.parts));
        return context.build(
            {source, kernel_source(source),
             cat(element_defines(dtype), " -DRAW=", raw_type(size_of(dtype)),
                 " -DSUM=", sum_type(dtype, how), " -DKEY=", plan.key_bytes == 4 ? "uint" : "ulong",
                 " -DSTEP=", slot_step(context.traits(), indexing),
                 " -DREDUCTION=", static_cast<int>(how), " -DCOUNT=", count_type(most),
                 indexing_defines(
                     indexing, problem.inputs[static_cast<std::size_t>(operands.indices)].dtype))});
    }

    static void add_calls(KernelLaunch& launch, ContextImpl& context, const Problem& problem) {
        const Operands operands(problem);
        const Indexing& indexing = operands.indexing;
        const Plan plan(indexing);
        const auto made = program(context, problem, operands, plan);
        const int workspace = operands.result + 1;
        const auto range = [&](std::int64_t count) { return line_range(context.traits(), count); };
        KernelCall clear(made, "clear_bounds", range(indexing.slots));
        clear.tensor_at("firsts", workspace, plan.firsts).tensor_at("ends", workspace, plan.ends);
        clear.scalar("count", indexing.slots);
        launch.add(std::move(clear));
        if (indexing.parts > 0) {
            KernelCall find(made, "find_slots", range(indexing.parts));
            find.tensor_at("keys", workspace, plan.sort.first_keys(), plan.key_bytes);
            find.scalar("count", indexing.parts).scalar("slots", indexing.slots);
            set_indexing(find, context, indexing, operands.indices,
                         problem.inputs[static_cast<std::size_t>(operands.indices)].dtype);
            launch.add(std::move(find));
            plan.sort.add_calls(launch, context, workspace, 0);
            KernelCall bound(made, "find_bounds", range(indexing.parts));
            bound.tensor_at("keys", workspace, plan.sort.sorted_keys(), plan.key_bytes);
            bound.tensor_at("firsts", workspace, plan.firsts);
            bound.tensor_at("ends", workspace, plan.ends);
            bound.scalar("count", indexing.parts).scalar("slots", indexing.slots);
            launch.add(std::move(bound));
        }
        const std::size_t bytes = size_of(problem.outputs[0].dtype);
        const std::int64_t pieces = pieces_of(context, indexing), count = indexing.slots * pieces;
        KernelCall apply(made, "apply_updates", range(count));
        apply.tensor_at("order", workspace, plan.sort.sorted_positions());
        apply.tensor_at("firsts", workspace, plan.firsts).tensor_at("ends", workspace, plan.ends);
        // Without data, any operand stands for it, and is not read.
        apply.tensor("data", operands.has_data ? 0 : operands.updates, bytes);
        apply.tensor("updates", operands.updates, bytes).tensor("y", operands.result, bytes);
        apply.scalar("has_data", std::int32_t{operands.has_data}).scalar("count", count);
        apply.scalar("slice", indexing.slice).scalar("pieces", pieces);
        apply.scalar("includes_self", std::int32_t{operands.includes_self});
        launch.add(std::move(apply));
    }
};

}  // namespace

void add_reference_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Reference>());
}

}  // namespace dlprim::scatter
