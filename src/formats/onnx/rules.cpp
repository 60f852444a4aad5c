// SPDX-License-Identifier: MIT
// The table from ONNX's operators to ours: the rules of all families.
#include "formats/onnx/call.hpp"

#include <algorithm>

// The families, each of which is a file of src/formats/onnx/rules with a function of this name and
// "_rules".
// clang-format off
#define DLPRIM_RULE_FAMILIES(F) \
    F(activation) F(arithmetic) F(attention) F(biased_activation) F(block_quantized) F(box) \
    F(cache) F(cast) F(constant) F(control_flow) F(convolution) F(einsum) F(elimination) \
    F(flex_attention) F(fourier) F(fused_product) F(gather) F(group_query_attention) \
    F(integer_product) F(label) F(linear_attention) F(linear_model) F(loss) F(matmul) \
    F(normalization) F(one_hot_encoder) F(order) F(packed_attention) F(pooling) F(position) \
    F(quantization) F(quantized_element) F(random) F(recurrent) F(reduction) F(region) F(resize) \
    F(rotary) F(sampling) F(scatter) F(selection) F(sequence) F(shape) F(signal_window) \
    F(skip_normalization) F(slicing) F(string) F(svm) F(tfidf) F(training) F(tree) F(tree_list) \
    F(unique) F(zip_map)
// clang-format on

namespace dlprim::onnx {

#define DECLARE(family) std::vector<Rule> family##_rules();
DLPRIM_RULE_FAMILIES(DECLARE)
#undef DECLARE

namespace {

/// Rows of one type by rising `since`.
using Table = std::map<std::string_view, std::vector<Rule>>;

const Table& table() {
    static const Table all = [] {
        Table made;
        const auto add = [&](std::string_view family, std::vector<Rule> rules) {
            for (Rule& rule : rules) {
                rule.family = family;
                made[rule.type].push_back(std::move(rule));
            }
        };
#define ADD(family) add(#family, family##_rules());
        DLPRIM_RULE_FAMILIES(ADD)
#undef ADD
        for (auto& item : made)
            std::sort(item.second.begin(), item.second.end(),
                      [](const Rule& a, const Rule& b) { return a.since < b.since; });
        return made;
    }();
    return all;
}

}  // namespace

const Rule* find_rule(std::string_view type, std::int64_t version) {
    const auto found = table().find(type);
    if (found == table().end()) return nullptr;
    const Rule* best = nullptr;
    for (const Rule& rule : found->second)
        if (rule.since <= version) best = &rule;
    return best;
}

bool has_rules_of(std::string_view domain) {
    return domain.empty() || std::any_of(table().begin(), table().end(), [&](const auto& item) {
               return item.first.substr(0, item.first.rfind('.')) == domain;
           });
}

std::vector<std::string> supported_types() {
    std::vector<std::string> types;
    for (const auto& item : table()) types.emplace_back(item.first);
    return types;
}

}  // namespace dlprim::onnx
