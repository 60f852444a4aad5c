// SPDX-License-Identifier: MIT
// onednn.inner_product and onednn.matmul: products of matrices.
#include "kind.hpp"

#include <algorithm>

namespace onednn {

namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

void refuse_adds(const Problem& problem) {
    for (std::size_t i = 0; i < problem.stage_count; ++i)
        if (problem.stages[i].kind == DLPRIM_STAGE_ADD)
            throw Unsupported("it adds nothing but a bias");
}

/// Row-major strides.
Dims strides_of(const Dims& dims) {
    Dims strides(dims.size(), 1);
    for (std::size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * dims[d + 1];
    return strides;
}

class InnerProduct : public Kind {
  public:
    double flops(const Problem& problem) const override {
        const auto& weight = problem.inputs[1];
        return 2.0 *
               static_cast<double>(problem.inputs[0].sizes[0] * weight.sizes[0] * weight.sizes[1]);
    }
    Made make(const Problem& problem, bool) const override {
        refuse_adds(problem);
        const bool bias = integer(problem, "bias") != 0;
        const Dims weight_dims = dims_of(problem.inputs[1]);
        const Dims x_dims{dims_of(problem.inputs[0])[0], weight_dims[1]},
            y_dims{x_dims[0], weight_dims[0]};
        const auto x_type = type_of(problem.inputs[0]), weight_type = type_of(problem.inputs[1]),
                   y_type = type_of(problem.outputs[0]);
        const Desc x(x_dims, x_type, Tag::ab), y(y_dims, y_type, Tag::ab),
            plain_weight(weight_dims, weight_type, Tag::ab);
        const Desc b = bias ? Desc({y_dims[1]}, type_of(problem.inputs[2]), Tag::a) : Desc();
        Made made;
        const dnnl::inner_product_forward::primitive_desc desc(
            {problem.training ? dnnl::prop_kind::forward_training
                              : dnnl::prop_kind::forward_inference,
             x, Desc(weight_dims, weight_type, Tag::any), b, y},
            attributes_of(problem, made, y), processor());
        made.primitive = dnnl::inner_product_forward(desc);
        made.scratchpad = desc.scratchpad_desc();
        made.arguments = {{0, DNNL_ARG_SRC, x, x},
                          {1, DNNL_ARG_WEIGHTS, desc.weights_desc(), plain_weight, true},
                          {problem.input_count, DNNL_ARG_DST, y, y}};
        if (bias) made.arguments.push_back({2, DNNL_ARG_BIAS, b, b});
        return made;
    }
};

class MatMul : public Kind {
  public:
    double flops(const Problem& problem) const override {
        const auto &a = problem.inputs[0], &y = problem.outputs[0];
        double count =
            2.0 * static_cast<double>(a.sizes[a.rank - (transposes(problem, 'a') ? 2 : 1)]);
        for (std::uint32_t d = 0; d < y.rank; ++d) count *= static_cast<double>(y.sizes[d]);
        return count;
    }
    Made make(const Problem& problem, bool) const override {
        refuse_adds(problem);
        const std::size_t rank = std::max<std::size_t>(problem.outputs[0].rank, 2);
        if (problem.inputs[0].rank < 2 || problem.inputs[1].rank < 2)
            throw Unsupported("it supports no vectors");
        const Desc a = factor(problem.inputs[0], rank, transposes(problem, 'a')),
                   b = factor(problem.inputs[1], rank, transposes(problem, 'b')),
                   y = factor(problem.outputs[0], rank, false);
        Made made;
        dnnl::primitive_attr attributes = attributes_of(problem, made, y);
        const bool bias = integer(problem, "bias") != 0;
        if (const double alpha = number(problem, "alpha"); alpha != 1) {
            if (bias) throw Unsupported("oneDNN would multiply the bias by the factor, too");
            attributes.set_output_scales(0, {static_cast<float>(alpha)});
        }
        Dims bias_dims(rank, 1);
        bias_dims.back() = y.dims().back();
        const Desc row =
            bias ? Desc(bias_dims, type_of(problem.inputs[2]), strides_of(bias_dims)) : Desc();
        const dnnl::matmul::primitive_desc desc(
            bias ? dnnl::matmul::desc(a, b, row, y) : dnnl::matmul::desc(a, b, y), attributes,
            processor());
        made.primitive = dnnl::matmul(desc);
        made.scratchpad = desc.scratchpad_desc();
        made.arguments = {{0, DNNL_ARG_SRC, a, a},
                          {1, DNNL_ARG_WEIGHTS, b, b},
                          {problem.input_count, DNNL_ARG_DST, y, y}};
        if (bias) made.arguments.push_back({2, DNNL_ARG_BIAS, row, row});
        return made;
    }

  private:
    static bool transposes(const Problem& problem, char which) {
        return integer(problem, std::string("transpose_") + which) != 0;
    }
    /// The operand with dimensions of 1 in front, and its last two swapped where it is transposed.
    static Desc factor(const dlprim_engine_operand& operand, std::size_t rank, bool transposed) {
        Dims dims = dims_of(operand);
        dims.insert(dims.begin(), rank - dims.size(), 1);
        Dims strides = strides_of(dims);
        if (transposed) {
            std::swap(dims[rank - 1], dims[rank - 2]);
            std::swap(strides[rank - 1], strides[rank - 2]);
        }
        return {dims, type_of(operand), strides};
    }
};

}  // namespace

std::vector<const dlprim_engine*> products() {
    static const InnerProduct inner_product;
    static const MatMul matmul;
    return {engine_of(inner_product, "onednn.inner_product", "InnerProduct"),
            engine_of(matmul, "onednn.matmul", "MatMul")};
}

}  // namespace onednn
