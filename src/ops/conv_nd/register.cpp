// SPDX-License-Identifier: MIT
// Registers ConvolutionND, TransposedConvolutionND, and DepthTaps with its engines.
#include "ops/conv_nd/operators.hpp"

namespace dlprim {

void register_conv_nd(OperatorRegistry& operators, EngineRegistry& engines) {
    for (const bool transposed : {false, true})
        operators.add(conv_nd::make_convolution(transposed));
    for (const bool backward : {false, true}) operators.add(conv_nd::make_depth_taps(backward));
    conv_nd::add_depth_taps_host_engines(engines);
    conv_nd::add_depth_taps_reference_engines(engines);
}

}  // namespace dlprim
