// SPDX-License-Identifier: MIT
// Devices that several ranks of a team have between them.
#include "api/shared_devices.hpp"

#include "base/text.hpp"

#include <map>
#include <utility>

namespace dlprim {

std::vector<std::string> notes_on_shared_devices(const std::vector<RankDevice>& devices) {
    std::map<std::string, int> counts;
    for (const RankDevice& device : devices) ++counts[device.id];
    std::vector<std::string> notes;
    for (const RankDevice& device : devices)
        if (const int count = std::exchange(counts[device.id], 0); count > 1)
            notes.push_back(cat("device ", device.name, " has ", count,
                                " ranks, which share its time and its memory"));
    return notes;
}

void refuse_shared_devices(const std::vector<RankDevice>& devices) {
    const std::vector<std::string> notes = notes_on_shared_devices(devices);
    require(notes.empty(), notes.empty() ? "" : notes[0],
            ": name as many devices as there are ranks, or start fewer ranks. "
            "Without the option no-shared-devices it is allowed (shared_devices of a team)");
}

}  // namespace dlprim
