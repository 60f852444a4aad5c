// SPDX-License-Identifier: MIT
// Scan as an operator: options and shapes.
#include "ops/scan/operator.hpp"

#include "graph/declared_operator.hpp"
#include "ops/scan/gradient.hpp"
#include "ops/scan/options.hpp"

namespace dlprim::scan {

namespace {

class Scan : public DeclaredOperator<ops::Scan> {
  public:
    /// The gradients of products and logarithms are several nodes, between which nothing is
    /// rounded.
    FloatTypes float_types(const Attrs& attrs) const override {
        const Method method = method_of(attrs);
        const bool is_hard = method == Method::prod || method == Method::logsumexp;
        return is_hard ? FloatTypes::wide : FloatTypes::all;
    }
    int outputs(const Attrs& attrs) const override {
        const Method method = method_of(attrs);
        return method == Method::max || method == Method::min ? 2 : 1;
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Options options(attrs, inputs[0].shape, inputs[0].dtype);
        std::vector<TensorSpec> made{{inputs[0].shape, options.result}};
        if (options.has_positions()) made.push_back({inputs[0].shape, DType::i64});
        return made;
    }

    void gradient(GradientContext& context) const override { add_gradient(context); }

    void oracle(OracleCall& call) const override { scan::oracle(call); }
    void oracle_backward(OracleBackwardCall& call) const override { scan::oracle_backward(call); }
};

}  // namespace

void register_scan(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Scan>());
    add_host_engine(engines);
    add_reference_engine(engines);
}

}  // namespace dlprim::scan
