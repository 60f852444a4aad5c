// SPDX-License-Identifier: MIT
// The devices on which a test program runs: all devices, or those that DLPRIM_TEST_DEVICES names,
// separated by commas ("host"; "pocl"; "intel" for the CPU; "other" for all the rest; or any name
// that a Context accepts).
#pragma once

#include <dlprim/context.hpp>

#include <string>
#include <vector>

namespace dlprim::testing {

/// The exit status of a test program that had nothing to run on (ctest's SKIP_RETURN_CODE).
inline constexpr int skipped_status = 77;

/// Never closed, because drivers may be gone when static objects are destroyed. Empty if none of
/// the requested devices exists.
const std::vector<Context>& test_devices();

}  // namespace dlprim::testing
