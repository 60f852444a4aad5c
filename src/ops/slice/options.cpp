// SPDX-License-Identifier: MIT
// Slice's geometry; see options.hpp.
#include "ops/slice/options.hpp"

#include "base/text.hpp"

namespace dlprim::slice {

Options::Options(const Attrs& attrs, const Shape& input) {
    const std::int64_t rank = input.rank();
    const std::int64_t d = attrs.integer("dim");
    require(d >= -rank && d < rank, "dim ", d, " is not a dimension of input ", input);
    dim = static_cast<int>(d < 0 ? d + rank : d);
    const std::int64_t size = input[dim];
    begin = attrs.integer("begin");
    end = attrs.integer("end");
    if (begin < 0) begin += size;
    if (end == -1)
        end = size;
    else if (end < 0)
        end += size;
    require(begin >= 0 && begin < end && end <= size, "begin ", attrs.integer("begin"), " and end ",
            attrs.integer("end"), " leave nothing, or more than there is, of dimension ", dim,
            " of input ", input);
}

std::vector<LayoutChoice> layouts(const Traits& device, const Problem& problem) {
    std::vector<LayoutChoice> result{{{Layout::plain()}, {Layout::plain()}}};
    const Shape& input = problem.inputs[0].shape;
    if (input.rank() != 4) return result;
    const Options options(problem.attrs, input);
    if (device.host || device.wide_vectors) {
        for (const int block : {16, 8}) {
            // A cut inside a block would shift lanes, or leave values other than zero in lanes
            // beyond the end.
            const bool whole =
                options.dim != 1 || (options.begin % block == 0 &&
                                     (options.end % block == 0 || options.end == input[1]));
            if (whole) result.push_back({{Layout::blocked(block)}, {Layout::blocked(block)}});
        }
    }
    result.push_back({{Layout::channels_last()}, {Layout::channels_last()}});
    return result;
}

std::vector<StridedCopy> copies(const Problem& problem) {
    const Operand& input = problem.inputs[0];
    const Operand& output = problem.outputs[0];
    const Options options(problem.attrs, input.shape);
    const Shape to = physical_shape(output.shape, output.layout);
    int dim = options.dim;
    std::int64_t begin = options.begin;
    if (input.layout.kind == Layout::Kind::channels_last && dim > 0) dim = dim == 1 ? 3 : dim - 1;
    if (input.layout.kind == Layout::Kind::blocked && dim == 1) begin /= input.layout.block;
    StridedCopy result;
    result.sizes = to.to_vector();
    result.x_strides = memory_strides(input);
    result.y_strides = memory_strides(output);
    result.x_offset = begin * result.x_strides[static_cast<std::size_t>(dim)];
    result.element_bytes = size_of(output.dtype);
    return {result};
}

}  // namespace dlprim::slice
