// SPDX-License-Identifier: MIT
// Transpose: permutes dimensions. Its gradient is the inverse permutation.
#include "base/text.hpp"
#include "graph/declared_operator.hpp"
#include "graph/defines_edges.hpp"
#include "ops/transpose/options.hpp"

#include <numeric>

namespace dlprim::transpose {

Ints permutation(const Attrs& attrs, const Shape& input) {
    const int rank = input.rank();
    const auto resolve = [&](std::int64_t d, const char* option) {
        if (d < -rank || d >= rank)
            fail(ErrorKind::invalid_argument, option, " has ", d, ", which input ", input.str(),
                 " does not have");
        return d < 0 ? d + rank : d;
    };
    Ints dims = attrs.ints("dims");
    if (dims.empty()) {
        const std::int64_t a = resolve(attrs.integer("dim0"), "dim0");
        const std::int64_t b = resolve(attrs.integer("dim1"), "dim1");
        dims.resize(static_cast<std::size_t>(rank));
        std::iota(dims.begin(), dims.end(), 0);
        std::swap(dims[static_cast<std::size_t>(a)], dims[static_cast<std::size_t>(b)]);
        return dims;
    }
    if (dims.size() != static_cast<std::size_t>(rank))
        fail(ErrorKind::invalid_argument, "dims has ", dims.size(), " entries, input ", input.str(),
             " has ", rank, " dimensions");
    std::vector<bool> seen(dims.size(), false);
    for (std::int64_t& d : dims) {
        d = resolve(d, "dims");
        require(!seen[static_cast<std::size_t>(d)], "dims names dimension ", d,
                " twice; it is a permutation");
        seen[static_cast<std::size_t>(d)] = true;
    }
    return dims;
}

Shape output_shape(const Shape& input, const Ints& permutation) {
    Ints sizes;
    for (const std::int64_t d : permutation) sizes.push_back(input[static_cast<int>(d)]);
    return Shape(sizes);
}

std::vector<StridedCopy> copies(const Problem& problem) {
    const Shape& x = problem.inputs[0].shape;
    const Shape& y = problem.outputs[0].shape;
    const Ints strides = memory_strides(problem.inputs[0]);
    StridedCopy result;
    result.sizes = y.to_vector();
    for (const std::int64_t d : permutation(problem.attrs, x))
        result.x_strides.push_back(strides[static_cast<std::size_t>(d)]);
    result.y_strides = memory_strides(problem.outputs[0]);
    result.element_bytes = size_of(problem.outputs[0].dtype);
    return {result};
}

namespace {

/// Visits the oracle's elements: f(index in the input, index in the output).
template <typename F>
void visit(const Shape& x, const Ints& dims, F&& f) {
    const Shape y = output_shape(x, dims);
    const Ints strides = x.strides();
    for (std::int64_t to = 0; to < y.numel(); ++to) {
        std::int64_t rest = to, from = 0;
        for (int d = y.rank(); d-- > 0;) {
            from +=
                rest % y[d] * strides[static_cast<std::size_t>(dims[static_cast<std::size_t>(d)])];
            rest /= y[d];
        }
        f(static_cast<std::size_t>(from), static_cast<std::size_t>(to));
    }
}

class Transpose : public DeclaredOperator<ops::Transpose>, public DefinesEdges {
  public:
    FloatTypes float_types(const Attrs&) const override { return FloatTypes::all; }
    bool defines_edges(const Attrs&) const override { return true; }
    std::vector<TensorSpec> infer(const Attrs& attrs,
                                  std::span<const TensorSpec> inputs) const override {
        const Shape& x = inputs[0].shape;
        return {{output_shape(x, permutation(attrs, x)), inputs[0].dtype}};
    }

    /// Where only dimensions of size 1 change places, no element does.
    bool is_beginning(const Node& node, const Shape& input) const override {
        int last = -1;
        for (const std::int64_t d : permutation(node.attrs, input)) {
            const int dim = static_cast<int>(d);
            if (input[dim] == 1) continue;
            if (dim < last) return false;
            last = dim;
        }
        return true;
    }

    void gradient(GradientContext& context) const override {
        const ValueId dy = context.output_gradients[0];
        const Ints dims =
            permutation(context.node.attrs, context.graph.shape(context.node.inputs[0]));
        Ints inverse(dims.size());
        for (std::size_t i = 0; i < dims.size(); ++i)
            inverse[static_cast<std::size_t>(dims[i])] = static_cast<std::int64_t>(i);
        context.input_gradients[0] =
            inverse.empty() ? dy
                            : context.graph.add1("Transpose", context.node.name + "/backward", {dy},
                                                 {{"dims", inverse}});
    }

    void oracle(OracleCall& call) const override {
        const HostArray& x = call.inputs[0];
        HostArray& y = call.outputs[0];
        const Ints dims = permutation(call.attrs, x.shape);
        y = x;
        y.shape = output_shape(x.shape, dims);
        visit(x.shape, dims, [&](std::size_t from, std::size_t to) { y.data[to] = x.data[from]; });
    }
    void oracle_backward(OracleBackwardCall& call) const override {
        HostArray& dx = call.input_gradients[0];
        const HostArray& dy = call.output_gradients[0];
        dx = call.inputs[0];
        visit(dx.shape, permutation(call.attrs, dx.shape),
              [&](std::size_t from, std::size_t to) { dx.data[from] = dy.data[to]; });
    }
};

}  // namespace

void register_transpose(OperatorRegistry& operators, EngineRegistry& engines) {
    operators.add(std::make_unique<Transpose>());
    add_copy_engines(engines, movement);
}

}  // namespace dlprim::transpose
