// SPDX-License-Identifier: MIT
// Turns: selects which of many possible trials are run. The selection is the same in every run.
#pragma once

#include <dlprim/context.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim::testing {

/// Compilers for CPUs take half a second per kernel, and running every engine with every case needs
/// thousands of kernels. So on OpenCL devices each kind of trial (such as one engine in one
/// direction of one operator) runs at its first chance, the second, the fourth, the eighth and so
/// on. A kind with a single case is run, and one with many is run with cases from all over the
/// list. With DLPRIM_TEST_SHARED in the environment, only the first chance, the fourth, the
/// sixteenth and so on are used. Every device uses the first; two runtimes of one processor share
/// the later ones (share_of in support/devices.hpp), unless its value is "alone", for what one of
/// them does and the other does not. On the host, and everywhere with DLPRIM_TEST_FORCE=all in the
/// environment, every chance is used.
///
/// With DLPRIM_TEST_ENGINE in the environment, which is a part of an engine's name, trials of other
/// engines are left out. `kind` contains the engine's name.
class Turns {
  public:
    bool take(const std::string& kind, const Context& device);

    /// Whether DLPRIM_TEST_ENGINE selects the engine.
    static bool asked_for(std::string_view engine);
    /// Whether a trial was run since the previous call, or none had to be: without
    /// DLPRIM_TEST_ENGINE, or without a device.
    bool tried(const std::vector<Context>& devices);

  private:
    bool tried_ = false;
    std::map<std::string, unsigned> chances_;
};

}  // namespace dlprim::testing
