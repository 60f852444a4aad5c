// SPDX-License-Identifier: MIT
// Options of operators: kinds, defaults, misspellings; text helpers.
#include "base/attrs.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"

#include <string>
#include <string_view>
#include <vector>

using namespace dlprim;

namespace {

const Schema schema{
    {"kernel", OptionKind::integers, Ints{}, "size", true},
    {"stride", OptionKind::integers, std::int64_t{1}, "step"},
    {"bias", OptionKind::boolean, true, "adds a bias"},
    {"eps", OptionKind::number, std::int64_t{0}, "a small number"},
    {"mode", OptionKind::text, std::string("max"), "how", false, "method"},
};

std::string complaint(const Attrs& given) {
    try {
        schema.complete(given, "[Pooling2D 'p']");
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace

TEST_CASE("a schema completes and converts") {
    const Attrs attrs = schema.complete(
        {{"kernel", 3.0}, {"bias", std::int64_t{0}}, {"fwd_algo", std::int64_t{7}}}, "x");
    CHECK(attrs.str() == "bias=0 eps=0 kernel=3 mode=max stride=1");
    CHECK(std::holds_alternative<double>(attrs.items().at("eps")));
    CHECK(std::holds_alternative<Ints>(attrs.items().at("stride")));
    CHECK(attrs.ints("kernel") == Ints{3});
    CHECK_FALSE(attrs.has("fwd_algo"));
    CHECK(schema.complete(attrs, "x") == attrs);
    const Attrs other =
        schema.complete({{"kernel", std::int64_t{3}}, {"method", std::string("avg")}}, "x");
    CHECK(other.text("mode") == "avg");
    CHECK_FALSE(other.has("method"));
}

TEST_CASE("a schema's complaints help") {
    CHECK(complaint({}) == "[Pooling2D 'p'] option 'kernel' is missing");
    CHECK(complaint({{"kernel", std::int64_t{3}}, {"strid", std::int64_t{2}}}) ==
          "[Pooling2D 'p'] there is no option 'strid'; did you mean 'stride'?");
    CHECK(complaint({{"kernel", std::int64_t{3}},
                     {"mode", std::string("avg")},
                     {"method", std::string("avg")}}) ==
          "[Pooling2D 'p'] options 'mode' and 'method' are the same option; give it once");
    CHECK(complaint({{"kernel", 2.5}}).find("'kernel' must be an integer") != std::string::npos);
    CHECK(
        complaint({{"kernel", std::int64_t{1}}, {"bias", std::int64_t{2}}}).find("true or false") !=
        std::string::npos);
    CHECK(complaint({{"kernel", std::int64_t{1}}, {"mode", true}}).find("a text") !=
          std::string::npos);
}

TEST_CASE("canonical text tells texts apart") {
    CHECK(Attrs{{"a", std::string("x b=y")}}.str() !=
          Attrs({{"a", std::string("x")}, {"b", std::string("y")}}).str());
    CHECK(Attrs{{"d", 0.1}}.str() == "d=0.1");
    CHECK(Attrs{{"d", Doubles{1, 0.5}}}.str() == "d=1,0.5");
}

TEST_CASE("nearest names") {
    const std::vector<std::string> names = {"Convolution2D", "InnerProduct", "Pooling2D"};
    CHECK(nearest("convolution2d", names) == "Convolution2D");
    CHECK(nearest("Poling2D", names) == "Pooling2D");
    CHECK(nearest("Zzzzzzzzz", names).empty());
    CHECK(nearest(std::string(100000, 'x'), names).empty());
    CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
    CHECK(join(names, "-") == "Convolution2D-InnerProduct-Pooling2D");
}

TEST_CASE("hashes differ") {
    CHECK(hash_hex("a") != hash_hex("b"));
    CHECK(hash_hex("").size() == 32);
    CHECK(hash64("a", 1) != hash64("a", 2));
    CHECK(hash_hex("abc") == hash_hex("abc"));
}

TEST_CASE("the nearest name is a misspelling, or a part, or short for it") {
    const std::vector<std::string> names{"Concat",    "Convolution2D",  "BatchNorm", "Abs",
                                         "Softmax",   "InnerProduct",   "fc.0",      "ab",
                                         "Pooling2D", "SoftmaxWithLoss"};
    const auto near = [&](std::string_view name) { return nearest(name, names); };
    CHECK(near("Cnocat") == "Concat");
    CHECK(near("softmax") == "Softmax");
    CHECK(near("Convolution3D") == "Convolution2D");
    CHECK(near("fc.1") == "fc.0");
    // Concat differs in three of six letters, which is no useful suggestion.
    CHECK(near("Conv2D") == "Convolution2D");
    CHECK(near("conv") == "Convolution2D");
    CHECK(near("BatchNormalization") == "BatchNorm");
    CHECK(near("InnerProductLayer") == "InnerProduct");
    CHECK(near("Pool2D") == "Pooling2D");
    for (const char* nothing : {"Add", "Dense", "x", "", "abcdef", "Zzzzzzzzzzzz"})
        CHECK(near(nothing).empty());
    CHECK(near(std::string(100000, 'C')).empty());
    CHECK(nearest("name", {}).empty());
}
