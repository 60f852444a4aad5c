// SPDX-License-Identifier: MIT
// What the engines of pooling share: which windows and types they have, layouts and estimates.
#include "ops/pooling/engines.hpp"

#include "base/text.hpp"
#include "engine/element_types.hpp"
#include "engine/storage.hpp"

#include <algorithm>

namespace dlprim::pooling {

View::View(const Operand& images) {
    const Shape& shape = images.shape;
    switch (images.layout.kind) {
        case Layout::Kind::channels_last:
            outer = shape[0];
            inner = shape[1];
            break;
        case Layout::Kind::blocked:
            outer = shape[0] * ((shape[1] + images.layout.block - 1) / images.layout.block);
            inner = images.layout.block;
            break;
        default:
            outer = shape[0] * shape[1];
    }
}

Verdict ImageEngine::is_applicable(const Traits&, const Problem& problem) const {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    for (const Operand* operand : {&problem.inputs[0], &problem.outputs[0]})
        if (operand->dtype != DType::f32 && (on_host() || !is_activation_type(operand->dtype)))
            return Verdict::no(
                cat("it does not support tensors of type ", name_of(operand->dtype)));
    if (!Windows(problem).is_plain())
        return Verdict::no(
            "it is for images of two dimensions, without dilation, a divisor or sizes of outputs");
    return Verdict::yes();
}

std::vector<LayoutChoice> ImageEngine::layouts(const Traits& device, const Problem& problem) const {
    std::vector<Layout> candidates{Layout::plain(), Layout::channels_last()};
    if (device.wide_vectors || device.host)
        candidates.insert(candidates.begin(), {Layout::blocked(16), Layout::blocked(8)});
    std::vector<LayoutChoice> result;
    result.reserve(candidates.size());
    for (const Layout& layout : candidates)
        result.push_back({std::vector<Layout>(problem.inputs.size(), layout),
                          std::vector<Layout>(problem.outputs.size(), layout)});
    return result;
}

double ImageEngine::estimate(const Traits& device, const Problem& problem, const Tuning&) const {
    double bytes = 0;
    bool plain = true;
    for (const auto* side : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *side) {
            bytes +=
                static_cast<double>(storage_bytes(operand.shape, operand.dtype, operand.layout));
            plain = plain && operand.layout.is_plain();
        }
    // On OpenCL's CPUs, vectors can only be lanes of channels, and on the host also where it makes
    // averages or positions.
    const Windows windows(problem);
    const bool by_lines =
        device.host && !windows.average && (backward() || !has_positions(problem));
    const bool cpu = (device.wide_vectors || device.host) && !by_lines;
    const double share = !cpu ? 0.8 : plain ? 0.15 : 0.6;
    return bytes / (share * std::max(device.gbytes_per_s, 1.0) * 1e9) + device.launch_us * 1e-6;
}

Verdict AnyRankEngine::is_applicable(const Traits& device, const Problem& problem) const {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    if (Windows(problem).is_plain() && problem.inputs[0].dtype != DType::f64)
        return Verdict::no("the engines of two dimensions have these windows");
    return one_float_type(device, problem, 1, 1);
}

double AnyRankEngine::estimate(const Traits& device, const Problem& problem, const Tuning&) const {
    const Windows w(problem);
    double window = 1;
    for (const Axis& a : w.axes)
        window *= w.adaptive ? static_cast<double>(a.in) /
                                       static_cast<double>(std::max<std::int64_t>(a.out, 1)) +
                                   1
                             : static_cast<double>(a.kernel);
    const double steps = window * static_cast<double>(w.output.numel());
    return roofline_seconds(device, problem, 2 * steps, 0.05, 0.3);
}

}  // namespace dlprim::pooling
