// SPDX-License-Identifier: MIT
// Results of tuning as files, which can be carried to another machine with the same device.
//
// NetOptions::tune_seconds asks for tuning. Its results are rows of the user's tuning database: the
// JSON file that set_tuning_file() (dlprim/settings.hpp) or DLPRIM_TUNING names, else tuning.json
// in the cache folder. A row of another device is never used. A row of another driver is used where
// there is none of this driver.
//
// Any thread may call these functions. They return when the file is written or read.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/namespace.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace dlprim {

/// Writes the rows of the user's database that belong to the context's device to a file, whole or
/// not at all. Returns the number of rows. Throws Error(not_found) where there are none, and
/// Error(io).
std::size_t export_tunings(const Context& context, const std::string& path);

/// Adds a file's rows to the user's database. They replace its rows on the same problems. Nets that
/// are planned from then on use them. Returns the number of rows. Throws Error(not_found) where
/// there is no such file, Error(invalid_argument) where it is no tuning database, Error(io), and
/// Error(unsupported) where caches are disabled.
std::size_t import_tunings(const std::string& path);

/// How many rows of all databases are about an operator's problems on a device, for any driver.
/// Problems without rows are decided by rules: by what engines estimate.
struct KnownRows {
    std::string type;          ///< the operator
    std::size_t measured = 0;  ///< measured on such a device
    std::size_t computed =
        0;  ///< made by an offline compiler and a model; measured ones count first
    std::size_t outdated =
        0;  ///< made with another version of the engine, so that they do not count
};
/// The rows for the context's device, by operator. Empty while DLPRIM_TRAITS changes the device,
/// since no row counts then.
std::vector<KnownRows> known_rows(const Context& context);

}  // namespace dlprim
