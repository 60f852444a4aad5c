// SPDX-License-Identifier: MIT
// Turns: which part of all that could be tried is tried, the same in every run.
#pragma once

#include <dlprim/context.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::testing {

/// Compilers for CPUs take half a second a kernel, and every engine over every case has thousands.
/// So on OpenCL devices each kind of trial (one engine in one direction of one operator, say) comes
/// by its first chance, the second, the fourth, the eighth and so on: one for which there is a
/// single case is tried, and one for which there are many is tried on cases all over the list. On
/// the host, and everywhere with DLPRIM_TEST_FORCE=all in the environment, every chance is taken.
///
/// With DLPRIM_TEST_ENGINE in the environment, a part of a name, trials of other engines are left
/// out; `kind` holds the engine's name.
class Turns {
  public:
    bool take(const std::string& kind, const Context& device);

    /// Whether DLPRIM_TEST_ENGINE leaves the engine in.
    static bool asked_for(std::string_view engine);
    /// Whether something was tried since the last call, or nothing had to be: without
    /// DLPRIM_TEST_ENGINE, or without a device.
    bool tried(const std::vector<Context>& devices);

  private:
    bool tried_ = false;
    std::map<std::string, unsigned> chances_;
};

}  // namespace dlprim::testing
