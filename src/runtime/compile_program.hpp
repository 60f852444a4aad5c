// SPDX-License-Identifier: MIT
// Finds the executable dlprim_compile, which compiles programs for other processes.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <optional>

#include <sys/types.h>

namespace dlprim {

/// Returns the path that DLPRIM_COMPILE_PROGRAM names, else the executable that was installed or
/// built with this library. Returns nothing if that is not an executable file, if the one beside
/// the library is not is_protected(), or if this process runs with more rights than its user has
/// (setuid).
std::optional<std::filesystem::path> compile_program();

/// The path of something that was installed or built with this library: `name` in one of these
/// folders, which are relative to the folder of the shared library or of a program linked with the
/// static one. Nothing if it is not there or not is_protected().
std::optional<std::filesystem::path> installed_path(std::initializer_list<const char*> folders,
                                                    const char* name);

/// Whether nobody but root, this user and `owner` can replace a file: they own the file and the two
/// folders above it, to which others cannot write. The path must have no symbolic links.
bool is_protected(const std::filesystem::path& file, uid_t owner);

}  // namespace dlprim
