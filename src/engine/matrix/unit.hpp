// SPDX-License-Identifier: MIT
// The units that engines on NVIDIA's tensor cores may be written for:
// kernels/matrix/unit.clh. An engine is registered once for each, and applies where the
// device has that one.
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

/// As engines' names have it: "wgmma", "mma".
std::string_view name_of(MatrixUnit unit);
/// No, with the reason, unless the device has them and those for each of `types` work there: what
/// the kernel multiplies, and what it rounds results to by the unit's conversions. Other types than
/// f16 and bf16 need none.
Verdict unit_verdict(MatrixUnit unit, const Traits& device, std::initializer_list<DType> types);
/// The option with which kernels are built for it.
std::string unit_option(MatrixUnit unit);
/// Local memory that a work-group may have.
std::int64_t unit_local_bytes(MatrixUnit unit, const Traits& device);
/// A step's time over wgmma's.
double unit_pace(MatrixUnit unit);

}  // namespace dlprim
