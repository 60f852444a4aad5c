// SPDX-License-Identifier: MIT
// Strings: moved, compared, split, joined and counted.
#include "formats/onnx/regex.hpp"
#include "onnx/session_support.hpp"

using namespace onnx_test;

namespace {

std::string attribute_texts(const std::string& name, const std::vector<std::string>& values) {
    return bytes(1, name) + texts(9, values) + onnx_bytes::number(20, 8);
}

}  // namespace

TEST_CASE("strings are moved and compared as numbers are") {
    Model model{.nodes = {node("Gather", {"x", "i"}, {"picked"}),
                          node("Concat", {"picked", "more"}, {"y"}, {{attribute("axis", 0)}}),
                          node("Equal", {"y", "more"}, {"same"}), node("Size", {"y"}, {"size"})},
                .inputs = {value("x", {3}, type_string)},
                .outputs = {value("y", {3}, type_string), value("same", {3}, type_bool),
                            value("size", {}, type_int64)},
                .initializers = {integers("i", {2, 0}), texts_tensor("more", {"a"})}};
    Session session = open_session(model);
    CHECK(session.run({{"x", strings({3}, {"a", "b", "c"})}}) == "string [3]: c a a");
    CHECK(session.output("same") == "bool [3]: 0 1 1");
    CHECK(session.output("size") == "int64 []: 3");
    CHECK(session.run({{"x", strings({3}, {"x", "y", "z"})}}) == "string [3]: z x a");
    model.nodes[0] = node("Neg", {"x"}, {"picked"});
    CHECK(has(open_session(model).error({{"x", strings({3}, {"a", "b", "c"})}}),
              "an input is of strings, which are not supported here"));
}

TEST_CASE("strings are picked by what the device computes") {
    Model model{.nodes = {node("ArgMax", {"scores"}, {"best"},
                               {{attribute("axis", 0), attribute("keepdims", 0)}}),
                          node("Gather", {"names", "best"}, {"y"})},
                .inputs = {value("scores", {2})},
                .outputs = {value("y", {}, type_string)},
                .initializers = {texts_tensor("names", {"cat", "dog"})}};
    Session session = open_session(model);
    CHECK(session.run({{"scores", tensor({2}, {0, 1})}}) == "string []: dog");
    CHECK(session.run({{"scores", tensor({2}, {2, 1})}}) == "string []: cat");
    // An output that the same stage makes is read besides, whichever is named first.
    for (const bool numbers_first : {true, false}) {
        Model both = model;
        both.nodes.insert(both.nodes.begin(), node("Relu", {"scores"}, {"positive"}));
        both.outputs.insert(numbers_first ? both.outputs.begin() : both.outputs.end(),
                            value("positive", {2}));
        Session other = open_session(both);
        CHECK(other.run({{"scores", tensor({2}, {0, 1})}}).find("dog") != std::string::npos);
    }
}

TEST_CASE("patterns know the edges of words") {
    const auto matches = [](const std::string& pattern, const std::string& text) {
        return dlprim::onnx::Regex(pattern).matches(text);
    };
    CHECK(matches(R"(\bcom\b)", "com"));
    CHECK(matches(R"(a\b b\B.)", "a bc"));
    CHECK(!matches(R"(a\bb)", "ab"));
    CHECK(!matches(R"(a\B)", "a"));
    CHECK(matches(R"(\B)", ""));
    CHECK(!matches(R"(\b)", ""));
}

TEST_CASE("words are normalised") {
    Model model;
    const auto run = [&](std::vector<std::string> attributes) {
        attributes.push_back(attribute_texts("stopwords", {"monday"}));
        model.nodes = {node("StringNormalizer", {"x"}, {"y"}, {std::move(attributes)})};
        return open_session(model).run({{"x", strings({3}, {"Monday", "monday", "T\xc3\xa4g"})}});
    };
    model.inputs = {value("x", {3}, type_string)};
    model.outputs = {value("y", {-1}, type_string)};
    CHECK(run({}) == "string [1]: T\xc3\xa4g");
    CHECK(run({attribute("is_case_sensitive", 1)}) == "string [2]: Monday T\xc3\xa4g");
    CHECK(run({attribute("case_change_action", "UPPER")}) == "string [1]: T\xc3\x84G");
}

TEST_CASE("strings are joined and split") {
    Session session = open_session(
        {.nodes = {node("StringConcat", {"x", "end"}, {"joined"}),
                   node("StringSplit", {"joined"}, {"y", "counts"},
                        {{attribute("delimiter", ","), attribute("maxsplit", 2)}})},
         .inputs = {value("x", {2}, type_string)},
         .outputs = {value("y", {2, -1}, type_string), value("counts", {2}, type_int64)},
         .initializers = {texts_tensor("end", {",z"})},
         .opset = 20});
    CHECK(session.run({{"x", strings({2}, {"a,b", "c"})}}) == "string [2, 3]: a b z c z ");
    CHECK(session.output("counts") == "int64 [2]: 3 2");
    CHECK(session.run({{"x", strings({2}, {"a,b,c", "c"})}}) == "string [2, 3]: a b c,z c z ");
}

TEST_CASE("texts that double with every node are an error, not all memory") {
    Model model{.opset = 20};
    for (int i = 0; i < 40; ++i) {
        const std::string from = i == 0 ? "x" : "t" + std::to_string(i);
        model.nodes.push_back(node("StringConcat", {from, from},
                                   {i == 39 ? std::string("y") : "t" + std::to_string(i + 1)}));
    }
    model.inputs = {value("x", {1}, type_string)};
    model.outputs = {value("y", {1}, type_string)};
    dlprim::ONNXSessionOptions options;
    options.max_known_bytes = 1 << 20;
    Session session = open_session(model, options);
    CHECK(has(session.error({{"x", strings({1}, {"two words"})}}), "would take more than"));
}

TEST_CASE("n-grams are counted") {
    Session session = open_session(
        {.nodes = {node(
             "TfIdfVectorizer", {"x"}, {"y"},
             {{attribute("min_gram_length", 1), attribute("max_gram_length", 2),
               attribute("max_skip_count", 1), attribute("mode", "TF"),
               attribute("ngram_counts", Sizes{0, 2}), attribute("ngram_indexes", Sizes{0, 1, 2}),
               attribute_texts("pool_strings", {"a", "b", "a", "b"})}})},
         .inputs = {value("x", {-1}, type_string)},
         .outputs = {value("y", {3})}});
    // "a b" stands once side by side, and once with a word between.
    CHECK(session.run({{"x", strings({4}, {"a", "b", "c", "b"})}}) == "float [3]: 1 2 1");
    CHECK(session.run({{"x", strings({3}, {"a", "c", "b"})}}) == "float [3]: 1 1 1");
}

TEST_CASE("whole strings match a pattern") {
    Model model{.inputs = {value("x", {-1}, type_string)},
                .outputs = {value("y", {-1}, type_bool)},
                .opset = 20};
    const auto session = [&](const std::string& pattern) {
        model.nodes = {node("RegexFullMatch", {"x"}, {"y"}, {{attribute("pattern", pattern)}})};
        return open_session(model);
    };
    const auto matches = [&](const std::string& pattern, const std::string& text) {
        const std::string y = session(pattern).run({{"x", strings({1}, {text})}});
        return y == "bool [1]: 1";
    };
    CHECK(matches("www\\.[\\w.-]+\\.com", "www.google.com"));
    CHECK(!matches("www\\.[\\w.-]+\\.com", "www.google.com/"));
    CHECK(matches("(ab|c)*d?", "abcab"));
    CHECK(matches("(ab|c)*d?", "d"));
    CHECK(!matches("(ab|c)*d?", "abd."));
    CHECK(matches("a{2,3}", "aaa"));
    CHECK(!matches("a{2,3}", "aaaa"));
    CHECK(!matches("a{2,3}", "a"));
    CHECK(matches("^[^\\d]+$", "abc"));
    CHECK(!matches("^[^\\d]+$", "ab1"));
    CHECK(matches("[a-c\\]]+?", "ab]"));
    CHECK(matches(".", "\xc3\xa4"));
    CHECK(!matches(".", "\n"));
    CHECK(matches("", ""));
    CHECK(matches("(a*)*(a*)*(a*)*b", std::string(2000, 'a') + "b"));  // no backtracking
    for (const char* pattern :
         {"(", ")", "[a", "a{1001}", "*", "(?i)a", "[b-a]", "(a{1000}){1000}", "\\1", "a{2,1}"})
        CHECK(has(session(pattern).error({{"x", strings({1}, {"a"})}}), "is not supported"));
}
