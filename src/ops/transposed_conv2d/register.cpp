// SPDX-License-Identifier: MIT
// Registers TransposedConvolution2D, which has no engines of its own.
#include "ops/transposed_conv2d/operator.hpp"

namespace dlprim {

void register_transposed_conv2d(OperatorRegistry& operators, EngineRegistry&) {
    operators.add(transposed_conv2d::make_operator());
}

}  // namespace dlprim
