// SPDX-License-Identifier: MIT
// What dlprim_tune --share writes: all that others need to know of a device, in one file.
#pragma once

#include <dlprim/context.hpp>

#include <string>

namespace dlprim::tools {

/// Writes a tuning database with the device's rows of the user's database, if there are any. It
/// also has "shared": the versions, the device with its traits, its measured peaks, and what of a
/// self-test of all engines is not right. The self-test takes `seconds` at most, in processes of
/// its own. Throws Error(unsupported) for a device that a file describes, and Error(io).
void share_tunings(const Context& context, const std::string& path, double seconds);

}  // namespace dlprim::tools
