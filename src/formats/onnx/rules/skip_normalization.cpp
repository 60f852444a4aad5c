// SPDX-License-Identifier: MIT
// Normalisations of com.microsoft behind a sum: with a skip connection and a bias, or of
// embeddings.
#include "formats/onnx/rules/shared.hpp"

namespace dlprim::onnx {

namespace {

/// Input, skip and bias added, which is output 3.
Ref skip_sum(Call& call, int bias) {
    std::vector<Ref> inputs{call.in(0), call.in(1)};
    if (call.has(bias)) inputs.push_back(call.in(bias));
    const Ref sum = call.build.pointwise(inputs.size() == 2 ? "y0 = x0 + x1" : "y0 = x0 + x1 + x2",
                                         inputs, call.dtype(0));
    call.check(sum->spec.shape == call.shape(0), "a skip of shape ", call.shape(1).str(),
               " does not fit an input of shape ", call.shape(0).str());
    call.set(3, sum);
    return sum;
}

void skip_layer_norm(Call& call) {
    const double eps = call.number("epsilon", 1e-12f);
    const Ref sum = skip_sum(call, 4);
    std::vector<AnyValue> inputs{sum, call.in(2)};
    if (call.has(3)) inputs.emplace_back(call.in(3));
    const bool more = call.wants(1) || call.wants(2);
    const std::vector<Ref> made =
        call.made_by("LayerNormalization", 17, inputs, {{"epsilon", {eps}}}, more ? 3 : 1);
    for (int i = 0; i < std::ssize(made); ++i) call.set(i, made[static_cast<std::size_t>(i)]);
}

void skip_rms_norm(Call& call) {
    const double eps = call.number("epsilon", 1e-12f);
    const Ref sum = skip_sum(call, 3);
    const std::vector<Ref> made = call.made_by("SimplifiedLayerNormalization", 1, {sum, call.in(2)},
                                               {{"epsilon", {eps}}}, call.wants(2) ? 2 : 1);
    call.set(0, made[0]);
    if (call.wants(2)) call.set(2, made[1]);
}

/// The embeddings of words, positions and segments added, and LayerNorm of the sum.
void embedding_norm(Call& call) {
    Builder& build = call.build;
    const Shape ids = call.shape(0);
    call.check(ids.rank() == 2, "word IDs of shape ", ids.str(), " have not 2 dimensions");
    call.ignore("mask_index_type");  // whether output 1 is there says the node
    std::vector<Ref> parts{gather_computed(call, call.in(2), call.in(0), 0)};
    if (call.has(8)) {
        parts.push_back(gather_computed(call, call.in(3), call.in(8), 0));
    } else {
        call.check(call.shape(3)[0] >= ids[1], "there are ", call.shape(3)[0], " positions for ",
                   ids[1], " words");
        parts.push_back(build.slice(call.in(3), 0, 0, ids[1]));
    }
    if (call.has(4)) parts.push_back(gather_computed(call, call.in(4), call.in(1), 0));
    const Ref sum = build.pointwise(parts.size() == 2 ? "y0 = x0 + x1" : "y0 = x0 + x1 + x2", parts,
                                    call.dtype(2));
    call.set(0, call.made_by("LayerNormalization", 17, {sum, call.in(5), call.in(6)},
                             {{"epsilon", {call.number("epsilon", 1e-12f)}}})[0]);
    if (call.wants(1))  // how many words of each row count
        call.set(
            1,
            call.has(7)
                ? build.reshape(build.pointwise("y0 = sum[1](x0 == 1)", {call.in(7)}, DType::i32),
                                {ids[0]})
                : build.constant("", host_integers({ids[0]}, Ints(static_cast<std::size_t>(ids[0])),
                                                   DType::i32)));
    call.set(2, sum);
}

}  // namespace

std::vector<Rule> skip_normalization_rules() {
    return {
        {"com.microsoft.EmbedLayerNormalization", 1, embedding_norm},
        {"com.microsoft.SkipLayerNormalization", 1, skip_layer_norm},
        {"com.microsoft.SkipSimplifiedLayerNormalization", 1, skip_rms_norm},
    };
}

}  // namespace dlprim::onnx
