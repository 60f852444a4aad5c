// SPDX-License-Identifier: MIT
// Recurrent: what LSTM and GRU share: options, parameters, shapes, and unrolling over layers,
// directions and time into other nodes. Shapes, options, and the order of parameters and gates are
// PyTorch's:
//   x [T, N, in] (or [N, T, in] with batch_first), optional h0 (and c0 of LSTM) [layers *
//   directions, N, hidden]
//   -> y [T, N, directions * hidden], h_n (and c_n)
//   parameters per layer and direction: weight_ih [gates * hidden, in], weight_hh [gates * hidden,
//   hidden], and with bias bias_ih and bias_hh [gates * hidden]
#pragma once

#include "graph/declared_operator.hpp"

namespace dlprim::recurrent {

/// GRU has the same. `dropout` is that between layers, and `stream` that of the first layer's
/// dropout; later layers count up from it.
struct Options : ops::LSTM {
    static Options read(const Attrs& attrs) { return {dlprim::read<ops::LSTM>(attrs)}; }
    std::int64_t directions() const { return bidirectional ? 2 : 1; }
    /// Options of the Dropout after this layer, which is not the last.
    Attrs dropout_behind(std::int64_t layer) const {
        return {{"p", dropout}, {"stream", stream < 0 ? stream : stream + layer}};
    }
    std::int64_t runs() const { return num_layers * directions(); }
    std::size_t params_a_run() const { return bias ? 4 : 2; }
};

/// The values that a step of one layer and direction uses.
struct Step {
    std::string name;
    ValueId projected;  ///< [N, gates * hidden]: x W_ih^T + b_ih (LSTM: + b_hh)
    ValueId weight_hh;
    ValueId bias_hh = no_value;   ///< GRU with bias
    std::vector<ValueId> states;  ///< h (and c), [N, hidden]; the step replaces them
};

class Recurrent : public Operator {
  public:
    int min_inputs() const override { return 1; }
    int max_inputs() const override { return 1 + states(); }
    int outputs(const Attrs&) const override { return 1 + states(); }
    std::vector<ParamSpec> params(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override;
    bool expand(Graph& graph, const Node& node, std::vector<ValueId>& outputs) const override;
    double flops(const Attrs& attrs, std::span<const TensorSpec> inputs,
                 std::span<const TensorSpec> outputs) const override;
    void oracle(OracleCall& call) const override;
    void oracle_backward(OracleBackwardCall& call) const override;

  protected:
    virtual int gates() const = 0;   ///< 4 (LSTM: i, f, g, o), 3 (GRU: r, z, n)
    virtual int states() const = 0;  ///< 2 (h, c), 1 (h)
    /// Whether b_hh can be added to the projection together with b_ih.
    bool joins_biases() const { return states() == 2; }
    virtual void step(Graph& graph, Step& step) const = 0;
};

/// The number of input tensors (x and initial states) among a node's inputs.
std::size_t tensors_among(const Options& options, std::size_t inputs);

std::unique_ptr<Operator> make_lstm();
std::unique_ptr<Operator> make_gru();

}  // namespace dlprim::recurrent
