// SPDX-License-Identifier: MIT
// The memory of a plan as text by phase, and as a picture over the step.
#pragma once

#include <dlprim/memory_map.hpp>

#include <string>

namespace dlprim::tools {

/// The peak of each phase with the largest tensors that are live then, as lines of text. `title`
/// says of what: "resnet50.json on 0:0, batch 16, inference".
std::string memory_text(const MemoryMap& map, const std::string& title);

/// One page without outside resources: tensors as boxes over the steps and the bytes of their
/// slabs, the live bytes of each step, and the largest tensors as a table. Light and dark.
std::string memory_html(const MemoryMap& map, const std::string& title);

/// Does what --memory and --memory-html ask for: prints the text, and writes the page if `html`
/// names a file.
void report_memory(const MemoryMap& map, const std::string& title, bool text,
                   const std::string& html);

}  // namespace dlprim::tools
