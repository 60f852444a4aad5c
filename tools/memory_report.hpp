// SPDX-License-Identifier: MIT
// The memory of a plan as text by phase, and as a page.
#pragma once

#include <dlprim/memory_map.hpp>
#include <dlprim/placed_net.hpp>

#include <string>
#include <vector>

namespace dlprim::tools {

/// The peak of each phase with the largest tensors that are live then, as lines of text. `title`
/// says of what: "resnet50.json on 0:0, batch 16, inference".
std::string memory_text(const MemoryMap& map, const std::string& title);

/// Does what --memory and --memory-html ask for: prints the text, and writes a page
/// (dlprim/report.hpp) if `html` names a file.
void report_memory(const MemoryMap& map, const std::string& title, bool text,
                   const std::string& html);

/// The same of a network on several devices: what each of them gives, and then each part. There is
/// a page for each part, with its number in the name: memory.part1.html.
void report_memory(const PlacedNet& net, const std::vector<PlacedNet::DeviceMemory>& devices,
                   const std::string& title, bool text, const std::string& html);

}  // namespace dlprim::tools
