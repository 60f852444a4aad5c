// SPDX-License-Identifier: MIT
// The memory of a plan as text by phase, and as a page.
#pragma once

#include <dlprim/memory_map.hpp>

#include <string>

namespace dlprim::tools {

/// The peak of each phase with the largest tensors that are live then, as lines of text. `title`
/// says of what: "resnet50.json on 0:0, batch 16, inference".
std::string memory_text(const MemoryMap& map, const std::string& title);

/// Does what --memory and --memory-html ask for: prints the text, and writes a page
/// (dlprim/report.hpp) if `html` names a file.
void report_memory(const MemoryMap& map, const std::string& title, bool text,
                   const std::string& html);

}  // namespace dlprim::tools
