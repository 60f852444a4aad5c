// SPDX-License-Identifier: MIT
// Which devices a test program runs on: every one there is, or those that DLPRIM_TEST_DEVICES names
// (separated by commas: "host", "pocl", "intel" for the CPU, "other" for all the rest, or whatever
// a Context takes).
#pragma once

#include <dlprim/context.hpp>

#include <string>
#include <vector>

namespace dlprim::testing {

/// Exit status by which a test program says that it had nothing to run on (ctest's
/// SKIP_RETURN_CODE).
inline constexpr int skipped_status = 77;

/// Never closed: drivers may be gone when statics are destroyed. Empty when none of those asked for
/// is there.
const std::vector<Context>& test_devices();

}  // namespace dlprim::testing
