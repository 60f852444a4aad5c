// SPDX-License-Identifier: MIT
// PoCL's cache folder. PoCL cannot work without it: if the folder cannot be made, the platform has
// no device, and if it is not writable, no program builds. PoCL itself reports neither.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace dlprim {

/// Whether CL_PLATFORM_VERSION is that of a PoCL.
bool is_pocl(std::string_view platform_version);

/// The folder by PoCL's own rule: POCL_CACHE_DIR, else pocl/kcache in XDG_CACHE_HOME, in
/// HOME/.cache or in /tmp.
std::filesystem::path pocl_cache_folder();

/// Whether PoCL keeps compiled programs there for other processes, which POCL_KERNEL_CACHE=0 ends.
bool pocl_keeps_programs();

/// What prevents PoCL from writing there, as the end of a sentence that says what would help, or
/// empty. To find out, it makes the folder, as PoCL would, and a small file in it.
std::string pocl_cache_trouble();

}  // namespace dlprim
