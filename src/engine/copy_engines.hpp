// SPDX-License-Identifier: MIT
// The engines of operators that only move elements (Concat, Slice, Transpose, Pad): one on OpenCL
// devices and one on the host, made from a description of the copies that solve a problem.
#pragma once

#include "engine/strided_copy.hpp"

#include <string_view>
#include <vector>

namespace dlprim {

/// How an operator is done by copies. `Copy` is StridedCopy or PaddedCopy.
template <typename Copy>
struct Movement {
    std::string_view op;    ///< the operator type: "Slice"
    std::string_view copy;  ///< the names of its engines: "slice.copy" on OpenCL devices,
    std::string_view host;  ///< "slice.host" on the host
    /// One copy per input, from that input to the output. Works for each of `layouts`.
    std::vector<Copy> (*copies)(const Problem& problem);
    /// As Engine::layouts; nullptr: everything plain.
    std::vector<LayoutChoice> (*layouts)(const Traits& device, const Problem& problem) = nullptr;
};

/// Registers both engines. They take elements of any type, as raw bits.
void add_copy_engines(EngineRegistry& engines, const Movement<StridedCopy>& movement);
void add_copy_engines(EngineRegistry& engines, const Movement<PaddedCopy>& movement);

}  // namespace dlprim
