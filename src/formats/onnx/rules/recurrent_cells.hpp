// SPDX-License-Identifier: MIT
// One time step of RNN, LSTM and GRU by ONNX's definition, with its activation functions, clipping
// and peepholes, as operators of the network.
#pragma once

#include "formats/onnx/rules/exact_products.hpp"

#include <optional>
#include <string>
#include <vector>

namespace dlprim::onnx {

/// What functions of ONNX's recurrent operators become: program text around the text of a value,
/// for which @ stands.
using GateFunction = std::string;

/// The functions that attributes activations, activation_alpha and activation_beta name for all
/// directions; `defaults` where they name none. `clip` bounds what those of gates are applied to.
std::vector<GateFunction> read_gate_functions(Call& call, std::vector<std::string> defaults,
                                              int directions);
/// The function of a name in the program.
std::string applied(const GateFunction& function, std::string_view name);

/// Weights [features, gates * hidden] as integers of a scale, for all columns or for each.
struct IntegerWeights {
    Factor values;
    Ref scale;
};

/// What all steps of a direction share. Weights are [gates * hidden, hidden].
struct Cell {
    enum class Kind { rnn, lstm, gru };
    Kind kind = Kind::rnn;
    std::int64_t hidden = 0;
    std::vector<GateFunction> functions;
    Ref weights = nullptr;
    Ref bias = nullptr;          ///< GRU with linear_before_reset: [3 * hidden]
    std::vector<Ref> peepholes;  ///< LSTM: of i, o and f, [hidden] each; or none
    Ref lengths = nullptr;       ///< [batch, 1]: steps from a sequence's length on change nothing
    bool couples_forget = false, linear_before_reset = false;
    /// LSTM with weights of integers: the state is quantised by its own range, too.
    std::optional<IntegerWeights> integers;

    int gates() const { return kind == Kind::rnn ? 1 : kind == Kind::lstm ? 4 : 3; }
};

/// The states [batch, hidden] that a step replaces; null where they are zero.
struct CellState {
    Ref h = nullptr, c = nullptr;
};

/// Step `t`: from the projected input [batch, gates * hidden], with all biases but Cell::bias.
/// Returns the step's output, which is zero for sequences that have ended.
Ref run_cell(Builder& build, const Cell& cell, Ref projected, std::int64_t t, CellState& state);

}  // namespace dlprim::onnx
