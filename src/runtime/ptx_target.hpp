// SPDX-License-Identifier: MIT
// Instructions of NVIDIA's sm_90a target in OpenCL C.
//
// The driver compiles OpenCL C for sm_90 and returns PTX as the program's binary. A kernel contains
// instructions of the "a" target in inline PTX, behind a mark that turns them into comments
// (kernels/matrix/unit_wgmma.clh). The functions here remove the marks and rename the target. The
// driver then assembles the result like any other binary. A second mark, of how many work-groups a
// compute unit should hold, becomes a directive to the assembler, which then uses fewer registers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlprim {

/// Whether the text, OpenCL C or PTX, contains marked instructions.
bool wants_ptx_target(std::string_view source);
/// The PTX without marks, for sm_90a, or nothing if the text is not PTX for sm_90.
std::optional<std::string> with_ptx_target(std::string ptx);

}  // namespace dlprim
