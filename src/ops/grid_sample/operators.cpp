// SPDX-License-Identifier: MIT
// GridSample and its gradients as operators: options, shapes, gradient rule.
#include "ops/grid_sample/operators.hpp"

#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "ops/grid_sample/engines.hpp"

namespace dlprim::grid_sample {

namespace {

struct BackwardDataOptions : WithSizes<ops::GridSample> {
    static constexpr std::string_view type = backward_data_type;
};
struct BackwardGridOptions : ops::GridSample {
    static constexpr std::string_view type = backward_grid_type;
};

class Forward : public DeclaredOperator<ops::GridSample> {
  public:
    int min_inputs() const override { return 2; }
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::wide; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Options options(attrs);
        const TensorSpec &x = inputs[0], &grid = inputs[1];
        require(x.shape.rank() == 4, "images ", x.shape, " are not [N, C, H, W]");
        require(grid.shape.rank() == 4 && grid.shape[3] == 2 && grid.shape[0] == x.shape[0],
                "places ", grid.shape, " are not [N, h, w, 2] for images ", x.shape);
        require(x.shape[2] > 0 && x.shape[3] > 0, "images ", x.shape, " have no elements");
        require(is_float(x.dtype) && grid.dtype == x.dtype,
                "images and places must be of one float type, got ", name_of(x.dtype), " and ",
                name_of(grid.dtype));
        return {{Shape{x.shape[0], x.shape[1], grid.shape[1], grid.shape[2]}, x.dtype}};
    }
    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        Graph& graph = context.graph;
        const Node& node = context.node;
        const ValueId x = node.inputs[0], grid = node.inputs[1];
        if (context.wanted[0]) {
            Attrs attrs = node.attrs;
            attrs.set("sizes", graph.shape(x).to_vector());
            context.input_gradients[0] =
                graph.add1(backward_data_type, node.name + "/backward_data", {dy, grid}, attrs);
        }
        if (context.wanted[1])
            context.input_gradients[1] = graph.add1(
                backward_grid_type, node.name + "/backward_grid", {dy, x, grid}, node.attrs);
    }
    void oracle(OracleCall& call) const override { grid_sample::oracle(call); }
    void oracle_backward(OracleBackwardCall& call) const override {
        grid_sample::oracle_backward(call);
    }
};

/// dy, grid -> dx.
class BackwardData : public InternalOperator<BackwardDataOptions> {
  public:
    int min_inputs() const override { return 2; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        return {{Shape(attrs.ints("sizes")), inputs[0].dtype}};
    }
};

/// dy, x, grid -> dgrid.
class BackwardGrid : public InternalOperator<BackwardGridOptions> {
  public:
    int min_inputs() const override { return 3; }
    std::vector<TensorSpec> infer(const Attrs&, std::span<const TensorSpec> inputs) const override {
        return {inputs[2]};
    }
};

}  // namespace

Options::Options(const Attrs& attrs)
    : mode(chosen<Mode, &ops::GridSample::mode>(attrs)),
      padding(chosen<Padding, &ops::GridSample::padding_mode>(attrs)),
      align_corners(attrs.boolean("align_corners")) {}

void register_grid_sample(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Forward>());
    operators.add(std::make_unique<BackwardData>());
    operators.add(std::make_unique<BackwardGrid>());
    add_host_engines(engines);
    add_reference_engines(engines);
}

}  // namespace dlprim::grid_sample
