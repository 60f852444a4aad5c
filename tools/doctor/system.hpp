// SPDX-License-Identifier: MIT
// What dlprim_doctor finds on the system without using OpenCL: the distribution, ICD files, device
// files and who may open them, graphics cards, environment variables, caches.
#pragma once

#include "doctor/child.hpp"

#include <string>

namespace dlprim::doctor {

/// {"id", "like", "name", "kernel"} from /etc/os-release and uname().
Json distribution();

/// {"folder", "files": [{"file", "library", "error"}]}: the files by which OpenCL's loader finds
/// platforms. "error" says why the library does not load, and is "" where it does.
Json icd_files();

/// {"groups": [...], "files": [{"path", "group", "allowed"}]}: device files of GPUs, and whether
/// this user may read and write them.
Json device_files();

/// [{"vendor": "intel" | "amd" | "nvidia", "pci": "0000:01:00.0"}]: graphics cards and accelerators
/// of these vendors.
Json graphics_cards();

/// [{"name", "value", "misspelt_for"}]: variables that concern the library, its drivers and
/// OpenCL's loader, as far as they are set. "misspelt_for" has the nearest known name where the
/// name looks like one of ours and is none, else "".
Json environment();

/// [{"what", "path", "exists", "writable", "files", "bytes"}]: caches and databases.
Json storage();

/// The path with the home folder as "~", because reports are pasted in public.
std::string without_home(const std::string& path);

/// The value of an environment variable, or "".
std::string variable(const char* name);

}  // namespace dlprim::doctor
