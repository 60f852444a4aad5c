// SPDX-License-Identifier: MIT
// A training run as a page for a browser.
#pragma once

#include "train/history.hpp"

#include <string>

namespace dlprim {

/// All that the page shows.
struct RunReport {
    std::string title;   ///< the network's file
    std::string device;  ///< where the net was trained
    const RunHistory& history;
};

/// Writes report.html, whole or not at all. Throws Error(io).
void write_report(const std::string& folder, const RunReport& report);

}  // namespace dlprim
