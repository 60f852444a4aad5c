// SPDX-License-Identifier: MIT
// onednn.conv, onednn.conv_backward_data, onednn.conv_backward_filter: convolutions of images of
// two dimensions in three directions.
#include "kind.hpp"

namespace onednn {

namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

enum class Direction { forward, data, filter };

/// A convolution of x [n, c, h, w] with a weight to y in oneDNN's terms.
struct Shape {
    Dims x, weight, y;  ///< the weight has groups in front where there are several
    Dims stride, dilate, front, back;
    dnnl::memory::data_type x_type, weight_type, y_type;

    Shape(const Problem& problem, Direction direction) {
        const dlprim_engine_operand* const operands[] = {&problem.inputs[0], &problem.inputs[1],
                                                         &problem.outputs[0]};
        // Forward: x, weight -> y. Data: y, weight -> x. Filter: x, y -> weight.
        const int at[3][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}};
        const auto* roles = at[static_cast<int>(direction)];
        const auto &given_x = *operands[roles[0]], &given_weight = *operands[roles[1]],
                   &given_y = *operands[roles[2]];
        x = dims_of(given_x);
        weight = dims_of(given_weight);
        y = dims_of(given_y);
        x_type = type_of(given_x);
        weight_type = type_of(given_weight);
        y_type = type_of(given_y);
        const std::int64_t groups = integer(problem, "groups");
        if (groups > 1) {
            weight[0] /= groups;
            weight.insert(weight.begin(), groups);
        }
        const auto pair = [&](const char* name) {
            std::vector<std::int64_t> list = integers(problem, name);
            return list.size() == 1 ? Dims{list[0], list[0]} : Dims{list[0], list[1]};
        };
        stride = pair("stride");
        dilate = pair("dilate");
        front = pair("pad");
        const std::size_t last = weight.size() - 2;
        for (std::size_t d = 0; d < 2; ++d) {
            const std::int64_t span = (weight[last + d] - 1) * dilate[d] + 1;
            back.push_back((y[2 + d] - 1) * stride[d] + span - x[2 + d] - front[d]);
            --dilate[d];  // oneDNN counts the elements between
            if (front[d] < 0) throw Unsupported("it supports no negative padding");
        }
    }
    Tag weight_tag() const { return weight.size() == 5 ? Tag::abcde : Tag::abcd; }
};

class Convolution : public Kind {
  public:
    explicit Convolution(Direction direction) : direction_(direction) {}

    double flops(const Problem& problem) const override {
        const Shape s(problem, direction_);
        double count = 2.0 * static_cast<double>(s.y[0] * s.y[1] * s.y[2] * s.y[3]);
        for (std::size_t d = s.weight.size() - 3; d < s.weight.size(); ++d)
            count *= static_cast<double>(s.weight[d]);
        return count;
    }

    Made make(const Problem& problem, bool plain) const override {
        const Shape s(problem, direction_);
        const Tag images = plain ? Tag::nchw : Tag::any;
        const Desc x(s.x, s.x_type, images), y(s.y, s.y_type, images);
        const bool makes_weight = direction_ == Direction::filter;
        const Desc weight(s.weight, s.weight_type, makes_weight ? s.weight_tag() : Tag::any);
        const bool bias = direction_ == Direction::forward && integer(problem, "bias") != 0;
        const Desc b = bias ? Desc({s.y[1]}, type_of(problem.inputs[2]), Tag::a) : Desc();
        const dnnl::convolution_forward::desc forward(
            problem.training || direction_ != Direction::forward
                ? dnnl::prop_kind::forward_training
                : dnnl::prop_kind::forward_inference,
            dnnl::algorithm::convolution_direct, x, weight, b, y, s.stride, s.dilate, s.front,
            s.back);
        if (direction_ == Direction::forward) return make_forward(problem, s, forward, bias);
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        const dnnl::convolution_forward::primitive_desc hint(forward, processor());
        if (problem.stage_count > 0) throw Unsupported("gradients have no stages");
        if (direction_ == Direction::data) {
            const dnnl::convolution_backward_data::primitive_desc desc(
                {dnnl::algorithm::convolution_direct, x, weight, y, s.stride, s.dilate, s.front,
                 s.back},
                attributes, processor(), hint);
            return {dnnl::convolution_backward_data(desc),
                    {{0, DNNL_ARG_DIFF_DST, desc.diff_dst_desc(), {s.y, s.y_type, Tag::nchw}},
                     {1,
                      DNNL_ARG_WEIGHTS,
                      desc.weights_desc(),
                      {s.weight, s.weight_type, s.weight_tag()},
                      true},
                     {2, DNNL_ARG_DIFF_SRC, desc.diff_src_desc(), {s.x, s.x_type, Tag::nchw}}},
                    desc.scratchpad_desc()};
        }
        const dnnl::convolution_backward_weights::primitive_desc desc(
            {dnnl::algorithm::convolution_direct, x, weight, y, s.stride, s.dilate, s.front,
             s.back},
            attributes, processor(), hint);
        return {dnnl::convolution_backward_weights(desc),
                {{0, DNNL_ARG_SRC, desc.src_desc(), {s.x, s.x_type, Tag::nchw}},
                 {1, DNNL_ARG_DIFF_DST, desc.diff_dst_desc(), {s.y, s.y_type, Tag::nchw}},
                 {2,
                  DNNL_ARG_DIFF_WEIGHTS,
                  desc.diff_weights_desc(),
                  {s.weight, s.weight_type, s.weight_tag()}}},
                desc.scratchpad_desc()};
    }

  private:
    Made make_forward(const Problem& problem, const Shape& s,
                      const dnnl::convolution_forward::desc& forward, bool bias) const {
        // The result's layout, which operands of stages share, does not depend on stages.
        const dnnl::convolution_forward::primitive_desc bare(forward, processor());
        Made made;
        const dnnl::convolution_forward::primitive_desc desc(
            forward, attributes_of(problem, made, bare.dst_desc()), processor());
        made.primitive = dnnl::convolution_forward(desc);
        made.scratchpad = desc.scratchpad_desc();
        made.arguments.push_back({0, DNNL_ARG_SRC, desc.src_desc(), {s.x, s.x_type, Tag::nchw}});
        made.arguments.push_back({1,
                                  DNNL_ARG_WEIGHTS,
                                  desc.weights_desc(),
                                  {s.weight, s.weight_type, s.weight_tag()},
                                  true});
        if (bias) made.arguments.push_back({2, DNNL_ARG_BIAS, desc.bias_desc(), desc.bias_desc()});
        made.arguments.push_back(
            {problem.input_count, DNNL_ARG_DST, desc.dst_desc(), {s.y, s.y_type, Tag::nchw}});
        return made;
    }

    Direction direction_;
};

}  // namespace

std::vector<const dlprim_engine*> convolutions() {
    static const Convolution forward(Direction::forward), data(Direction::data),
        filter(Direction::filter);
    return {engine_of(forward, "onednn.conv", "Convolution2D"),
            engine_of(data, "onednn.conv_backward_data", "Convolution2DBackwardData"),
            engine_of(filter, "onednn.conv_backward_filter", "Convolution2DBackwardFilter")};
}

}  // namespace onednn
