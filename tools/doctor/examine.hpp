// SPDX-License-Identifier: MIT
// Looks at the devices through dlprim_doctor_probe: lists them, opens them, measures and tests.
#pragma once

#include "doctor/child.hpp"

#include <functional>
#include <string>

namespace dlprim::doctor {

struct ExamineOptions {
    std::string device;  ///< as a command takes it; empty: all devices
    bool quick =
        false;         ///< one case of each operator, as the library computes it, and no gradients
    std::string type;  ///< the only operator whose cases run; empty: all
    double seconds = 60;  ///< the most for a device
    /// Called before each piece of work, of which `done` of `total` are done.
    std::function<void(const std::string& what, int done, int total)> progress;
};

/// Adds to the report what devices say: "devices", "library_troubles", "list_error", "culprit" and
/// "default". Never throws: errors and crashes of drivers become parts of the report. "usage_error"
/// is a sentence where options.type is no operator, and nothing was tested then; otherwise "".
void examine(Json& report, const std::string& probe, const ExamineOptions& options);

}  // namespace dlprim::doctor
