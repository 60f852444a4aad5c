// SPDX-License-Identifier: MIT
// find_gradient_marks: looks at every operand of the steps before the update.
#include "plan/gradient_marks.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim {

namespace {

/// The gradient that an operand of a step begins in.
GradientMark& mark_at(std::vector<GradientMark>& marks, std::uint64_t offset) {
    const auto next = std::upper_bound(
        marks.begin(), marks.end(), offset,
        [](std::uint64_t wanted, const GradientMark& mark) { return wanted < mark.begin; });
    return next == marks.begin() ? *next : *std::prev(next);
}

/// A gradient that reached into the next one would leave before it is complete.
void check_end(const GradientMark& mark, std::uint64_t end, const std::string& step) {
    if (end > mark.end)
        fail(ErrorKind::unsupported, "step '", step,
             "' of a plan writes the block of gradients up to byte ", end,
             ", across the end of a gradient at ", mark.end);
}

}  // namespace

std::vector<GradientMark> find_gradient_marks(const Plan& plan) {
    const auto block = std::find_if(plan.blocks.begin(), plan.blocks.end(),
                                    [](const Block& each) { return each.name == "gradients"; });
    std::vector<GradientMark> marks;
    if (block == plan.blocks.end()) return marks;
    const auto index = static_cast<int>(block - plan.blocks.begin());
    for (const auto& [id, elements] : plan.graph.block_offsets()) {
        const std::uint64_t begin = static_cast<std::uint64_t>(elements) * sizeof(float);
        if (!marks.empty()) marks.back().end = begin;
        marks.push_back({begin, block->bytes, 0});
    }
    if (marks.empty()) return marks;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        if (step.part > Part::backward) continue;
        for (const Place& operand : step.operands) {
            if (operand.kind != Place::Kind::block || operand.index != index) continue;
            mark_at(marks, operand.offset).last_step = i;
        }
        for (const auto& [place, bytes] : step.written) {
            if (place.kind != Place::Kind::block || place.index != index) continue;
            GradientMark& mark = mark_at(marks, place.offset);
            mark.last_step = i;
            check_end(mark, place.offset + bytes, step.name);
        }
    }
    return marks;
}

}  // namespace dlprim
