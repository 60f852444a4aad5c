// SPDX-License-Identifier: MIT
// What is wrong in a report of dlprim_doctor, and what to do about it.
#pragma once

#include "doctor/child.hpp"

#include <string>

namespace dlprim::doctor {

/// How a package is installed on the distribution (as distribution() describes it): a command, or
/// a sentence where the distribution is not known. `what` is "loader", "cpu", "intel", "amd" or
/// "nvidia".
std::string how_to_install(const Json& distribution, const std::string& what);

/// Adds "troubles" ([{"what", "advice", "serious"}]), "ok" and "summary" (one line) to a report.
/// A trouble is serious where it keeps a device from working or an engine is wrong.
void judge(Json& report);

}  // namespace dlprim::doctor
