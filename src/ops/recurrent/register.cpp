// SPDX-License-Identifier: MIT
// Registers LSTM and GRU.
#include "ops/recurrent/recurrent.hpp"

namespace dlprim {

void register_recurrent(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(recurrent::make_lstm());
    operators.add(recurrent::make_gru());
}

}  // namespace dlprim
