// SPDX-License-Identifier: MIT
// Options of operators: kinds, defaults, misspellings; text helpers.
#include "base/hash.hpp"
#include "base/schema.hpp"
#include "base/text.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace dlprim;

namespace {

struct Window {
    static constexpr std::string_view type = "Window";
    ops::IntList kernel = {}, stride = 1;
    bool bias = true;
    double eps = 0;
    std::string mode = "max";
    std::optional<DType> dtype = {};
    static constexpr auto fields() {
        return ops::option_table(
            ops::required<&Window::kernel>("size").between(1, 100),
            ops::option<&Window::stride>("step"),
            ops::option<&Window::bias>("whether it adds a bias"),
            ops::option<&Window::eps>("a small number").at_least(0),
            ops::option<&Window::mode>("how").also("method").one_of("max", "avg"),
            ops::option<&Window::dtype>("of the result"));
    }
};

const Schema& schema = schema_of<Window>();

std::string complaint(const Attrs& given) {
    return testing::message_of([&] { schema.complete(given, "[Pooling2D 'p']"); });
}

}  // namespace

TEST_CASE("a schema completes and converts") {
    const Attrs attrs = schema.complete(
        {{"kernel", 3.0}, {"bias", std::int64_t{0}}, {"fwd_algo", std::int64_t{7}}}, "x");
    CHECK(attrs.str() == "bias=0 dtype= eps=0 kernel=3 mode=max stride=1");
    CHECK(std::holds_alternative<double>(attrs.at("eps")));
    CHECK(std::holds_alternative<Ints>(attrs.at("stride")));
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
    const Attr three = std::int64_t{3};
    CHECK(complaint({{"kernel", Ints{3, 0}}}) ==
          "[Pooling2D 'p'] kernel must be at least 1, not 0");
    CHECK(complaint({{"kernel", std::int64_t{101}}}) ==
          "[Pooling2D 'p'] kernel must be at most 100, not 101");
    CHECK(complaint({{"kernel", three}, {"eps", -0.5}}) ==
          "[Pooling2D 'p'] eps must be at least 0, not -0.5");
    CHECK(complaint({{"kernel", three}, {"eps", std::nan("")}}).find("not nan") !=
          std::string::npos);
    CHECK(complaint({{"kernel", three}, {"mode", std::string("avgs")}}) ==
          "[Pooling2D 'p'] mode 'avgs' is not one of max, avg; did you mean 'avg'?");
    CHECK(
        complaint({{"kernel", std::int64_t{1}}, {"bias", std::int64_t{2}}}).find("true or false") !=
        std::string::npos);
    CHECK(complaint({{"kernel", std::int64_t{1}}, {"mode", true}}).find("a text") !=
          std::string::npos);
}

TEST_CASE("a struct and its attributes say the same") {
    const Window window{.kernel = {3, 2}, .mode = "avg", .dtype = DType::i32};
    const Attrs attrs = attrs_of(window);
    CHECK(attrs.str() == "dtype=int32 kernel=3,2 mode=avg");
    const auto same = read<Window>(schema.complete(attrs, "x"));
    CHECK(same.kernel == window.kernel);
    CHECK(same.dtype == DType::i32);
    CHECK_FALSE(read<Window>(schema.complete({{"kernel", Ints{3}}}, "x")).dtype);
    enum class Mode { max, avg };
    CHECK(chosen<Mode, &Window::mode>(attrs) == Mode::avg);
    CHECK_THROWS_AS((chosen<Mode, &Window::mode>({{"mode", std::string("sum")}})), Error);
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
