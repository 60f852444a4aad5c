// SPDX-License-Identifier: MIT
// Registers LSTM and GRU.
#include "ops/recurrent/recurrent.hpp"

namespace dlprim {

void register_recurrent() {
    OperatorRegistry::instance().add(recurrent::make_lstm());
    OperatorRegistry::instance().add(recurrent::make_gru());
}

}  // namespace dlprim
