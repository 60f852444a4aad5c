// SPDX-License-Identifier: MIT
// Settings of the process, for programs that do not leave them to environment variables. A setting
// takes precedence over its variable; docs/environment.md has all variables.
//
// Order: call these before the first Context. The library reads a setting when it needs it for the
// first time, which is at the earliest when a device is opened or listed. From then on a call that
// would change the setting throws Error(invalid_argument).
//
// Threads: any thread may call these at any time.
#pragma once

#include <dlprim/namespace.hpp>

#include <string>

namespace dlprim {

/// Sets the folder of compiled kernels and of the user's tuning database. It is made when something
/// is written to it. If `path` is empty, nothing is cached on disk, and every process compiles its
/// kernels anew. Replaces DLPRIM_CACHE_DIR and DLPRIM_CACHE.
void set_cache_directory(const std::string& path);

/// Sets the file of the user's tuning database (dlprim/tuning.hpp), which need not exist. Replaces
/// DLPRIM_TUNING. Without either it is tuning.json in the cache folder. Throws
/// Error(invalid_argument) for an empty path.
void set_tuning_file(const std::string& path);

/// Sets the number of threads of the host device, from 1 to 1024. No more threads than that compile
/// kernels. Replaces DLPRIM_THREADS. Throws Error(invalid_argument) for another number.
void set_threads(int count);

}  // namespace dlprim
