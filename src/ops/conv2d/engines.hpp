// SPDX-License-Identifier: MIT
// The engines of the folder, one function a file that registers what it holds.
#pragma once

#include "engine/engine.hpp"

namespace dlprim::conv2d {

void add_host_engines(EngineRegistry& registry);                 ///< host.cpp
void add_blocked_engines(EngineRegistry& registry);              ///< blocked.cpp
void add_blocked_first_engine(EngineRegistry& registry);         ///< blocked_first.cpp
void add_blocked_winograd_engines(EngineRegistry& registry);     ///< blocked_winograd.cpp
void add_blocked_filter_engines(EngineRegistry& registry);       ///< blocked_filter.cpp
void add_blocked_depthwise_engines(EngineRegistry& registry);    ///< blocked_depthwise.cpp
void add_winograd_engines(EngineRegistry& registry);             ///< winograd.cpp
void add_implicit_gemm_engines(EngineRegistry& registry);        ///< implicit_gemm.cpp
void add_implicit_gemm_filter_engine(EngineRegistry& registry);  ///< implicit_gemm_filter.cpp
void add_wgmma_split_engines(EngineRegistry& registry);          ///< wgmma_split.cpp
void add_wgmma_window_engine(EngineRegistry& registry);          ///< wgmma_window.cpp
void add_wgmma_narrow_engine(EngineRegistry& registry);          ///< wgmma_narrow.cpp
void add_wgmma_planes_engines(EngineRegistry& registry);         ///< wgmma_planes.cpp
void add_wgmma_split_filter_engine(EngineRegistry& registry);    ///< wgmma_split_filter.cpp
void add_inner_product_engine(EngineRegistry& registry);         ///< inner_product.cpp
void add_wgmma_half_engines(EngineRegistry& registry);           ///< wgmma_half.cpp
void add_wgmma_half_filter_engine(EngineRegistry& registry);     ///< wgmma_half_filter.cpp
void add_wgmma_half_first_engines(EngineRegistry& registry);     ///< wgmma_half_first.cpp
void add_depthwise_engines(EngineRegistry& registry);            ///< depthwise.cpp
void add_depthwise_last_engines(EngineRegistry& registry);       ///< depthwise_last.cpp
void add_reference_engines(EngineRegistry& registry);            ///< reference.cpp

}  // namespace dlprim::conv2d
