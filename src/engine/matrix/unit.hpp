// SPDX-License-Identifier: MIT
// The matrix units of NVIDIA's tensor cores for which engines are written; see
// kernels/matrix/unit.clh. An engine is registered once for each unit, and applies to devices that
// have this unit.
#pragma once

#include "engine/engine.hpp"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace dlprim {

enum class MatrixUnit {
    wgmma,  ///< instructions of a warpgroup
    mma     ///< instructions of a warp
};
constexpr MatrixUnit matrix_units[] = {MatrixUnit::wgmma, MatrixUnit::mma};

/// Returns the unit as it appears in engines' names: "wgmma" or "mma".
std::string_view name_of(MatrixUnit unit);
/// Returns yes if the device has the unit and its instructions for each of `types` work there; else
/// no, with the reason. `types` are the types that the kernel multiplies, and those to which it
/// rounds results with the unit's conversions. Types other than f16 and bf16 need no instructions.
Verdict unit_verdict(MatrixUnit unit, const Traits& device, std::initializer_list<DType> types);
/// Returns the option with which kernels are compiled for the unit.
std::string unit_option(MatrixUnit unit);
/// Returns how much local memory a work-group may have, in bytes.
std::int64_t unit_local_bytes(MatrixUnit unit, const Traits& device);
/// Returns the time of a step divided by wgmma's.
double unit_pace(MatrixUnit unit);

}  // namespace dlprim
