// SPDX-License-Identifier: MIT
// Devices that several ranks of a team have between them.
#pragma once

#include <string>
#include <vector>

namespace dlprim {

/// The device of a rank: what tells it from all others of the run, and its name for messages.
struct RankDevice {
    std::string id, name;
};

/// A sentence for each device that has several ranks.
std::vector<std::string> notes_on_shared_devices(const std::vector<RankDevice>& devices);

/// Throws Error(invalid_argument) with such a sentence where there is one.
void refuse_shared_devices(const std::vector<RankDevice>& devices);

}  // namespace dlprim
