// SPDX-License-Identifier: MIT
// The engines of operators that only move elements (Concat, Slice, Transpose, Pad). Each operator
// describes the copies that solve a problem, and gets one engine for OpenCL devices and one for the
// host.
#pragma once

#include "engine/strided_copy.hpp"

#include <string_view>
#include <vector>

namespace dlprim {

/// How an operator is computed by copies. `Copy` is StridedCopy or PaddedCopy.
template <typename Copy>
struct Movement {
    std::string_view op;    ///< the operator type: "Slice"
    std::string_view copy;  ///< the name of its engine for OpenCL devices: "slice.copy"
    std::string_view host;  ///< the name of its engine for the host: "slice.host"
    /// One copy per input, from that input to the output, in any of `layouts`. A StridedCopy also
    /// supports strided layouts in place of plain ones.
    std::vector<Copy> (*copies)(const Problem& problem);
    /// As Engine::layouts; nullptr means that everything is plain.
    std::vector<LayoutChoice> (*layouts)(const Traits& device, const Problem& problem) = nullptr;
};

/// What engines that copy tell about their copies, beside Engine.
class MovesElements {
  public:
    virtual ~MovesElements() = default;
    /// One copy per input; none if they are more than strided copies.
    virtual std::vector<StridedCopy> moves(const Problem& problem) const = 0;
};

/// The copies of an engine that does nothing else with the problem; otherwise none.
std::vector<StridedCopy> moves_of(const Engine& engine, const Problem& problem);

/// The strides of the array in memory: of its physical shape, or of a strided view.
Ints memory_strides(const Operand& operand);

/// Registers both engines. They support elements of any type and copy them as raw bits.
void add_copy_engines(EngineRegistry& engines, const Movement<StridedCopy>& movement);
void add_copy_engines(EngineRegistry& engines, const Movement<PaddedCopy>& movement);

}  // namespace dlprim
