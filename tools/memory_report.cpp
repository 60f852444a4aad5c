// SPDX-License-Identifier: MIT
// Text and page of a MemoryMap.
#include "memory_report.hpp"

#include "common.hpp"

#include <dlprim/report.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

namespace dlprim::tools {

namespace {

using Entry = MemoryMap::Entry;

std::string mib(std::uint64_t bytes) {
    char text[64];
    std::snprintf(text, sizeof(text), "%.2f MiB", static_cast<double>(bytes) / (1 << 20));
    return text;
}

const char* kind_of(const Entry& entry) {
    switch (entry.kind) {
        case Entry::Kind::scratch:
            return entry.recomputed ? "recomputed" : "tensor";
        case Entry::Kind::workspace:
            return "workspace";
        case Entry::Kind::bound:
            return "bound";
        case Entry::Kind::block:
            return "block";
    }
    return "";
}

bool is_live(const Entry& entry, int step) {
    return entry.first <= step && step <= entry.last;
}

/// Entries that are live in a step, the largest first.
std::vector<const Entry*> live_at(const MemoryMap& map, int step) {
    std::vector<const Entry*> live;
    for (const Entry& entry : map.entries)
        if (is_live(entry, step) && entry.bytes > 0) live.push_back(&entry);
    std::stable_sort(live.begin(), live.end(),
                     [](const Entry* a, const Entry* b) { return a->bytes > b->bytes; });
    return live;
}

/// The step of a phase with the most live bytes, of each phase in its order.
std::vector<int> peaks(const MemoryMap& map) {
    std::vector<int> all;
    for (int i = 0; i < static_cast<int>(map.steps.size()); ++i) {
        const MemoryMap::Step& step = map.steps[static_cast<std::size_t>(i)];
        const auto known = std::find_if(all.begin(), all.end(), [&](int other) {
            return map.steps[static_cast<std::size_t>(other)].phase == step.phase;
        });
        if (known == all.end())
            all.push_back(i);
        else if (step.live_bytes > map.steps[static_cast<std::size_t>(*known)].live_bytes)
            *known = i;
    }
    return all;
}

std::string steps_of(const Entry& entry) {
    return std::to_string(entry.first) + " to " + std::to_string(entry.last);
}

/// What of the peak is made in backward for a second time.
std::string recomputed_text(const MemoryMap& map) {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    for (const Entry& entry : map.entries) {
        if (!entry.recomputed) continue;
        ++count;
        bytes += entry.bytes;
    }
    if (count == 0) return "";
    return std::to_string(count) + (count == 1 ? " tensor, " : " tensors, ") + mib(bytes) +
           " in sum, recomputed in backward";
}

}  // namespace

std::string memory_text(const MemoryMap& map, const std::string& title) {
    std::string text = "memory of " + title + ", before anything is allocated\n";
    std::uint64_t scratch = 0;
    for (const std::uint64_t bytes : map.slabs) scratch += bytes;
    text += "planned peak      " + mib(map.peak_bytes) + ": what stays " +
            mib(map.persistent_bytes) + ", scratch " + mib(scratch) + "; the limit is " +
            mib(map.limit_bytes) + '\n';
    if (const std::string again = recomputed_text(map); !again.empty()) text += "  " + again + '\n';
    if (map.setup_peak_bytes > map.peak_bytes)
        text += "  " + mib(map.setup_peak_bytes) + " while parameters are packed\n";
    for (const int at : peaks(map)) {
        const MemoryMap::Step& step = map.steps[static_cast<std::size_t>(at)];
        char head[256];
        std::snprintf(head, sizeof(head), "%-12s %14s live at most, in step %d [%s '%s']\n",
                      step.phase.c_str(), mib(step.live_bytes).c_str(), at, step.type.c_str(),
                      step.name.c_str());
        text += head;
        constexpr std::size_t most = 8;
        const std::vector<const Entry*> live = live_at(map, at);
        for (std::size_t i = 0; i < live.size() && i < most; ++i) {
            char line[256];
            std::snprintf(line, sizeof(line), "    %14s  %-10s  steps %-11s  %s\n",
                          mib(live[i]->bytes).c_str(), kind_of(*live[i]),
                          steps_of(*live[i]).c_str(), live[i]->name.c_str());
            text += line;
        }
        std::uint64_t rest = 0;
        for (std::size_t i = most; i < live.size(); ++i) rest += live[i]->bytes;
        if (rest > 0)
            text += "    " + mib(rest) + " in " + std::to_string(live.size() - most) + " more\n";
    }
    return text;
}

void report_memory(const MemoryMap& map, const std::string& title, bool text,
                   const std::string& html) {
    if (text) std::fputs(memory_text(map, title).c_str(), stdout);
    std::fflush(stdout);
    if (html.empty()) return;
    ReportPage page("Memory of " + title);
    page.add_memory(map);
    write_text(html, page.html());
}

namespace {

/// "part 1, 'conv' to 'pool'".
std::string part_text(const PlacedNet& net, std::size_t part) {
    const std::vector<std::string> names = net.parts().at(part).operators;
    return "part " + std::to_string(part + 1) + ", '" + names.front() + "' to '" + names.back() +
           "'";
}

std::string device_text(const PlacedNet& net, const PlacedNet::DeviceMemory& device) {
    std::string text = "planned peak      " + mib(device.peak_bytes) + " on device '" +
                       device.name + "': what crosses borders " + mib(device.border_bytes) +
                       "; the limit is " + mib(device.limit_bytes) + '\n';
    for (const PlacedNet::PartMemory& part : device.parts)
        text += "    " + mib(part.bytes) + "  " + part_text(net, part.part) +
                (part.working_sets == 1
                     ? ""
                     : ", in " + std::to_string(part.working_sets) + " working sets") +
                '\n';
    return text;
}

std::string page_of_part(const std::string& html, std::size_t part) {
    const std::filesystem::path whole(html);
    const std::string name =
        whole.stem().string() + ".part" + std::to_string(part + 1) + whole.extension().string();
    return (whole.parent_path() / name).string();
}

}  // namespace

void report_memory(const PlacedNet& net, const std::vector<PlacedNet::DeviceMemory>& devices,
                   const std::string& title, bool text, const std::string& html) {
    if (text) std::printf("memory of %s, before anything is allocated\n", title.c_str());
    for (const PlacedNet::DeviceMemory& device : devices)
        if (text) std::fputs(device_text(net, device).c_str(), stdout);
    for (const PlacedNet::DeviceMemory& device : devices)
        for (const PlacedNet::PartMemory& part : device.parts)
            report_memory(part.map, part_text(net, part.part) + ", on device '" + device.name + "'",
                          text, html.empty() ? html : page_of_part(html, part.part));
}

}  // namespace dlprim::tools
