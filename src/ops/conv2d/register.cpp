// SPDX-License-Identifier: MIT
// Registers the operators of convolution and their engines, the preferred first.
#include "engine/engine.hpp"
#include "ops/conv2d/engines.hpp"
#include "ops/conv2d/host/host_double.hpp"
#include "ops/conv2d/operators.hpp"

namespace dlprim::conv2d {

void register_conv2d(OperatorRegistry& operators, EngineRegistry& engines) {
    for (const bool transposed : {false, true}) operators.add(make_convolution(transposed));
    operators.add(make_backward_data());
    operators.add(make_backward_filter());
    for (const bool backward : {false, true}) operators.add(make_depth_taps(backward));
    add_depth_taps_host_engines(engines);
    add_depth_taps_reference_engines(engines);
    add_host_engines(engines);
    add_host_double_engines(engines);
    add_blocked_depthwise_engines(engines);
    add_blocked_first_engine(engines);
    add_blocked_winograd_engines(engines);
    add_blocked_engines(engines);
    add_blocked_winograd_filter_engine(engines);
    add_blocked_filter_engines(engines);
    add_depthwise_engines(engines);
    add_window_engine(engines);
    add_narrow_engine(engines);
    add_depthwise_last_engines(engines);
    add_stored16_first_engines(engines);
    add_stored16_engines(engines);
    add_stored16_filter_engine(engines);
    add_planes_engines(engines);
    add_inner_product_engine(engines);
    add_split_engines(engines);
    add_split_filter_engine(engines);
    add_planes_filter_engine(engines);
    add_winograd_engines(engines);
    add_implicit_gemm_engines(engines);
    add_implicit_gemm_filter_engine(engines);
    add_reference_engines(engines);
}

}  // namespace dlprim::conv2d
