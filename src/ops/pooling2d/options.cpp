// SPDX-License-Identifier: MIT
// Pooling2D's options and geometry; see options.hpp.
#include "ops/pooling2d/options.hpp"

#include "base/text.hpp"
#include "engine/storage.hpp"

#include <algorithm>

namespace dlprim::pooling2d {

namespace {

std::array<std::int64_t, 2> pair(const Attrs& attrs, const char* name) {
    const Ints v = attrs.ints(name);
    require(v.size() == 1 || v.size() == 2, name, " has ", v.size(),
            " entries; it is one size or [height, width]");
    return {v[0], v.back()};
}

}  // namespace

Options::Options(const Attrs& attrs) {
    average = attrs.text("mode") == "avg";
    count_include_pad = attrs.boolean("count_include_pad");
    ceil_mode = attrs.boolean("ceil_mode");
    return_indices = attrs.boolean("return_indices");
    require(!(average && return_indices), "return_indices goes with mode max only");
    kernel = pair(attrs, "kernel");
    stride = pair(attrs, "stride");
    const Ints p = attrs.ints("pad");
    require(p.size() == 1 || p.size() == 2 || p.size() == 4, "pad has ", p.size(),
            " entries; it is one size, [height, width] or [top, left, bottom, right]");
    if (p.size() == 4)
        pad = {p[0], p[1], p[2], p[3]};
    else
        pad = {p[0], p.back(), p[0], p.back()};
    for (std::size_t i = 0; i < 4; ++i)
        require(pad[i] < kernel[i % 2], "pad ", pad[i], " must be less than the kernel, ",
                kernel[i % 2], ", so that every window holds an element");
}

DType Options::index_type() const {
    return kernel[0] * kernel[1] <= 256 ? DType::u8 : DType::i32;
}

Shape Options::output_shape(const Shape& input) const {
    require(input.rank() == 4, "input ", input.str(), " is not [N, C, H, W]");
    std::array<std::int64_t, 2> out{};
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t size = input[2 + static_cast<int>(i)];
        const std::int64_t room = size + pad[i] + pad[i + 2] - kernel[i];
        require(room >= 0, "kernel ", kernel[0], " x ", kernel[1], " does not fit padded input ",
                input.str());
        out[i] = (room + (ceil_mode ? stride[i] - 1 : 0)) / stride[i] + 1;
        // With ceil_mode, the last window must start inside the input or the padding before it.
        if (ceil_mode && (out[i] - 1) * stride[i] >= size + pad[i]) --out[i];
    }
    return {input[0], input[1], out[0], out[1]};
}

View::View(const Shape& shape, const Layout& layout) {
    switch (layout.kind) {
        case Layout::Kind::channels_last:
            outer = shape[0];
            inner = shape[1];
            break;
        case Layout::Kind::blocked:
            outer = shape[0] * ((shape[1] + layout.block - 1) / layout.block);
            inner = layout.block;
            break;
        default:
            outer = shape[0] * shape[1];
    }
}

std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) {
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

Verdict is_applicable(const Problem& problem, bool narrow) {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    for (const Operand* operand : {&problem.inputs[0], &problem.outputs[0]})
        if (operand->dtype != DType::f32 && !(narrow && is_activation_type(operand->dtype)))
            return Verdict::no(
                cat("it does not support tensors of type ", name_of(operand->dtype)));
    return Verdict::yes();
}

double seconds(const Traits& device, const Problem& problem) {
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
    const Options options(problem.attrs);
    const bool by_lines = device.host && !options.average && !options.return_indices;
    const bool cpu = (device.wide_vectors || device.host) && !by_lines;
    const double share = !cpu ? 0.8 : plain ? 0.15 : 0.6;
    return bytes / (share * std::max(device.gbytes_per_s, 1.0) * 1e9) + device.launch_us * 1e-6;
}

}  // namespace dlprim::pooling2d
