// SPDX-License-Identifier: MIT
// The table from ONNX's operators to ours: the rules of all families.
#include "formats/onnx/call.hpp"

#include <algorithm>

namespace dlprim::onnx {

namespace {

/// Rows of one type by rising `since`.
using Table = std::map<std::string_view, std::vector<const Rule*>>;

const Table& table() {
    static const Table all = [] {
        Table made;
        for (const auto family : {activation_rules(),
                                  arithmetic_rules(),
                                  attention_rules(),
                                  box_rules(),
                                  cache_rules(),
                                  constant_rules(),
                                  control_flow_rules(),
                                  convolution_rules(),
                                  determinant_rules(),
                                  einsum_rules(),
                                  flex_attention_rules(),
                                  fourier_rules(),
                                  gather_rules(),
                                  integer_product_rules(),
                                  label_rules(),
                                  linear_attention_rules(),
                                  loss_rules(),
                                  matmul_rules(),
                                  normalization_rules(),
                                  order_rules(),
                                  pooling_rules(),
                                  position_rules(),
                                  quantization_rules(),
                                  random_rules(),
                                  recurrent_rules(),
                                  reduction_rules(),
                                  region_rules(),
                                  resize_rules(),
                                  sampling_rules(),
                                  scatter_rules(),
                                  selection_rules(),
                                  sequence_rules(),
                                  shape_rules(),
                                  signal_window_rules(),
                                  slicing_rules(),
                                  string_rules(),
                                  tfidf_rules(),
                                  training_rules(),
                                  tree_rules(),
                                  unique_rules(),
                                  linear_model_rules(),
                                  tree_list_rules(),
                                  biased_activation_rules(),
                                  fused_product_rules(),
                                  group_query_attention_rules(),
                                  inverse_rules(),
                                  one_hot_encoder_rules(),
                                  packed_attention_rules(),
                                  rotary_rules(),
                                  skip_normalization_rules(),
                                  svm_rules(),
                                  zip_map_rules(),
                                  quantized_element_rules(),
                                  block_quantized_rules()})
            for (const Rule& rule : family) made[rule.type].push_back(&rule);
        for (auto& item : made)
            std::sort(item.second.begin(), item.second.end(),
                      [](const Rule* a, const Rule* b) { return a->since < b->since; });
        return made;
    }();
    return all;
}

}  // namespace

const Rule* find_rule(std::string_view type, std::int64_t version) {
    const auto found = table().find(type);
    if (found == table().end()) return nullptr;
    const Rule* best = nullptr;
    for (const Rule* rule : found->second)
        if (rule->since <= version) best = rule;
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
