// SPDX-License-Identifier: MIT
// A report of dlprim_doctor as text that fits into an issue.
#pragma once

#include "doctor/child.hpp"

#include <string>

namespace dlprim::doctor {

std::string text_of(const Json& report);

}  // namespace dlprim::doctor
