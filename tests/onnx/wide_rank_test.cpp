// SPDX-License-Identifier: MIT
// Tensors of more dimensions than a Shape has: they run where dimensions that stay together are
// merged to as many as a Shape has, and are an error that says so elsewhere.
#include "onnx/session_support.hpp"

#include <numeric>

using namespace onnx_test;
using dlprim::ErrorKind;

namespace {

/// x [count], and what these nodes make y of it. Names of lists of integers are initialisers.
Model of(std::int64_t elements, const std::vector<std::string>& nodes,
         const std::map<std::string, Sizes>& lists, const Sizes& y) {
    Model model{.nodes = nodes, .opset = 18};
    for (const auto& [name, values] : lists) model.initializers.push_back(integers(name, values));
    model.inputs = {value("x", {elements})};
    model.outputs = {value("y", y)};
    return model;
}

Values counted(std::int64_t elements) {
    Values values(static_cast<std::size_t>(elements));
    std::iota(values.begin(), values.end(), 0.0f);
    return values;
}

/// Of 0, 1, ... as a tensor of sizes `from`, row-major, its dimensions in this order.
Values transposed(const Sizes& from, const Sizes& order) {
    Sizes strides(from.size(), 1), at(from.size(), 0);
    for (std::size_t d = from.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * from[d + 1];
    Values result;
    for (;;) {
        std::int64_t place = 0;
        for (std::size_t d = 0; d < order.size(); ++d)
            place += at[d] * strides[static_cast<std::size_t>(order[d])];
        result.push_back(static_cast<float>(place));
        std::size_t d = order.size();
        while (d-- > 0) {
            if (++at[d] < from[static_cast<std::size_t>(order[d])]) break;
            at[d] = 0;
        }
        if (d == static_cast<std::size_t>(-1)) return result;
    }
}

void check_transposition(const Sizes& sizes, const Sizes& order) {
    std::int64_t count = 1;
    for (const std::int64_t size : sizes) count *= size;
    const Model model = of(count,
                           {node("Reshape", {"x", "sizes"}, {"wide"}),
                            node("Transpose", {"wide"}, {"turned"}, {{attribute("perm", order)}}),
                            node("Reshape", {"turned", "flat"}, {"y"})},
                           {{"sizes", sizes}, {"flat", {-1}}}, {count});
    CHECK(run(model, {{"x", counted(count)}}) == transposed(sizes, order));
}

}  // namespace

TEST_CASE("a transposition of many dimensions runs by those that move") {
    // Windows of a volume, with heads and a last dimension of their own.
    check_transposition({1, 2, 3, 2, 2, 1, 2, 2, 2, 2}, {0, 7, 1, 3, 5, 8, 2, 4, 6, 9});
    check_transposition({2, 2, 1, 2, 1, 2, 1, 2, 2, 1, 2, 1, 2, 1, 2, 1},
                        {0, 15, 2, 1, 4, 3, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13});
    check_transposition({2, 2, 2, 2, 2, 2, 2, 2, 2}, {3, 4, 5, 0, 1, 2, 6, 7, 8});
}

TEST_CASE("elements, axes and matrices of tensors of many dimensions") {
    const Sizes sizes{2, 1, 2, 1, 1, 3, 1, 1, 2};
    const std::map<std::string, Sizes> lists{
        {"sizes", sizes},   {"row", {1, 1, 2, 1, 1, 1, 1, 1, 1}},
        {"at", {1}},        {"axes", {2, -4}},
        {"flat", {-1}},     {"wider", {2, 1, 2, 1, 1, 3, 2, 1, 2}},
        {"rest", {2, 3, 2}}};
    const auto y = [&](const std::vector<std::string>& nodes, std::int64_t count,
                       const Values& expected) {
        std::vector<std::string> all{node("Reshape", {"x", "sizes"}, {"wide"})};
        all.insert(all.end(), nodes.begin(), nodes.end());
        all.push_back(node("Reshape", {"made", "flat"}, {"y"}));
        CHECK(run(of(24, all, lists, {count}), {{"x", counted(24)}}) == expected);
    };
    Values each = counted(24), doubled, by_row, repeated, one, sums;
    for (const float v : each) doubled.push_back(2 * v);
    y({node("Add", {"wide", "wide"}, {"made"})}, 24, doubled);
    // Row r of dimension 2 times r + 1.
    for (std::size_t i = 0; i < 24; ++i) by_row.push_back(each[i] * (i / 6 % 2 == 0 ? 1 : 2));
    y({node("Constant", {}, {"numbers"},
            {{bytes(1, "value") + bytes(5, floats("", {2}, {1, 2})) + number(20, 4)}}),
       node("Reshape", {"numbers", "row"}, {"by"}), node("Mul", {"wide", "by"}, {"made"})},
      24, by_row);
    for (std::size_t i = 0; i < 24; i += 2)
        for (int j = 0; j < 2; ++j) repeated.insert(repeated.end(), {each[i], each[i + 1]});
    y({node("Expand", {"wide", "wider"}, {"made"})}, 48, repeated);
    for (const std::size_t first : {6, 18})
        for (std::size_t i = 0; i < 6; ++i) one.push_back(each[first + i]);
    y({node("Gather", {"wide", "at"}, {"made"}, {{attribute("axis", 2)}})}, 12, one);
    for (std::size_t a = 0; a < 2; ++a)
        for (std::size_t b = 0; b < 2; ++b) {
            float sum = 0;
            for (std::size_t i = 0; i < 6; ++i) sum += each[a * 12 + i * 2 + b];
            sums.push_back(sum);
        }
    for (const int keep : {0, 1})
        y({node("ReduceSum", {"wide", "axes"}, {"made"}, {{attribute("keepdims", keep)}})}, 4,
          sums);
    y({node("Split", {"wide"}, {"low", "high"},
            {{attribute("axis", 0), attribute("num_outputs", 2)}}),
       node("Concat", {"high", "low"}, {"back"}, {{attribute("axis", 0)}}),
       node("Squeeze", {"back"}, {"made"})},
      24, [&] {
          Values turned(each.begin() + 12, each.end());
          turned.insert(turned.end(), each.begin(), each.begin() + 12);
          return turned;
      }());
    // [..., 3, 1, 1, 2] with its transpose: each pair's product with itself.
    Values squares;
    for (std::size_t i = 0; i < 24; i += 2)
        squares.push_back(each[i] * each[i] + each[i + 1] * each[i + 1]);
    y({node("Transpose", {"wide"}, {"turned"},
            {{attribute("perm", Sizes{0, 1, 2, 3, 4, 5, 6, 8, 7})}}),
       node("MatMul", {"wide", "turned"}, {"made"})},
      12, squares);
    Values centred;
    for (std::size_t i = 0; i < 24; ++i) centred.push_back(i % 2 == 0 ? -1.0f : 1.0f);
    y({node("Constant", {}, {"ones"},
            {{bytes(1, "value") + bytes(5, floats("", {2}, {1, 1})) + number(20, 4)}}),
       node("LayerNormalization", {"wide", "ones"}, {"normal"}, {{number_attribute("epsilon", 0)}}),
       node("Round", {"normal"}, {"made"})},
      24, centred);
    y({node("Shape", {"wide"}, {"made_sizes"}),
       node("Cast", {"made_sizes"}, {"made"}, {{attribute("to", 1)}})},
      9, {2, 1, 2, 1, 1, 3, 1, 1, 2});
}

TEST_CASE("constants of many dimensions") {
    Model model;
    const Sizes sizes{1, 2, 1, 1, 1, 3, 1, 1, 1};
    model.nodes = {node("Constant", {}, {"c"},
                        {{bytes(1, "value") + bytes(5, floats("", sizes, {1, 2, 3, 4, 5, 6})) +
                          number(20, 4)}}),
                   node("ConstantOfShape", {"sizes"}, {"zeros"}),
                   node("Sum", {"c", "w", "zeros"}, {"wide"}),
                   node("Reshape", {"wide", "flat"}, {"row"}), node("Add", {"row", "x"}, {"y"})};
    model.initializers = {floats("w", sizes, {1, 1, 1, 2, 2, 2}), integers("sizes", sizes),
                          integers("flat", {-1})};
    model.inputs = {value("x", {6})};
    model.outputs = {value("y", {6})};
    CHECK(run(model, {{"x", {0, 0, 0, 0, 0, 1}}}) == Values{2, 3, 4, 6, 7, 9});
    model.initializers[0] = floats("w", Sizes(17, 1), {1});
    CHECK(has(error_of(model.str(), ErrorKind::unsupported), "has 17 dimensions; at most 16"));
}

TEST_CASE("nodes whose inputs are no tensors or whose attributes are of another kind are refused") {
    const auto refused = [](const std::string& made, const std::string& words) {
        Model model = of(512,
                         {node("Reshape", {"x", "sizes"}, {"wide"}),
                          node("SequenceConstruct", {"x"}, {"list"}), made},
                         {{"sizes", Sizes(9, 2)}}, {512});
        CHECK(has(error_of(model.str(), ErrorKind::format), words));
    };
    refused(node("Add", {"wide", "list"}, {"y"}),
            "input 1 is a sequence of 1; it must be a tensor");
    refused(node("Concat", {"list", "wide"}, {"y"}, {{attribute("axis", 0)}}),
            "input 0 is a sequence of 1; it must be a tensor");
    refused(node("ReduceSum", {"", "wide"}, {"y"}), "input 0 is missing");
    refused(node("Softmax", {"wide"}, {"y"}, {{attribute("axis", "last")}}),
            "attribute 'axis' is of another kind");
    refused(node("ReduceSum", {"wide"}, {"y"}, {{attribute("axes", 1)}}),
            "attribute 'axes' is of another kind");
}

TEST_CASE("tensors of too many dimensions are an error that says so") {
    const Sizes two(9, 2), many(17, 1);
    const auto refused = [&](const std::vector<std::string>& nodes, const Sizes& sizes,
                             const std::string& words) {
        std::vector<std::string> all{node("Reshape", {"x", "sizes"}, {"wide"}, {{}, "r", ""})};
        all.insert(all.end(), nodes.begin(), nodes.end());
        const Model model = of(512, all, {{"sizes", sizes}, {"flat", {-1}}, {"axis", {0}}}, {512});
        CHECK(has(error_of(model.str(), ErrorKind::unsupported), words));
    };
    refused(
        {node("Transpose", {"wide"}, {"turned"}, {{}, "t", ""}),
         node("Reshape", {"turned", "flat"}, {"y"})},
        two,
        "[Transpose 't', opset 18] a tensor of shape [2, 2, 2, 2, 2, 2, 2, 2, 2] has more than 8 "
        "dimensions, and merging those that stay together here leaves 9");
    refused(
        {node("CumSum", {"wide", "axis"}, {"y"})}, two,
        "input 0 is float [2, 2, 2, 2, 2, 2, 2, 2, 2]; this operator takes at most 8 dimensions");
    refused({node("LayerNormalization", {"wide", "flat"}, {"y"}, {{attribute("axis", 7)}})}, two,
            "this operator takes at most 8 dimensions");
    refused({node("Identity", {"wide"}, {"y"})}, two,
            "the graph's output 'y' is float [2, 2, 2, 2, 2, 2, 2, 2, 2]; outputs have at most 8 "
            "dimensions");
    Sizes long_shape = many;
    long_shape[0] = 512;
    refused({node("Reshape", {"wide", "flat"}, {"y"})}, long_shape,
            "has 17 dimensions; at most 16");
}
