// SPDX-License-Identifier: MIT
// onednn.pooling: maxima and means of windows in images of two dimensions.
#include "kind.hpp"

namespace onednn {

namespace {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

class Pooling : public Kind {
  public:
    double flops(const Problem&) const override { return 0; }
    Made make(const Problem& problem, bool plain) const override {
        if (problem.output_count != 1) throw Unsupported("it does not return positions");
        if (problem.stage_count > 0) throw Unsupported("it supports no stages");
        const Dims x = dims_of(problem.inputs[0]), y = dims_of(problem.outputs[0]);
        if (x.size() != 4) throw Unsupported("it supports images of two dimensions");
        const auto pair = [&](const char* name) {
            const auto list = integers(problem, name);
            if (list.empty()) throw Unsupported("it needs a window");
            return list.size() == 1 ? Dims{list[0], list[0]} : Dims{list[0], list[1]};
        };
        const Dims kernel = pair("kernel"), stride = pair("stride"), front = pair("pad");
        for (const std::int64_t step : pair("dilate"))
            if (step != 1) throw Unsupported("it supports no dilation");
        if (integer(problem, "divisor_override") != 0 || !integers(problem, "output").empty() ||
            integer(problem, "global") != 0)
            throw Unsupported("it supports windows of one size");
        const bool means = text(problem, "mode") == "avg";
        const bool counts_padding = integer(problem, "count_include_pad") != 0;
        const auto declared = integers(problem, "pad");
        Dims back;
        for (std::size_t d = 0; d < 2; ++d) {
            back.push_back((y[2 + d] - 1) * stride[d] + kernel[d] - x[2 + d] - front[d]);
            const std::int64_t given = declared[declared.size() == 4   ? 2 + d
                                                : declared.size() == 2 ? d
                                                                       : 0];
            // Elements beyond the padding are not counted, but oneDNN does.
            if (means && counts_padding && back[d] > given)
                throw Unsupported("it counts what lies beyond the padding");
        }
        const auto type = type_of(problem.inputs[0]);
        const Tag images = plain ? Tag::nchw : Tag::any;
        dnnl::primitive_attr attributes;
        attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
        // Of inference: in training oneDNN has positions of its own.
        const dnnl::pooling_forward::primitive_desc desc(
            {dnnl::prop_kind::forward_inference,
             !means           ? dnnl::algorithm::pooling_max
             : counts_padding ? dnnl::algorithm::pooling_avg_include_padding
                              : dnnl::algorithm::pooling_avg_exclude_padding,
             Desc(x, type, plain ? Tag::nchw : Tag::nChw16c), Desc(y, type, images), stride, kernel,
             front, back},
            attributes, processor());
        return {dnnl::pooling_forward(desc),
                {{0, DNNL_ARG_SRC, desc.src_desc(), Desc(x, type, Tag::nchw)},
                 {problem.input_count, DNNL_ARG_DST, desc.dst_desc(), Desc(y, type, Tag::nchw)}},
                desc.scratchpad_desc()};
    }
};

}  // namespace

std::vector<const dlprim_engine*> poolings() {
    static const Pooling pooling;
    return {engine_of(pooling, "onednn.pooling", "Pooling")};
}

}  // namespace onednn
