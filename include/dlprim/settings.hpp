// SPDX-License-Identifier: MIT
// Settings of the process: what environment variables set, for programs that decide it themselves.
// A setting goes before its variable; docs/environment.md has all variables.
//
// Order: call these before the first Context. The library reads a setting when it needs it for the
// first time, which is at the earliest when a device is opened or listed. From then on the setting
// stays as it is, and a call that would change it throws Error(invalid_argument).
//
// Threads: any thread may call these at any time.
#pragma once

#include <dlprim/namespace.hpp>

#include <string>

namespace dlprim {

/// The folder of compiled kernels and of the user's tuning database, which is made when something
/// is written to it. Empty: nothing is cached on disk, so that every process compiles its kernels
/// anew. In place of DLPRIM_CACHE_DIR and DLPRIM_CACHE.
void set_cache_directory(const std::string& path);

/// The file of the user's tuning database (dlprim/tuning.hpp), which need not exist. In place of
/// DLPRIM_TUNING; without either it is tuning.json in the cache folder. Throws
/// Error(invalid_argument) for an empty path.
void set_tuning_file(const std::string& path);

/// The number of threads of the host device, and the most that compile kernels, from 1 to 1024. In
/// place of DLPRIM_THREADS. Throws Error(invalid_argument) for another number.
void set_threads(int count);

}  // namespace dlprim
