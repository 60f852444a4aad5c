// SPDX-License-Identifier: MIT
// What classifiers and regressions of the domain ai.onnx.ml make of their scores.
#pragma once

#include "formats/onnx/call.hpp"

namespace dlprim::onnx {

/// The scores [rows, classes] after the call's attribute post_transform. NONE, LOGISTIC,
/// SOFTMAX and SOFTMAX_ZERO are known, others throw Error(unsupported).
Ref transformed_scores(Call& call, Ref scores);

/// The labels of the attributes classlabels_ints, classlabels_int64s or classlabels_strings.
struct ClassLabels {
    std::vector<std::string> texts;
    std::vector<std::int64_t> numbers;
    std::size_t size() const { return texts.empty() ? numbers.size() : texts.size(); }
};
ClassLabels class_labels(Call& call);

/// Sets output 0: each row's label, that of its highest score; the first of several. Labels that
/// are strings need scores that are known.
void set_labels(Call& call, const ClassLabels& labels, Ref scores);

}  // namespace dlprim::onnx
