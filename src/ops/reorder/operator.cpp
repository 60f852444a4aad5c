// SPDX-License-Identifier: MIT
// Reorder: the same values in another layout. The planner adds it; networks do not contain it.
#include "ops/reorder/operator.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "ops/reorder/sides.hpp"

namespace dlprim::reorder {

Verdict applicable(const Problem& problem) {
    for (const Operand* operand : {&problem.inputs[0], &problem.outputs[0]}) {
        const Layout& layout = operand->layout;
        if (layout.is_strided())
            return Verdict::no("it does not address strided views, as reorder.strided does");
        if (operand->shape.rank() != 4)
            return Verdict::no(cat(
                "only tensors of 4 dimensions can be converted between layouts, and this one is ",
                operand->shape.str()));
        if (layout.kind == Layout::Kind::packed)
            return Verdict::no(cat("layout ", layout.str(),
                                   " is packed for one engine, which converts to it itself"));
        if (layout.kind == Layout::Kind::blocked && (layout.block & (layout.block - 1)) != 0)
            return Verdict::no(cat("it needs blocks whose size is a power of two, and they have ",
                                   layout.block, " channels"));
        if (operand->shape.numel() >= std::int64_t(1) << 31)
            return Verdict::no("it supports tensors of fewer than 2^31 elements only");
    }
    return Verdict::yes();
}

namespace {

struct ReorderOptions {
    static constexpr std::string_view type = reorder::type;
    static constexpr auto fields() { return ops::option_table(); }
};

class Reorder : public InternalOperator<ReorderOptions> {
  public:
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> inputs) const override {
        return {inputs[0]};
    }
    void oracle(OracleCall& call) const override { call.outputs[0] = call.inputs[0]; }
};

}  // namespace

void register_reorder(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Reorder>());
    add_host_engine(engines);
    add_generic_engine(engines);
    add_strided_engines(engines);
}

}  // namespace dlprim::reorder
