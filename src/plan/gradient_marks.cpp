// SPDX-License-Identifier: MIT
// find_gradient_marks: looks at every operand of the steps before the update.
#include "plan/gradient_marks.hpp"

#include <algorithm>

namespace dlprim {

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
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        if (step.part > Part::backward) continue;
        const auto note = [&](const Place& place) {
            if (place.kind != Place::Kind::block || place.index != index) return;
            // An operand lies within the gradient that it begins in.
            const auto next = std::upper_bound(
                marks.begin(), marks.end(), place.offset,
                [](std::uint64_t offset, const GradientMark& mark) { return offset < mark.begin; });
            if (next != marks.begin()) std::prev(next)->last_step = i;
        };
        for (const Place& operand : step.operands) note(operand);
        for (const auto& [place, bytes] : step.written) note(place);
    }
    return marks;
}

}  // namespace dlprim
