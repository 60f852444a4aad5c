// SPDX-License-Identifier: MIT
// Instructions of NVIDIA's sm_90a in OpenCL C.
//
// The driver compiles OpenCL C for sm_90 and hands out PTX as the program's binary. A kernel holds
// instructions of the "a" target in inline PTX behind a mark that makes comments of them
// (kernels/common/wgmma.clh); here the marks are taken out and the target is renamed, and the
// driver assembles the result as any binary.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlprim {

/// Whether the text, OpenCL C or PTX, has marked instructions.
bool wants_ptx_target(std::string_view source);
/// The PTX with its marks taken out, for sm_90a; nothing when this is not PTX for sm_90.
std::optional<std::string> with_ptx_target(std::string ptx);

}  // namespace dlprim
