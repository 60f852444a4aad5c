// SPDX-License-Identifier: MIT
// Resize: images of one to three dimensions in another size, by interpolation along each dimension.
// Its gradient is computed per input element, so that it is deterministic.
#pragma once

#include "graph/operator.hpp"

namespace dlprim::resize {

void oracle(OracleCall& call);
void oracle_backward(OracleBackwardCall& call);

}  // namespace dlprim::resize
