// SPDX-License-Identifier: MIT
// Convolutions as problems, with the oracle's results.
#include "engine_check.hpp"

namespace dlprim::conv2d {

using testing::normals;
using testing::problem_of;

namespace {

/// The attributes of a gradient's problem, made from those of the convolution.
Attrs gradient_attrs(const Attrs& attrs, const char* name, const Shape& shape) {
    Attrs kept;
    for (const char* option : {"groups", "kernel", "stride", "pad", "dilate"})
        kept.set(option, attrs.at(option));
    return kept.set(name, shape.to_vector());
}

}  // namespace

Example::Example(const std::string& name, const Attrs& options, const Shape& input, unsigned seed,
                 DType dtype) {
    const Operator& op = OperatorRegistry::instance().get("Convolution");
    attrs = op.schema().complete(options, name);
    attrs.set("activation", std::string("identity"));
    std::vector<TensorSpec> specs{{input, DType::f32}};
    for (const ParamSpec& param : op.params(attrs, specs)) specs.push_back(param.spec);
    std::mt19937 random(seed);
    x = normals(input, random, dtype);
    weight = normals(specs[1].shape, random);
    bias = normals(Shape{weight.shape[0]}, random);
    dy = normals(op.infer(attrs, specs)[0].shape, random, dtype);
    ask_oracle();
}

void Example::ask_oracle() {
    const Operator& op = OperatorRegistry::instance().get("Convolution");
    OracleCall call{attrs, false, operands(), std::vector<HostArray>(1), {}};
    op.oracle(call);
    y = call.outputs[0];
    OracleBackwardCall back{attrs, false, operands(), {y}, {dy}, {}, 0, 0, {}};
    op.oracle_backward(back);
    dx = back.input_gradients[0];
    dweight = back.input_gradients[1];
}

Problem Example::forward() const {
    std::vector<Shape> shapes;
    for (const HostArray& operand : operands()) shapes.push_back(operand.shape);
    return problem_of(forward_type, attrs, shapes, y.shape);
}

Problem Example::backward_data() const {
    return problem_of(backward_data_type, gradient_attrs(attrs, "input_shape", x.shape),
                      {y.shape, weight.shape}, x.shape);
}

Problem Example::backward_filter() const {
    return problem_of(backward_filter_type, gradient_attrs(attrs, "weight_shape", weight.shape),
                      {x.shape, y.shape}, weight.shape);
}

std::vector<HostArray> Example::operands() const {
    if (attrs.boolean("bias")) return {x, weight, bias};
    return {x, weight};
}

void Example::check_forward(const Context& context) const {
    for (const bool constant : {false, true}) {
        Problem problem = forward();
        problem.inputs[1].constant = constant;
        problem.phase = constant ? Phase::inference : Phase::training;
        testing::check_engines(context, problem, operands(), y.data);
    }
}

}  // namespace dlprim::conv2d
