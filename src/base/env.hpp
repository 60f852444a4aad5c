// SPDX-License-Identifier: MIT
// Environment variables and the folders that the library may write to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace dlprim {

/// What override_env() has set for the variable, else its value in the environment; nothing when
/// that is unset or empty.
std::optional<std::string> env(const char* name);

/// The same for a variable that is 0 or 1. Throws Error(invalid_argument) for another value.
std::optional<bool> env_flag(const char* name);

/// Sets variables for env() alone: all of them or none. Throws Error(invalid_argument) where env()
/// has been asked for one of them and gave another value, since that one is in use; `what` names
/// the setting in the message.
void override_env(const std::map<std::string, std::string>& values, std::string_view what);

/// DLPRIM_CACHE_DIR, else $XDG_CACHE_HOME/dlprim, else $HOME/.cache/dlprim. Without any of them it
/// returns nothing, and nothing is cached on disk. The folder is not created here.
std::optional<std::filesystem::path> cache_dir();

/// Writes `bytes` to `path` so that a reader sees either the old file or the whole new one: it
/// writes a unique temporary file in the same folder, flushes it, and renames it. Throws Error(io),
/// and leaves no temporary file, when the disk is full, the folder is not writable, or `path` is a
/// directory, FIFO, socket or device.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
/// Returns the file's bytes. Throws Error: not_found; io (the file is unreadable or not a regular
/// file, see InputFile); format (the file is longer than `most`).
std::string read_file(const std::filesystem::path& path, std::uint64_t most = 256u << 20);

}  // namespace dlprim
