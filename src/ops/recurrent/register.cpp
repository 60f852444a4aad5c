// SPDX-License-Identifier: MIT
// Registers LSTM and GRU.
#include "ops/recurrent/recurrent.hpp"

namespace dlprim::recurrent {

void register_recurrent(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(make_lstm());
    operators.add(make_gru());
}

}  // namespace dlprim::recurrent
