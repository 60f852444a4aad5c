// SPDX-License-Identifier: MIT
// topk.reference: TopK on OpenCL devices. Elements become unsigned keys, which a merge sort brings
// into order together with their positions (engine/sort).
#include "base/text.hpp"
#include "engine/sort/merge_sort.hpp"
#include "engine/strided_copy.hpp"
#include "ops/topk/lines.hpp"
#include "ops/topk/operators.hpp"

#include <cmath>

namespace dlprim::topk {

namespace {

constexpr const char* source = "topk/reference.cl";

std::size_t key_bytes(DType dtype) {
    return size_of(dtype) == 8 ? 8 : 4;
}

MergeSort sort_of(const Problem& problem, const Lines& lines) {
    return {lines.count(), lines.length, lines.k, key_bytes(problem.inputs[0].dtype)};
}

class Reference : public Engine {
  public:
    Reference() : Engine("topk.reference", type, false) {}
    Verdict is_applicable(const Traits&, const Problem& problem) const override {
        return check(problem);
    }
    std::uint64_t workspace_bytes(const Traits&, const Problem& problem,
                                  const Tuning&) const override {
        const Lines lines(problem.attrs, problem.inputs[0].shape);
        return sort_of(problem, lines).workspace_bytes();
    }
    double estimate(const Traits& device, const Problem& problem, const Tuning&) const override {
        const Lines lines(problem.attrs, problem.inputs[0].shape);
        return seconds(device, problem, 8 + 4 * std::log2(1.0 + static_cast<double>(lines.k)));
    }
    std::unique_ptr<Launch> build(ContextImpl& context, const Problem& problem,
                                  const Tuning&) const override {
        auto launch = std::make_unique<KernelLaunch>();
        if (problem.outputs[0].shape.empty()) return launch;
        const DType dtype = problem.inputs[0].dtype;
        const Lines lines(problem.attrs, problem.inputs[0].shape);
        const KeyForm form(dtype);
        const MergeSort sort = sort_of(problem, lines);
        const std::size_t bytes = size_of(dtype);
        const auto number = [](std::uint64_t bits) { return cat(bits, "UL"); };
        const std::string options =
            cat("-DT=", raw_type(bytes), " -DKEY=", key_bytes(dtype) == 8 ? "ulong" : "uint",
                " -DSIGN=", number(form.sign), " -DINFINITE=", number(form.infinity),
                " -DALL=", number(form.all), " -DLARGEST=", lines.largest ? 1 : 0);
        const auto program = context.build({source, kernel_source(source), options});
        constexpr int workspace = 3;
        const std::int64_t elements = lines.count() * lines.length;
        KernelCall make(program, "make_keys", line_range(context.traits(), elements));
        make.tensor("x", 0, bytes);
        make.tensor_at("keys", workspace, sort.first_keys(), key_bytes(dtype));
        make.scalar("count", elements).scalar("length", lines.length).scalar("inner", lines.inner);
        launch->add(std::move(make));
        sort.add_calls(*launch, context, workspace, 0);
        const std::int64_t results = lines.count() * lines.k;
        KernelCall take(program, "take_values", line_range(context.traits(), results));
        take.tensor("x", 0, bytes).tensor("values", 1, bytes).tensor("positions", 2, 8);
        take.tensor_at("sorted", workspace, sort.sorted_positions());
        take.scalar("count", results).scalar("length", lines.length);
        take.scalar("inner", lines.inner).scalar("k", lines.k);
        launch->add(std::move(take));
        return launch;
    }
    std::vector<std::string> sources() const override { return {source, merge_sort_source}; }
};

}  // namespace

void add_reference_engine(EngineRegistry& engines) {
    engines.add(std::make_unique<Reference>());
}

}  // namespace dlprim::topk
