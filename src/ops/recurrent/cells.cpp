// SPDX-License-Identifier: MIT
// LSTM (Hochreiter and Schmidhuber 1997) and GRU (Cho et al. 2014, in the form of cuDNN and
// PyTorch, where the reset gate multiplies the hidden product): one time step as nodes.
#include "ops/recurrent/recurrent.hpp"

namespace dlprim::recurrent {

namespace {

// The sigmoid is computed by tanh, whose derivative is finite everywhere.
const char* const lstm_cell =
    "i = 0.5 + 0.5 * tanh(0.5 * x0); f = 0.5 + 0.5 * tanh(0.5 * x1); o = 0.5 + 0.5 * tanh(0.5 * "
    "x3);"
    "c = f * x4 + i * tanh(x2); y0 = o * tanh(c); y1 = c";
const char* const gru_cell =
    "r = 0.5 + 0.5 * tanh(0.5 * (x0 + x3)); z = 0.5 + 0.5 * tanh(0.5 * (x1 + x4)); n = tanh(x2 + r "
    "* x5);"
    "y0 = n + z * (x6 - n)";

class Lstm : public DeclaredOperator<ops::LSTM, Recurrent> {
  protected:
    int gates() const override { return 4; }
    int states() const override { return 2; }
    void step(Graph& graph, Step& step) const override {
        const ValueId product =
            graph.add1("MatMul", step.name + "/hidden", {step.states[0], step.weight_hh},
                       Attrs{{"transpose_b", true}});
        const ValueId sum =
            graph.pointwise1(step.name + "/sum", "y0 = x0 + x1", {product, step.projected});
        std::vector<ValueId> operands =
            graph.add("Split", step.name + "/gates", {sum},
                      Attrs{{"dim", std::int64_t{1}}, {"parts", std::int64_t{4}}});
        operands.push_back(step.states[1]);
        step.states = graph.pointwise(step.name + "/cell", lstm_cell, operands);
    }
};

class Gru : public DeclaredOperator<ops::GRU, Recurrent> {
  protected:
    int gates() const override { return 3; }
    int states() const override { return 1; }
    void step(Graph& graph, Step& step) const override {
        std::vector<ValueId> product{step.states[0], step.weight_hh};
        if (step.bias_hh != no_value) product.push_back(step.bias_hh);
        const ValueId hidden =
            graph.add1("MatMul", step.name + "/hidden", product,
                       Attrs{{"transpose_b", true}, {"bias", step.bias_hh != no_value}});
        const Attrs thirds{{"dim", std::int64_t{1}}, {"parts", std::int64_t{3}}};
        std::vector<ValueId> operands =
            graph.add("Split", step.name + "/input_gates", {step.projected}, thirds);
        for (ValueId piece : graph.add("Split", step.name + "/hidden_gates", {hidden}, thirds))
            operands.push_back(piece);
        operands.push_back(step.states[0]);
        step.states = graph.pointwise(step.name + "/cell", gru_cell, operands);
    }
};

}  // namespace

std::unique_ptr<Operator> make_lstm() {
    return std::make_unique<Lstm>();
}
std::unique_ptr<Operator> make_gru() {
    return std::make_unique<Gru>();
}

}  // namespace dlprim::recurrent
