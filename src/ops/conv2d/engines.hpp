// SPDX-License-Identifier: MIT
// The engines of this folder. Each function registers the engines of one file.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::conv2d {

void add_host_engines(EngineRegistry& registry);              ///< host/host.cpp
void add_blocked_engines(EngineRegistry& registry);           ///< blocked/blocked.cpp
void add_blocked_first_engine(EngineRegistry& registry);      ///< blocked/blocked_first.cpp
void add_blocked_winograd_engines(EngineRegistry& registry);  ///< blocked/blocked_winograd.cpp
void add_blocked_filter_engines(EngineRegistry& registry);    ///< blocked/blocked_filter.cpp
void add_blocked_winograd_filter_engine(
    EngineRegistry& registry);  ///< blocked/blocked_winograd_filter.cpp
void add_blocked_depthwise_engines(EngineRegistry& registry);  ///< blocked/blocked_depthwise.cpp
void add_winograd_engines(EngineRegistry& registry);           ///< portable/winograd.cpp
void add_implicit_gemm_engines(EngineRegistry& registry);      ///< portable/implicit_gemm.cpp
void add_implicit_gemm_filter_engine(
    EngineRegistry& registry);                              ///< portable/implicit_gemm_filter.cpp
void add_split_engines(EngineRegistry& registry);           ///< matrix/split.cpp
void add_window_engine(EngineRegistry& registry);           ///< matrix/window.cpp
void add_narrow_engine(EngineRegistry& registry);           ///< matrix/narrow.cpp
void add_planes_engines(EngineRegistry& registry);          ///< matrix/planes.cpp
void add_split_filter_engine(EngineRegistry& registry);     ///< matrix/split_filter.cpp
void add_inner_product_engine(EngineRegistry& registry);    ///< inner_product.cpp
void add_stored16_engines(EngineRegistry& registry);        ///< matrix/stored16.cpp
void add_stored16_filter_engine(EngineRegistry& registry);  ///< matrix/stored16_filter.cpp
void add_stored16_first_engines(EngineRegistry& registry);  ///< matrix/stored16_first.cpp
void add_depthwise_engines(EngineRegistry& registry);       ///< portable/depthwise.cpp
void add_depthwise_last_engines(EngineRegistry& registry);  ///< portable/depthwise_last.cpp
void add_reference_engines(EngineRegistry& registry);       ///< portable/reference.cpp

}  // namespace dlprim::conv2d
