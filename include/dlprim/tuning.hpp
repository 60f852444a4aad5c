// SPDX-License-Identifier: MIT
// What tuning found, as files: to carry from one machine to another of the same device.
//
// Tuning itself is NetOptions::tune_seconds. Its database is the JSON file that DLPRIM_TUNING
// names, else tuning.json in the cache folder; a row of another device is never used, one of
// another driver serves where there is none of this one's.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>

#include <cstddef>
#include <string>

namespace dlprim {

/// Writes the rows that the user's database holds on the context's device, whole or not at all.
/// Returns how many. Throws Error(io); Error(not_found) where there are none.
std::size_t export_tunings(const Context& context, const std::string& path);

/// Adds a file's rows to the user's database, in place of what that held on the same problems.
/// Returns how many. Throws Error(not_found, invalid_argument, io); Error(unsupported) where caches
/// are off.
std::size_t import_tunings(const std::string& path);

}  // namespace dlprim
