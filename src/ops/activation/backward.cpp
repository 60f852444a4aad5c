// SPDX-License-Identifier: MIT
// ActivationBackward: the gradient of an activation from its result, for programs that keep that
// themselves.
#include "base/text.hpp"
#include "engine/pointwise/program.hpp"
#include "graph/lowering.hpp"
#include "graph/oracle_loops.hpp"
#include "ops/activation/operator.hpp"
#include "ops/activation/options.hpp"

namespace dlprim::activation {

namespace {

/// Inputs: dy and the activation's result y. Output: dx.
class ActivationBackward final : public Operator {
  public:
    std::string_view type() const override { return "ActivationBackward"; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    const Schema& schema() const override {
        return OperatorRegistry::instance().get("Activation").schema();
    }
    int min_inputs() const override { return 2; }
    int max_inputs() const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        expression(Options(attrs));
        require(is_float(inputs[0].dtype), "dy has dtype ", name_of(inputs[0].dtype),
                ", a float type is needed");
        require(inputs[0].shape == inputs[1].shape, "dy has shape ", inputs[0].shape.str(),
                ", the result has ", inputs[1].shape.str());
        return {inputs[0]};
    }
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override {
        const Options options(node.attrs);
        const std::string text = expression(options);
        outputs = {graph.pointwise1(node.name, "y0 = " + text, node.inputs,
                                    scalars_of(text, {options.alpha}))};
        return true;
    }
    void oracle(OracleCall& call) const override {
        const Options options(call.attrs);
        const HostArray &dy = call.inputs[0], &y = call.inputs[1];
        const auto program = pointwise::parse("y0 = " + expression(options));
        HostArray& dx = make_array(call.outputs, 0, y.shape, dy.dtype);
        for (std::size_t i = 0; i < dx.data.size(); ++i)
            dx.data[i] = pointwise::evaluate(program.outputs[0].value, {dy.data[i], y.data[i]},
                                             {options.alpha}, {}, Shape{});
    }

  private:
    static std::string expression(const Options& options) {
        const std::string& name = options.function->name;
        if (name == "identity") return "x0";
        const auto text = gradient_from_output(name, options.alpha);
        require(text.has_value(), "the gradient of ", name,
                " does not follow from its result; backward() of Activation computes it from the "
                "input");
        return *text;
    }
};

}  // namespace

std::unique_ptr<Operator> make_backward() {
    return std::make_unique<ActivationBackward>();
}

}  // namespace dlprim::activation
