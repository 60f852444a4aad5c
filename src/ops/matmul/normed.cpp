// SPDX-License-Identifier: MIT
// NormedProduct as an operator: shapes, nominal operations, oracle.
#include "ops/matmul/normed.hpp"

#include "base/blocks.hpp"
#include "base/text.hpp"
#include "engine/activations.hpp"
#include "graph/block_oracle.hpp"
#include "graph/declared_operator.hpp"

#include <cmath>

namespace dlprim::matmul {

namespace {

struct NormedOptions {
    static constexpr std::string_view type = normed_type;
    std::string blocks = {}, gate = {};
    double eps = 1e-5;
    bool bias = false;
    static constexpr auto fields() {
        return ops::option_table(
            ops::option<&NormedOptions::blocks>("the type of the weights' blocks"),
            ops::option<&NormedOptions::gate>("the gate's activation; empty: there is no gate"),
            ops::option<&NormedOptions::eps>("added to the mean of squares"),
            ops::option<&NormedOptions::bias>("whether a bias is added"));
    }
};

class NormedOperator final : public InternalOperator<NormedOptions> {
  public:
    int min_inputs() const override { return 3; }
    int max_inputs() const override { return 4; }

    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const auto options = read<NormedOptions>(attrs);
        const bool gated = !options.gate.empty();
        const Shape& x = inputs[0].shape;
        require(
            x.rank() == 2 && inputs.size() == (gated || options.bias ? 4u : 3u) &&
                !(gated && options.bias),
            "takes a matrix, a weight, a bias or none, a scale and, with a gate, another weight");
        const Shape weight = inputs[1].shape;
        const TensorSpec blocks{block_shape(block_type(options.blocks), weight[0], x[1]),
                                DType::u8};
        require(inputs[1] == blocks, "weight ", weight, " does not fit input ", x);
        if (options.bias)
            require(inputs[2].shape == Shape{weight[0]}, "bias ", inputs[2].shape,
                    " does not fit weight ", weight);
        if (gated)
            require(inputs[3] == blocks, "other weight ", inputs[3].shape, " is not like weight ",
                    weight);
        const Shape& scale = inputs[options.bias ? 3 : 2].shape;
        require(scale == Shape{x[1]}, "scale ", scale, " does not fit input ", x);
        return {{Shape{x[0], weight[0]}, inputs[0].dtype}};
    }
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override {
        const int products = attrs.text("gate").empty() ? 1 : 2;
        return 2.0 * products * static_cast<double>(outputs[0].shape.numel()) *
               static_cast<double>(inputs[0].shape[1]);
    }
    void oracle(OracleCall& call) const override {
        const auto options = read<NormedOptions>(call.attrs);
        const HostArray& x = call.inputs[0];
        const HostArray& scale = call.inputs[options.bias ? 3 : 2];
        const auto rows = static_cast<std::size_t>(x.shape[0]),
                   features = static_cast<std::size_t>(x.shape[1]);
        std::vector<double> normed(x.data.size());
        for (std::size_t row = 0; row < rows; ++row) {
            double squares = 0;
            for (std::size_t i = 0; i < features; ++i)
                squares += x.data[row * features + i] * x.data[row * features + i];
            const double root = std::sqrt(squares / static_cast<double>(features) + options.eps);
            for (std::size_t i = 0; i < features; ++i)
                normed[row * features + i] = x.data[row * features + i] * scale.data[i] / root;
        }
        const HostArray weight = unpacked_weights(options.blocks, call.inputs[1]);
        const auto columns = static_cast<std::size_t>(weight.shape[0]);
        const auto product = [&](const HostArray& by, std::size_t row, std::size_t column) {
            double sum = 0;
            for (std::size_t i = 0; i < features; ++i)
                sum += normed[row * features + i] * by.data[column * features + i];
            return sum;
        };
        HostArray other;
        if (!options.gate.empty()) other = unpacked_weights(options.blocks, call.inputs[3]);
        HostArray& y = call.outputs[0];
        y.shape = Shape{x.shape[0], weight.shape[0]};
        y.data.resize(rows * columns);
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t column = 0; column < columns; ++column) {
                double v = product(weight, row, column);
                if (options.bias) v += call.inputs[2].data[column];
                if (!options.gate.empty()) {
                    const Activation& f = find_activation(options.gate);
                    v = activate(f.name, v, f.alpha, f.beta) * product(other, row, column);
                }
                y.data[row * columns + column] = v;
            }
    }
};

}  // namespace

Normed::Normed(const Problem& problem) {
    if (problem.op != normed_type) return;
    const auto options = read<NormedOptions>(problem.attrs);
    scale = options.bias ? 3 : 2;
    eps = options.eps;
    if (options.gate.empty()) return;
    other = 3;
    const Activation& f = find_activation(options.gate);
    gate.push_back({EpilogueStage::Kind::activation, -1, f.name, f.alpha, f.beta});
}

void normalize_row(const float* x, const float* scale, std::int64_t features, double eps,
                   float* y) {
    double squares = 0;
    for (std::int64_t i = 0; i < features; ++i) squares += static_cast<double>(x[i]) * x[i];
    const auto factor =
        static_cast<float>(1 / std::sqrt(squares / static_cast<double>(features) + eps));
    for (std::int64_t i = 0; i < features; ++i) y[i] = x[i] * scale[i] * factor;
}

std::unique_ptr<Operator> make_normed() {
    return std::make_unique<NormedOperator>();
}

}  // namespace dlprim::matmul
