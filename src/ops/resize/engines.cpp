// SPDX-License-Identifier: MIT
// What the engines of Resize and of its gradient share; see engines.hpp.
#include "ops/resize/engines.hpp"

namespace dlprim::resize {

View::View(const Operand& images) : outer(images.shape[0] * images.shape[1]), inner(1) {
    const Layout& layout = images.layout;
    if (layout.kind == Layout::Kind::channels_last) {
        outer = images.shape[0];
        inner = images.shape[1];
    } else if (layout.kind == Layout::Kind::blocked) {
        outer = images.shape[0] * ((images.shape[1] + layout.block - 1) / layout.block);
        inner = layout.block;
    }
}

Verdict Base::is_applicable(const Traits& device, const Problem& problem) const {
    if (!problem.epilogue.empty()) return Verdict::no("it does not support an epilogue");
    return one_float_type(device, problem, 1, 1);
}

std::vector<LayoutChoice> Base::layouts(const Traits& device, const Problem& problem) const {
    std::vector<LayoutChoice> result;
    const bool two_dimensions = problem.inputs[0].shape.rank() == 4;
    if (two_dimensions && (device.wide_vectors || device.host))
        for (const int block : {16, 8})
            result.push_back({{Layout::blocked(block)}, {Layout::blocked(block)}});
    result.push_back({{Layout::plain()}, {Layout::plain()}});
    if (two_dimensions) result.push_back({{Layout::channels_last()}, {Layout::channels_last()}});
    return result;
}

std::array<Axis, 3> Base::axes(const Problem& problem) const {
    const Shape& x = (backward_ ? problem.outputs : problem.inputs)[0].shape;
    std::array<Axis, 3> result =
        resize::axes(problem.attrs, x, problem.inputs[0].dtype == DType::f64);
    if (backward_)
        for (Axis& axis : result) axis = axis.transposed();
    return result;
}

}  // namespace dlprim::resize
