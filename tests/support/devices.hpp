// SPDX-License-Identifier: MIT
// The devices on which a test program runs: all devices, or those that DLPRIM_TEST_DEVICES names,
// separated by commas ("host"; "pocl"; "intel" for the CPU; "other" for all the rest; or any name
// that a Context accepts). With DLPRIM_TEST_TURN in the environment, which is a number, only one of
// PoCL and Intel's runtime is among all devices: even numbers and odd ones have different ones.
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

/// So many contexts on devices like this one: on different ones as far as there are.
std::vector<Context> contexts_like(const Context& device, std::size_t count);

/// Which part of the work that is shared among runtimes of OpenCL for this machine's processor
/// falls to one of them: part `index` of `count`.
struct Share {
    unsigned index = 0, count = 1;
    /// Whether item `number` of a list, which is the same on all of them, is in this part.
    bool has(unsigned number) const { return number % count == index; }
};

/// With DLPRIM_TEST_SHARED in the environment, which ctest sets where an entry for PoCL has one for
/// Intel's runtime beside it, the two try half each of what depends on a kernel's text more than on
/// its compiler. A device tries all where only one of the two is installed, or where it is neither.
Share share_of(const Context& device);

/// The same for lists of which the ordinary tests try only half: with DLPRIM_TEST_SHARED, a quarter
/// on each of two runtimes. The long tests, which run without it, try all.
Share sample_of(const Context& device);

}  // namespace dlprim::testing
