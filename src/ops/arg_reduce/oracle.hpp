// SPDX-License-Identifier: MIT
// ArgReduce's oracles: the definition in naive loops.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::arg_reduce {

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::arg_reduce
