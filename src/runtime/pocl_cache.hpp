// SPDX-License-Identifier: MIT
// PoCL's cache folder, without which PoCL does nothing: where it cannot be made, the platform has
// no device; where nothing can be written to it, no program builds. PoCL itself says neither.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dlprim {

/// Whether a platform's version (CL_PLATFORM_VERSION) is that of a PoCL.
bool is_pocl(std::string_view platform_version);

/// The folder by PoCL's own rule: POCL_CACHE_DIR, else pocl/kcache in XDG_CACHE_HOME, in
/// HOME/.cache or in /tmp.
std::filesystem::path pocl_cache_folder();

/// What keeps PoCL from writing there, as the end of a sentence that says what would help; empty
/// where nothing does. Tries it: makes the folder, as PoCL would, and a file of a few bytes in it.
std::string pocl_cache_trouble();

}  // namespace dlprim
