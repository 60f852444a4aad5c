// SPDX-License-Identifier: MIT
// What tuning found, as files: to carry from one machine to another of the same device.
//
// Tuning itself is NetOptions::tune_seconds. Its database is the JSON file that set_tuning_file()
// (dlprim/settings.hpp) or DLPRIM_TUNING names, else tuning.json in the cache folder. A row of
// another device is never used; one of another driver is used where there is none of this driver.
//
// Any thread may call these functions. They return when the file is written or read.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>

#include <cstddef>
#include <string>

namespace dlprim {

/// Writes the rows that the user's database holds on the context's device, whole or not at all.
/// Returns how many. Throws Error(io); Error(not_found) where there are none.
std::size_t export_tunings(const Context& context, const std::string& path);

/// Adds a file's rows to the user's database, in place of what it held on the same problems. Nets
/// that are planned from then on use them.
/// Returns how many. Throws Error(not_found, invalid_argument, io); Error(unsupported) where caches
/// are off.
std::size_t import_tunings(const std::string& path);

}  // namespace dlprim
