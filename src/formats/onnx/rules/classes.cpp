// SPDX-License-Identifier: MIT
// Labels and transformed scores; see classes.hpp.
#include "formats/onnx/rules/classes.hpp"

#include "formats/onnx/rules/shared.hpp"

namespace dlprim::onnx {

namespace {

/// Softmax in which scores of zero stay zero and do not count.
Ref softmax_of_others_than_zero(Builder& build, Ref scores) {
    const Ref top = build.pointwise("y0 = max[1](x0)", {scores});
    const Ref shares =
        build.pointwise("y0 = abs(x0) > p0 ? exp(x0 - x1) : 0", {scores, top}, {1e-7});
    return build.pointwise("y0 = x0 / x1", {shares, build.pointwise("y0 = sum[1](x0)", {shares})});
}

}  // namespace

Ref transformed_scores(Call& call, Ref scores) {
    const std::string transform = call.text("post_transform", "NONE");
    if (transform == "NONE") return scores;
    if (transform == "LOGISTIC")
        return call.build.add1("Activation", {scores}, {{"activation", "sigmoid"}});
    if (transform == "SOFTMAX_ZERO") return softmax_of_others_than_zero(call.build, scores);
    call.supports(transform == "SOFTMAX", "post_transform '", transform, "' is not supported");
    return call.build.add1("Softmax", {scores}, {{"axis", 1}});
}

ClassLabels class_labels(Call& call) {
    ClassLabels labels;
    if (call.given("classlabels_strings")) labels.texts = call.texts("classlabels_strings");
    for (const char* const name : {"classlabels_ints", "classlabels_int64s"})
        if (call.given(name)) labels.numbers = call.integers(name);
    call.check(labels.size() >= 1, "there are no class labels");
    return labels;
}

void set_labels(Call& call, const ClassLabels& labels, Ref scores) {
    Builder& build = call.build;
    const std::int64_t rows = scores->spec.shape[0];
    call.check(scores->spec.shape[1] == static_cast<std::int64_t>(labels.size()), "there are ",
               labels.size(), " class labels for ", scores->spec.shape[1], " scores");
    const Ref top = build.pointwise("y0 = max[1](x0)", {scores});
    const Ref first = build.pointwise("y0 = min[1](x0 == x1 || x0 != x0 ? index(1) : size(1))",
                                      {scores, top}, DType::i64);
    const Ref place = build.reshape(first, {rows});
    if (labels.texts.empty()) {
        const Ref numbers = build.integers("", labels.numbers);
        return call.set(0, gather_computed(call, numbers, place, 0));
    }
    std::vector<std::string> texts;
    for (const std::int64_t at : to_integers(*call.known(place, "labels that are strings")))
        texts.push_back(labels.texts[static_cast<std::size_t>(at)]);
    call.set(0, build.strings("", {rows}, texts));
}

}  // namespace dlprim::onnx
