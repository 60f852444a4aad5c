// SPDX-License-Identifier: MIT
// PointwiseRows: shape rule and registration.
#include "ops/pointwise_rows/operator.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim::pointwise_rows {

namespace {

class PointwiseRows final : public InternalOperator<Options> {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    int max_inputs() const override { return 64; }
    int outputs(const Attrs& attrs) const override {
        return static_cast<int>(attrs.ints("results").size());
    }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape whole = whole_shape(inputs);
        require(whole.rank() == 2, "inputs of shape ", whole, " are not those of a matrix");
        const pointwise::RowProgram program = pointwise::read_rows(attrs, inputs.size());
        const Strings dtypes = attrs.texts("dtypes");
        require(dtypes.size() == program.results.size(), "there are ", program.results.size(),
                " results and ", dtypes.size(), " types");
        std::vector<TensorSpec> specs;
        for (std::size_t k = 0; k < dtypes.size(); ++k)
            specs.push_back(
                {program.results[k].wide ? whole : Shape{whole[0], 1}, parse_dtype(dtypes[k])});
        return specs;
    }
    /// An element of an input is read for the last time just before that of a result is written.
    std::vector<std::pair<int, int>> in_place(const Node& node) const override {
        const pointwise::RowProgram program = pointwise::read_rows(node.attrs, node.inputs.size());
        std::vector<std::pair<int, int>> pairs;
        for (std::size_t k = 0; k < program.results.size(); ++k)
            for (std::size_t i = 0; program.results[k].wide && i < node.inputs.size(); ++i)
                pairs.emplace_back(static_cast<int>(k), static_cast<int>(i));
        return pairs;
    }
};

}  // namespace

Shape whole_shape(std::span<const TensorSpec> inputs) {
    std::vector<Shape> shapes;
    for (const TensorSpec& input : inputs) shapes.push_back(input.shape);
    return pointwise::broadcast_shape(shapes, {});
}

void register_pointwise_rows(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<PointwiseRows>());
    add_generated_engine(engines);
    add_host_engine(engines);
}

}  // namespace dlprim::pointwise_rows
