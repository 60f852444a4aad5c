// SPDX-License-Identifier: MIT
// Finds the executable dlprim_compile, which compiles programs for other processes.
#pragma once

#include <filesystem>
#include <optional>

#include <sys/types.h>

namespace dlprim {

/// Returns the path that DLPRIM_COMPILE_PROGRAM names, else the executable that was installed or
/// built with this library. Returns nothing if that is not an executable file, if the one beside
/// the library is not is_protected(), or if this process runs with more rights than its user has
/// (setuid).
std::optional<std::filesystem::path> compile_program();

/// Whether nobody but root, this user and `owner` can replace a file: they own the file and the two
/// folders above it, to which others cannot write. The path must have no symbolic links.
bool is_protected(const std::filesystem::path& file, uid_t owner);

}  // namespace dlprim
