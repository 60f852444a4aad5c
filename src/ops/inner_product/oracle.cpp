// SPDX-License-Identifier: MIT
// InnerProduct in plain loops, in double.
#include "engine/activations.hpp"
#include "ops/inner_product/operator.hpp"
#include "ops/inner_product/options.hpp"

namespace dlprim::inner_product {

namespace {

struct Sizes {
    std::size_t rows, inputs, outputs;
};
Sizes sizes_of(const Options& options, const HostArray& x, const HostArray& weight) {
    return {static_cast<std::size_t>(options.rows(x.shape)[0]),
            static_cast<std::size_t>(weight.shape[1]), static_cast<std::size_t>(weight.shape[0])};
}

/// Element (row, column) before the activation.
double linear(const std::vector<HostArray>& in, const Options& options, const Sizes& s,
              std::size_t row, std::size_t column) {
    double sum = options.bias ? in[2].data[column] : 0;
    for (std::size_t i = 0; i < s.inputs; ++i)
        sum += in[0].data[row * s.inputs + i] * in[1].data[column * s.inputs + i];
    return sum;
}

}  // namespace

void Operator::oracle(OracleCall& call) const {
    const Options options = Options::read(call.attrs);
    const Sizes s = sizes_of(options, call.inputs[0], call.inputs[1]);
    HostArray& y = call.outputs[0];
    y.shape = options.output(call.inputs[0].shape);
    y.data.resize(s.rows * s.outputs);
    for (std::size_t row = 0; row < s.rows; ++row)
        for (std::size_t column = 0; column < s.outputs; ++column) {
            double v = linear(call.inputs, options, s, row, column);
            if (options.has_activation()) {
                const Activation& f = find_activation(options.activation);
                v = activate(f.name, v, f.alpha, f.beta);
            }
            y.data[row * s.outputs + column] = v;
        }
}

void Operator::oracle_backward(OracleBackwardCall& call) const {
    const Options options = Options::read(call.attrs);
    const Sizes s = sizes_of(options, call.inputs[0], call.inputs[1]);
    call.input_gradients.resize(call.inputs.size());
    for (std::size_t i = 0; i < call.inputs.size(); ++i) {
        call.input_gradients[i].shape = call.inputs[i].shape;
        call.input_gradients[i].data.assign(call.inputs[i].data.size(), 0);
    }
    for (std::size_t row = 0; row < s.rows; ++row)
        for (std::size_t column = 0; column < s.outputs; ++column) {
            double g = call.output_gradients[0].data[row * s.outputs + column];
            if (options.has_activation()) {
                const Activation& f = find_activation(options.activation);
                g *= activate_gradient(f.name, linear(call.inputs, options, s, row, column),
                                       f.alpha, f.beta);
            }
            if (options.bias) call.input_gradients[2].data[column] += g;
            for (std::size_t i = 0; i < s.inputs; ++i) {
                call.input_gradients[0].data[row * s.inputs + i] +=
                    g * call.inputs[1].data[column * s.inputs + i];
                call.input_gradients[1].data[column * s.inputs + i] +=
                    g * call.inputs[0].data[row * s.inputs + i];
            }
        }
}

}  // namespace dlprim::inner_product
