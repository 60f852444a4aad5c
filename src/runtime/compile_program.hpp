// SPDX-License-Identifier: MIT
// Finds the executable dlprim_compile, which compiles programs for other processes.
#pragma once

#include <filesystem>
#include <optional>

namespace dlprim {

/// Returns the path that DLPRIM_COMPILE_PROGRAM names, else the executable that was installed or
/// built with this library. Returns nothing if that is not an executable file.
std::optional<std::filesystem::path> compile_program();

}  // namespace dlprim
