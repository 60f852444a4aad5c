// SPDX-License-Identifier: MIT
// Attention in forms that are worth the same, by masks, windows and lengths, and what computes it
// on a GPU.
#include "onnx/session_support.hpp"

#include <algorithm>
#include <limits>
#include <utility>

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

namespace {

constexpr std::int64_t positions = 1024, features = 64;

/// A node on floats of these shapes, by name, that makes "y".
Model model_of(const std::string& type, const std::vector<std::string>& attributes,
               const std::vector<std::pair<std::string, Sizes>>& inputs) {
    Model model;
    std::vector<std::string> names;
    for (const auto& [name, shape] : inputs) {
        names.push_back(name);
        if (!name.empty() && name != "lasts" && name != "total")
            model.inputs.push_back(value(name, shape));
    }
    const bool fused = type != "Attention";
    model.nodes = {node(type, names, {"y", "keys", "values"},
                        {attributes, "attention", fused ? "com.microsoft" : ""})};
    model.initializers = {integers("lasts", {positions - 1}), integers("total", {positions})};
    if (fused) model.domains = {{"com.microsoft", 1}};
    model.opset = 25;
    model.outputs = {bytes(1, "y")};
    return model;
}

/// The engine of attention that a network of the model takes on a GPU; empty for none.
std::string engine_of(const Model& model) {
    const Folder folder;
    const dlprim::Context device(std::string("file:") + DLPRIM_DEVICES_DIR + "/h200.json");
    dlprim::NetOptions options;
    options.mode = dlprim::Mode::inference;
    dlprim::Net net =
        dlprim::Net::from_onnx_file(device, folder.write("model.onnx", model.str()), options);
    for (const dlprim::NodeReport& report : net.nodes())
        if (report.engine.rfind("attention.", 0) == 0) return report.engine;
    return "";
}

}  // namespace

TEST_CASE("heads, windows and caches that do not fit are refused in one sentence") {
    using Inputs = std::vector<std::pair<std::string, Sizes>>;
    const auto refused = [](const std::string& type, const std::vector<std::string>& attributes,
                            const Inputs& inputs, const std::string& sentence) {
        INFO(sentence);
        const std::string error =
            dlprim::testing::message_of([&] { engine_of(model_of(type, attributes, inputs)); });
        CHECK(has(error, sentence));
        CHECK(!has(error, "\n"));
    };
    const auto heads = [](std::int64_t count) {
        const Sizes keys{2, count, 6, 8};
        return Inputs{{"q", {2, 4, 5, 8}}, {"k", keys}, {"v", keys}};
    };
    const auto rows = [](std::int64_t width) {
        const Sizes keys{1, positions, width};
        return Inputs{{"q", {1, positions, 32}},
                      {"k", keys},
                      {"v", keys},
                      {"", {}},
                      {"", {}},
                      {"lasts", {}},
                      {"total", {}}};
    };
    refused("Attention", {}, heads(3), "4 heads of queries are not a multiple of 3 heads of keys");
    refused("Attention", {attribute("left_window_size", -2)}, heads(4),
            "left_window_size is -2 and right_window_size is -1; each must be 0 or more");
    Inputs with_past = heads(4);
    with_past.insert(with_past.end(), {{"", {}}, {"past", {2, 4, 3, 8}}});
    refused("Attention", {}, with_past, "past_key and past_value need each other");
    Inputs flat = rows(32);
    flat.resize(3);
    refused("Attention", {attribute("q_num_heads", 5), attribute("kv_num_heads", 5)}, flat,
            "the 32 features of a tensor of shape [1, 1024, 32] do not divide into 5 heads");
    refused("MultiHeadAttention", {}, flat, "num_heads is 0, and must be 1 or more");
    const auto grouped = [](std::int64_t count) {
        return std::vector<std::string>{attribute("num_heads", 4),
                                        attribute("kv_num_heads", count)};
    };
    refused("GroupQueryAttention", grouped(3), rows(24),
            "num_heads is 4, which is not a multiple of kv_num_heads, 3");
    refused("GroupQueryAttention", grouped(2), rows(24),
            "are not of 2 heads with 8 features, as those of queries");
    std::vector<std::string> attributes = grouped(2);
    attributes.push_back(attribute("local_window_size", std::int64_t{0}));
    refused("GroupQueryAttention", attributes, rows(16),
            "local_window_size is 0, and must be 1 or more, or -1 for none");
}

TEST_CASE("attention of all operators is computed by engines of attention") {
    const Sizes heads{1, 8, positions, features}, shared{1, 2, positions, features},
        step{1, 8, 128, features}, past{1, 8, positions, features};
    using Attributes = std::vector<std::string>;
    const std::vector<std::pair<std::string, Sizes>> qkv{
        {"q", heads}, {"k", shared}, {"v", shared}};
    for (const Attributes& attributes :
         {Attributes{},
          {attribute("is_causal", 1)},
          {number_attribute("softcap", 20)},
          {attribute("is_causal", 1), attribute("left_window_size", 200)},
          {attribute("left_window_size", 200), attribute("right_window_size", 50)}})
        CHECK(engine_of(model_of("Attention", attributes, qkv)) == "attention.wgmma");
    CHECK(engine_of(model_of(
              "Attention", {},
              {{"q", heads}, {"k", shared}, {"v", shared}, {"mask", {positions, positions}}})) ==
          "attention.wgmma");
    CHECK(engine_of(model_of("Attention", {attribute("is_causal", 1)},
                             {{"q", step},
                              {"k", step},
                              {"v", step},
                              {"", {}},
                              {"past_key", past},
                              {"past_value", past}})) == "attention.wgmma");
    const Sizes joined{1, positions, 8 * features}, few{1, positions, 2 * features};
    CHECK(engine_of(model_of(
              "MultiHeadAttention", {attribute("num_heads", 8)},
              {{"q", joined}, {"k", joined}, {"v", joined}, {"", {}}, {"mask", {1, positions}}})) ==
          "attention.wgmma");
    const Sizes angles{positions, features / 2};
    CHECK(engine_of(model_of(
              "GroupQueryAttention",
              {attribute("num_heads", 8), attribute("kv_num_heads", 2), attribute("do_rotary", 1),
               attribute("local_window_size", 300), number_attribute("softcap", 30)},
              {{"q", joined},
               {"k", few},
               {"v", few},
               {"", {}},
               {"", {}},
               {"lasts", {}},
               {"total", {}},
               {"cos", angles},
               {"sin", angles}})) == "attention.wgmma");
}

TEST_CASE("windows, caps and caches give what masks that say the same give") {
    Attention attention;
    // Keys 0 to 4 and queries 0 to 2: two positions each, up to their own.
    const std::vector<char> band{1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0};
    const std::vector<std::string> window{attribute("is_causal", 1),
                                          attribute("left_window_size", 1)};
    const std::string y = attention.run(window);
    CHECK(y == attention.run({}, {{"mask", truth({3, 5}, band)}}));
    CHECK(y != attention.run({attribute("is_causal", 1)}));
    // Of floats, which are added: those of the window are 0.
    Values added(15, -std::numeric_limits<float>::infinity());
    for (std::size_t i = 0; i < added.size(); ++i)
        if (band[i] != 0) added[i] = 0;
    CHECK(y == attention.run({}, {{"mask", tensor({3, 5}, added)}}));
    // A cap far above all scores leaves them as they are; a low one does not.
    CHECK(attention.run({number_attribute("softcap", 1e6f)}) == attention.run({}));
    CHECK(attention.run({number_attribute("softcap", 0.5f)}) != attention.run({}));
    // A cache moves the queries: with two tokens in it they stand at 2 to 4 of 7 keys.
    const ONNXValue past = ramp({2, 2, 2, 4});
    const std::vector<char> moved{1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0};
    CHECK(attention.run({attribute("is_causal", 1)}, {{"past_key", past}, {"past_value", past}}) ==
          attention.run(
              {}, {{"mask", truth({3, 7}, moved)}, {"past_key", past}, {"past_value", past}}));
}
