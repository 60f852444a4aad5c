// SPDX-License-Identifier: MIT
// Attention in forms that are worth the same: by the library's operator and by products, by heads
// in three and in four dimensions, by masks, windows and lengths.
#include "onnx/session_support.hpp"

#include <algorithm>
#include <limits>

using namespace onnx_test;

namespace {

ONNXValue ramp(const Sizes& shape) {
    Values values;
    for (std::int64_t i = 0; i < dlprim::Shape(shape).numel(); ++i)
        values.push_back(static_cast<float>((i * 5) % 13) * 0.125f - 0.5f);
    return tensor(shape, values);
}

/// Results of "y" for queries of 4 heads and keys and values of 2, of 3 and 5 positions.
class Attention {
  public:
    std::string run(const std::vector<std::string>& attributes,
                    std::map<std::string, ONNXValue> more = {}, bool flat = false) {
        Model model;
        std::vector<std::string> inputs{"q", "k", "v"};
        model.inputs = {value("q", flat ? Sizes{2, 3, 16} : Sizes{2, 4, 3, 4}),
                        value("k", flat ? Sizes{2, 5, 8} : Sizes{2, 2, 5, 4}),
                        value("v", flat ? Sizes{2, 5, 8} : Sizes{2, 2, 5, 4})};
        for (const char* name : {"mask", "past_key", "past_value", "lengths"}) {
            const auto given = more.find(name);
            inputs.emplace_back(given == more.end() ? "" : name);
            if (given == more.end()) continue;
            const dlprim::DType dtype = given->second.tensor().dtype;
            model.inputs.push_back(value(name, given->second.tensor().shape.to_vector(),
                                         dtype == dlprim::DType::f32   ? type_float
                                         : dtype == dlprim::DType::i64 ? type_int64
                                                                       : type_bool));
        }
        model.nodes = {node("Attention", inputs, {"y"}, {attributes})};
        model.outputs = {value("y", flat ? Sizes{2, 3, 16} : Sizes{2, 4, 3, 4})};
        model.opset = 25;
        more["q"] = ramp(flat ? Sizes{2, 3, 16} : Sizes{2, 4, 3, 4});
        more["k"] = ramp(flat ? Sizes{2, 5, 8} : Sizes{2, 2, 5, 4});
        more["v"] = ramp(flat ? Sizes{2, 5, 8} : Sizes{2, 2, 5, 4});
        Session session = open_session(model);
        return session.run({more.begin(), more.end()});
    }
};

ONNXValue truth(const Sizes& shape, const std::vector<char>& values) {
    return value_of(dlprim::Shape(shape), dlprim::DType::boolean, values);
}

}  // namespace

TEST_CASE("masks, windows and causal attention agree where they say the same") {
    Attention attention;
    const std::vector<char> triangle{1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0};
    const std::string causal = attention.run({attribute("is_causal", 1)});
    CHECK(causal == attention.run({}, {{"mask", truth({3, 5}, triangle)}}));
    CHECK(causal == attention.run({attribute("right_window_size", std::int64_t{0})}));
    CHECK(causal != attention.run({}));
    // Columns that a mask lacks are masked.
    CHECK(causal ==
          attention.run({attribute("is_causal", 1)}, {{"mask", truth({1, 3}, {1, 1, 1})}}));
    CHECK(attention.run({}, {{"lengths", sizes({5, 5})}}) == attention.run({}));
}

TEST_CASE("a query that sees nothing gives zeros") {
    Attention attention;
    const float none = -std::numeric_limits<float>::infinity();
    Values bias(15, 0);
    std::fill(bias.begin(), bias.begin() + 5, none);
    const std::string y = attention.run({}, {{"mask", tensor({3, 5}, bias)}});
    CHECK(has(y, "float [2, 4, 3, 4]: 0 0 0 0 "));
    CHECK(!has(y, "nan"));
    // Two keys and three queries: the first of them stands in front of all keys.
    const std::string few =
        attention.run({attribute("is_causal", 1)}, {{"lengths", sizes({2, 2})}});
    CHECK(has(few, "float [2, 4, 3, 4]: 0 0 0 0 "));
    CHECK(!has(few, "nan"));
}

TEST_CASE("attention refuses what does not fit") {
    Attention attention;
    const auto error = [&](const std::vector<std::string>& attributes, bool flat) {
        return dlprim::testing::message_of([&] { attention.run(attributes, {}, flat); });
    };
    CHECK(has(error({}, true), "q_num_heads"));
    CHECK(
        has(error({attribute("q_num_heads", 4), attribute("kv_num_heads", 2)}, true), "no error"));
    CHECK(has(error({attribute("qk_matmul_output_mode", 7)}, false), "qk_matmul_output_mode is 7"));
    CHECK(has(error({attribute("softmax_precision", 7)}, false),
              "softmax_precision 7 is no float type"));
    CHECK(has(error({attribute("colour", 7)}, false), "attribute 'colour' is not supported"));
}
