// SPDX-License-Identifier: MIT
// ZipMap of the domain ai.onnx.ml: a map from labels to scores for each row, which is only an
// output.
#include "formats/onnx/rules/classes.hpp"

namespace dlprim::onnx {

namespace {

void zip_map(Call& call) {
    ClassLabels labels = class_labels(call);
    const Shape& x = call.shape(0);
    call.check(
        (x.rank() == 1 || x.rank() == 2) && x[-1] == static_cast<std::int64_t>(labels.size()),
        "there are ", labels.size(), " class labels for scores of shape ", x.str());
    const Ref rows =
        call.build.cast(call.build.reshape(call.in(0), {x.numel() / x[-1], x[-1]}), DType::f32);
    call.set(0, AnyValue::Maps{std::move(labels.texts), std::move(labels.numbers), rows});
}

}  // namespace

std::vector<Rule> zip_map_rules() {
    return {{"ai.onnx.ml.ZipMap", 1, zip_map}};
}

}  // namespace dlprim::onnx
