// SPDX-License-Identifier: MIT
// What the engines of Pointwise share.
//
// Layouts: either all operands are plain, or every operand with the full four-dimensional shape is
// blocked or channels_last. In that case smaller operands (scalars, per-channel and per-image
// values, results of reductions) stay plain.
#include "base/text.hpp"
#include "ops/pointwise/operator.hpp"

#include <algorithm>
#include <set>

namespace dlprim::pointwise {
namespace {

/// Whether a smaller operand is cheap to read in a layout that puts channels innermost.
bool fits_channels_inside(const Shape& own, const Shape& whole) {
    const auto at = [&](int d) {
        const int i = d - (whole.rank() - own.rank());
        return i < 0 ? std::int64_t{1} : own[i];
    };
    return at(1) == 1 || (at(2) == 1 && at(3) == 1);
}

}  // namespace

Verdict PointwiseEngine::is_applicable(const Traits& device, const Problem& problem) const {
    if (device.host != on_host())
        return Verdict::no(on_host() ? "it runs on the host device only"
                                     : "it runs on OpenCL devices only");
    if (!problem.epilogue.empty())
        return Verdict::no("it does not support an epilogue, which belongs into its program");
    if (!device.host && !device.fp64) {
        const auto is_double = [](const Operand& o) { return o.dtype == DType::f64; };
        if (std::any_of(problem.inputs.begin(), problem.inputs.end(), is_double) ||
            std::any_of(problem.outputs.begin(), problem.outputs.end(), is_double))
            return Verdict::no(
                "it needs double precision, which the device lacks; use float tensors");
    }
    return Verdict::yes();
}

std::vector<LayoutChoice> PointwiseEngine::layouts(const Traits& device,
                                                   const Problem& problem) const {
    LayoutChoice plain;
    plain.inputs.assign(problem.inputs.size(), Layout::plain());
    plain.outputs.assign(problem.outputs.size(), Layout::plain());
    std::vector<LayoutChoice> choices{plain};
    std::vector<Shape> shapes;
    for (const Operand& in : problem.inputs) shapes.push_back(in.shape);
    const Shape whole = broadcast_shape(shapes, problem.attrs.ints("shape"));
    if (whole.rank() != 4 || whole.empty()) return choices;
    bool any = false;
    for (const Shape& shape : shapes) {
        if (shape == whole)
            any = true;
        else if (!fits_channels_inside(shape, whole))
            return choices;
    }
    if (!any) return choices;
    const std::shared_ptr<const Program> program = parsed(problem.attrs.text("code"));
    const auto with = [&](const Layout& layout) {
        LayoutChoice choice = plain;
        for (std::size_t i = 0; i < shapes.size(); ++i)
            if (shapes[i] == whole) choice.inputs[i] = layout;
        for (std::size_t k = 0; k < program->outputs.size(); ++k)
            if (program->outputs[k].kind == Output::Kind::elementwise) choice.outputs[k] = layout;
        choices.push_back(choice);
    };
    const int block = device.host ? 16 : device.vector_width >= 8 ? 16 : 0;
    if (block > 0) with(Layout::blocked(block));
    if (device.host || device.wide_vectors) with(Layout::blocked(8));
    with(Layout::channels_last());
    return choices;
}

double PointwiseEngine::estimate(const Traits& device, const Problem& problem,
                                 const Tuning&) const {
    double bytes = 0;
    for (const Operand& in : problem.inputs)
        bytes += static_cast<double>(storage_bytes(in.shape, in.dtype, in.layout));
    for (const Operand& out : problem.outputs)
        bytes += static_cast<double>(storage_bytes(out.shape, out.dtype, out.layout));
    std::set<Ints> axes;
    const std::shared_ptr<const Program> program = parsed(problem.attrs.text("code"));
    for (const Output& output : program->outputs)
        if (output.kind != Output::Kind::elementwise) axes.insert(output.axes);
    const double launches = axes.empty() ? 1.0 : 2.0 * static_cast<double>(axes.size());
    const double rate = device.gbytes_per_s > 0 ? device.gbytes_per_s : 10.0;
    return bytes / (0.8e9 * rate) + launches * 1e-6 * device.launch_us;
}

}  // namespace dlprim::pointwise
