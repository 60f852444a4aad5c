// SPDX-License-Identifier: MIT
// Concat's geometry; see options.hpp.
#include "ops/concat/options.hpp"

#include "base/text.hpp"

namespace dlprim::concat {

int dimension(const Attrs& attrs, int rank) {
    const std::int64_t dim = attrs.integer("dim");
    require(dim >= -rank && dim < rank, "dim ", dim, " is not a dimension of inputs with ", rank,
            " dimensions");
    return static_cast<int>(dim < 0 ? dim + rank : dim);
}

std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) {
    std::vector<Layout> candidates;
    const Shape& shape = problem.outputs[0].shape;
    if (shape.rank() == 4) {
        const int dim = dimension(problem.attrs, 4);
        if (device.host || device.wide_vectors) {
            for (const int block : {16, 8}) {
                bool whole = true;
                for (std::size_t i = 0; dim == 1 && i + 1 < problem.inputs.size(); ++i)
                    whole = whole && problem.inputs[i].shape[1] % block == 0;
                if (whole) candidates.push_back(Layout::blocked(block));
            }
        }
        candidates.push_back(Layout::channels_last());
    }
    candidates.insert(candidates.begin(), Layout::plain());
    std::vector<LayoutChoice> result;
    result.reserve(candidates.size());
    for (const Layout& layout : candidates)
        result.push_back({std::vector<Layout>(problem.inputs.size(), layout), {layout}});
    return result;
}

int physical_dimension(const Problem& problem) {
    const Operand& output = problem.outputs[0];
    const int dim = dimension(problem.attrs, output.shape.rank());
    if (output.layout.kind != Layout::Kind::channels_last || dim == 0) return dim;
    return dim == 1 ? 3 : dim - 1;
}

std::vector<StridedCopy> copies(const Problem& problem) {
    const Operand& output = problem.outputs[0];
    const int dim = physical_dimension(problem);
    const auto at = static_cast<std::size_t>(dim);
    std::vector<StridedCopy> result;
    std::int64_t position = 0;
    for (const Operand& input : problem.inputs) {
        const Shape from = physical_shape(input.shape, input.layout);
        StridedCopy copy;
        copy.sizes = from.to_vector();
        copy.x_strides = memory_strides(input);
        copy.y_strides = memory_strides(output);
        copy.y_offset = position * copy.y_strides[at];
        copy.element_bytes = size_of(output.dtype);
        result.push_back(copy);
        position += from[dim];
    }
    return result;
}

}  // namespace dlprim::concat
