// SPDX-License-Identifier: MIT
// Options of eager calls as structs: they have the options of every operator, with the same names
// and defaults, and a call with a struct computes what the call with the text does.
#include "base/schema.hpp"
#include "graph/operator.hpp"
#include "net/support.hpp"

#include <dlprim/ops.hpp>

#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// Calls `visit` with a default-made struct of each operator.
template <typename Visit>
void each_struct(Visit&& visit) {
    std::apply([&](const auto&... options) { (visit(options), ...); },
               std::tuple_cat(ops::AllOptions(), ops::AllAliases()));
}

/// Converts to whatever a field is initialised with.
struct Anything {
    template <typename T>
    operator T&() const;
    template <typename T>
    operator T&&() const;
};

/// How many fields a struct has: what it can be initialised with.
template <typename Options, typename... Given>
constexpr std::size_t count_fields() {
    if constexpr (requires { Options{Given()..., Anything()}; })
        return count_fields<Options, Given..., Anything>();
    else
        return sizeof...(Given);
}

/// Another value than the given one, of those that the row allows.
bool other(bool value, const ops::OptionText&) {
    return !value;
}
double other(double value, const ops::OptionText& text) {
    return value + 0.5 <= text.most ? value + 0.5 : value - 0.5;
}
std::int64_t other(std::int64_t value, const ops::OptionText&) {
    return value + 1;
}
std::string other(const std::string& value, const ops::OptionText& text) {
    return text.choices[1].empty() ? value + "x"
                                   : std::string(text.choices[value == text.choices[1] ? 0 : 1]);
}
DType other(DType value, const ops::OptionText&) {
    return value == DType::f32 ? DType::i64 : DType::f32;
}
ops::IntList other(const ops::IntList& list, const ops::OptionText&) {
    return list == ops::IntList{5, 3} ? 7 : ops::IntList{5, 3};
}
template <typename T>
std::vector<T> other(std::vector<T> values, const ops::OptionText& text) {
    values.push_back(other(T(), text));
    return values;
}
template <typename T>
std::optional<T> other(const std::optional<T>& value, const ops::OptionText& text) {
    return other(value.value_or(T()), text);
}

/// The struct with other values in all fields.
template <typename Options>
Options all_set() {
    Options options;
    each_option<Options>(
        [&](const auto& row) { options.*row.field = other(options.*row.field, row.text); });
    return options;
}

std::vector<Bytes> all_bits(const std::vector<Tensor>& tensors) {
    std::vector<Bytes> all;
    all.reserve(tensors.size());
    for (const Tensor& tensor : tensors) all.push_back(bits(tensor));
    return all;
}

}  // namespace

TEST_CASE("there is a struct of options for every operator", "[typed_options]") {
    // An eager call takes its device from a tensor, and Constant has neither inputs nor parameters.
    std::set<std::string> structs{"Constant"};
    std::apply([&](const auto&... options) { (structs.emplace(options.type), ...); },
               ops::AllOptions());
    const std::vector<std::string> types = OperatorRegistry::instance().types();
    CHECK(structs == std::set<std::string>(types.begin(), types.end()));
}

TEST_CASE("every field has a row of its own, which says what it means", "[typed_options]") {
    each_struct([](const auto& options) {
        using Options = std::remove_cvref_t<decltype(options)>;
        INFO(Options::type);
        CHECK_FALSE(Options::takes.empty());
        std::set<std::string_view> names;
        each_option<Options>([&](const auto& row) {
            INFO(row.text.name);
            CHECK(names.insert(row.text.name).second);
            CHECK_FALSE(row.text.meaning.empty());
        });
        CHECK(names.size() == count_fields<Options>());
    });
}

TEST_CASE("every field arrives as the option of its name", "[typed_options]") {
    each_struct([](const auto& defaults) {
        using Options = std::remove_cvref_t<decltype(defaults)>;
        INFO(Options::type);
        CHECK(attrs_of(defaults).items().empty());
        const Attrs all = attrs_of(all_set<Options>());
        each_option<Options>([&](const auto& row) { CHECK(all.has(row.text.name)); });
        const Schema& schema = schema_of<Options>();
        CHECK(schema.takes() == Options::takes);
        const Attrs complete = schema.complete(all, "");
        CHECK(complete == all);
        CHECK(attrs_of(read<Options>(complete)) == all);
    });
}

TEST_CASE("a call with a struct gives the bits of the call with its text", "[typed_options]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, {2, 4, 9, 8}, random_floats(2 * 4 * 9 * 8, 1));
        const Tensor weight(device, {6, 4, 3, 3}, random_floats(6 * 4 * 9, 2));
        const Tensor bias(device, {6}, random_floats(6, 3));
        const char* const text =
            R"({"channels_out": 6, "kernel": 3, "stride": 2, "pad": [1, 0], "activation": "relu"})";
        const ops::Convolution2D options{
            .channels_out = 6, .kernel = 3, .stride = 2, .pad = {1, 0}, .activation = "relu"};
        const std::vector<Tensor> y = ops::call("Convolution", text, {x}, {weight, bias});
        const Bytes right = bits(y.at(0));
        const Counters before = device.counters();
        CHECK(bits(ops::call(options, {x}, {weight, bias}).at(0)) == right);
        CHECK(device.counters().compiles == before.compiles);  // both are one call
        CHECK(device.counters().cache_hits == before.cache_hits);
        // A shorthand takes the sizes from the weight.
        const Tensor brief =
            ops::conv2d(x, weight, bias, {.stride = 2, .pad = {1, 0}, .activation = "relu"});
        CHECK(bits(brief) == right);
        CHECK(all_bits(ops::backward(options, {x}, {weight, bias}, y)) ==
              all_bits(ops::backward("Convolution", text, {x}, {weight, bias}, y)));

        CHECK(bits(ops::softmax(x, {.log = true})) ==
              bits(ops::call("Softmax", R"({"log": true})", {x}).at(0)));
        CHECK(bits(ops::pooling2d(x, {.mode = "avg", .kernel = {3, 2}, .pad = 1})) ==
              bits(ops::call("Pooling2D", R"({"mode": "avg", "kernel": [3, 2], "pad": 1})", {x})
                       .at(0)));
        CHECK(bits(ops::matmul(x, x, {.transpose_b = true})) ==
              bits(ops::call("MatMul", R"({"transpose_b": true})", {x, x}).at(0)));
        CHECK(all_bits(ops::call(ops::Split{.parts = 2}, {x})) ==
              all_bits(ops::call("Split", R"({"parts": 2})", {x})));
    }
}

TEST_CASE("shorthands take sizes from the weight, and check those that are given",
          "[typed_options]") {
    const Context context("cpu");
    const Tensor image(context, {1, 4, 5, 5}, random_floats(100, 1));
    const Tensor kernel(context, {2, 4, 1, 3}, random_floats(24, 2));
    CHECK(ops::conv2d(image, kernel).shape() == Shape{1, 2, 5, 3});
    const Tensor x(context, {3, 4}, random_floats(12, 3));
    const Tensor weight(context, {5, 4}, random_floats(20, 4));
    const Tensor bias(context, {5}, random_floats(5, 5));
    CHECK(ops::inner_product(x, weight).shape() == Shape{3, 5});
    CHECK(bits(ops::inner_product(x, weight, bias, {.activation = "relu"})) ==
          bits(ops::call("InnerProduct", R"({"outputs": 5, "activation": "relu"})", {x},
                         {weight, bias})
                   .at(0)));
    check_error(ErrorKind::invalid_argument, {"Convolution", "weight"},
                [&] { ops::conv2d(image, weight); });
    check_error(ErrorKind::invalid_argument, {"Convolution"},
                [&] { ops::conv2d(image, kernel, {.kernel = 5}); });
    check_error(ErrorKind::invalid_argument, {"InnerProduct"},
                [&] { ops::inner_product(x, weight, {.outputs = 6}); });
}

TEST_CASE("a struct without what is required is refused as the text is", "[typed_options]") {
    const Context context("cpu");
    const Tensor x(context, {1, 2, 4, 4}, random_floats(32, 1));
    check_error(ErrorKind::invalid_argument, {"Pooling2D", "'kernel' is missing"},
                [&] { ops::call(ops::Pooling2D{}, {x}); });
    check_error(ErrorKind::invalid_argument, {"Cast", "'dtype' is missing"},
                [&] { ops::call(ops::Cast{}, {x}); });
    check_error(ErrorKind::invalid_argument, {"Activation", "'activation' is missing"},
                [&] { ops::call(ops::Activation{}, {x}); });
    check_error(ErrorKind::invalid_argument, {"at most 16 integers", "17"},
                [] { ops::IntList(std::vector<std::int64_t>(17, 1)); });
}
