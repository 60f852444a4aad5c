// SPDX-License-Identifier: MIT
// Matrix units: names, verdicts, compiler options, local memory, and speed relative to each other.
#include "engine/matrix/unit.hpp"

#include "base/text.hpp"

namespace dlprim {

std::string_view name_of(MatrixUnit unit) {
    return unit == MatrixUnit::wgmma ? "wgmma" : "mma";
}

Verdict unit_verdict(MatrixUnit unit, const Traits& device, std::initializer_list<DType> types) {
    if (!(unit == MatrixUnit::wgmma ? device.wgmma : device.mma))
        return Verdict::no(unit == MatrixUnit::wgmma
                               ? "it needs warpgroup matrix instructions, which the device lacks"
                               : "it is made for devices with warp matrix instructions but without "
                                 "warpgroup ones");
    for (const DType type : types)
        if ((type == DType::f16 && !device.matrix_fp16) ||
            (type == DType::bf16 && !device.matrix_bf16))
            return Verdict::no(cat("it needs matrix instructions for ", name_of(type),
                                   ", which did not work when the device was opened or which "
                                   "DLPRIM_TRAITS turns off"));
    return Verdict::yes();
}

std::string unit_option(MatrixUnit unit) {
    return unit == MatrixUnit::wgmma ? "" : " -DMMA=1";
}

std::int64_t unit_local_bytes(MatrixUnit unit, const Traits& device) {
    // Every device with wgmma has 227 KiB, even if its driver reports less.
    return unit == MatrixUnit::wgmma ? 227 << 10
                                     : static_cast<std::int64_t>(device.mma_local_bytes);
}

double unit_pace(MatrixUnit unit) {
    // The rate of an A100's tensor cores per compute unit, compared with an H200's.
    return unit == MatrixUnit::wgmma ? 1.0 : 2.0;
}

}  // namespace dlprim
