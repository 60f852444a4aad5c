// SPDX-License-Identifier: MIT
// Eager calls and functions of PyTorch's device around products and attention, as planned for an
// H200: operands and results in 16 bits lie as PyTorch lays them out, and no launch moves or casts
// them.
#include "base/schema.hpp"
#include "exec/eager_entry.hpp"
#include "formats/json_net.hpp"
#include "support/catch.hpp"

#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace dlprim;

namespace {

constexpr std::int64_t batch = 8, length = 1024, head_count = 12, features = 64, width = 768;

Context h200_device() {
    return Context("file:" + (std::filesystem::path(DLPRIM_DEVICES_DIR) / "h200.json").string());
}

using Lines = std::vector<std::string>;

/// The launches of a plan, as the operator's type and the engine.
Lines launches(const Plan& plan) {
    Lines lines;
    for (const Step& step : plan.steps)
        lines.push_back(step.type + (step.engine ? " by " + std::string(step.engine->name()) : ""));
    return lines;
}

/// Those that only move elements, or cast as many as all words have. Casts and packings of weights,
/// which are a few, are part of the product's price.
Lines moves(const Plan& plan) {
    const std::set<std::string> types{"Transpose", "Slice", "Concat", "Reorder", "Copy"};
    Lines lines;
    for (const Step& step : plan.steps) {
        const bool casts = step.type == "Cast" && step.bytes >= 6.0 * batch * length * width;
        if (casts || types.count(step.type) > 0)
            lines.push_back(step.type + " '" + step.name + "'");
    }
    return lines;
}

const Lines none;

ops::CallOptions in(DType dtype) {
    ops::CallOptions how;
    how.precision = dtype == DType::f16 ? Precision::fp16 : Precision::bf16;
    return how;
}

/// The plan of a call, or of its gradients where there are output gradients.
template <typename Options>
const Plan& plan_of(const Options& options, const std::vector<Tensor>& inputs,
                    const ops::CallOptions& how, const std::vector<Tensor>& gradients = {}) {
    return eager_plan(Options::type, attrs_of(options), inputs, {}, gradients, how);
}

/// A new tensor of heads [batch, heads, length, features] that lies in another order:
/// dimension order[0] is outermost.
Tensor heads_in(const Context& device, DType dtype, const std::array<int, 4>& order) {
    const Shape shape{batch, head_count, length, features};
    std::vector<std::int64_t> strides(4);
    std::int64_t step = 1;
    for (std::size_t i = 4; i-- > 0; step *= shape[order[i]])
        strides[static_cast<std::size_t>(order[i])] = step;
    return Tensor(device, shape, dtype).view(shape, strides, 0);
}

/// Part 0, 1 or 2 of the rows of one projection to queries, keys and values.
Tensor part_of_rows(const Tensor& rows, std::int64_t part) {
    return rows.view({batch, head_count, length, features},
                     {length * 3 * width, features, 3 * width, 1}, part * width);
}

/// A function as PyTorch's device makes one of a compiled graph, and its launches for `inputs`.
Lines launches_of_function(const std::string& json, const std::vector<Tensor>& inputs) {
    static constexpr std::array<std::string_view, 2> internal{"AttentionForward",
                                                              "AttentionBackward"};
    EagerFunction function;
    function.name = "region";
    function.description = parse_net_json(json, function.name);
    function.description.internal_types = internal;
    function.options = unique_options();
    const ops::CallOptions how;
    const EagerCall call{function.name, *function.options, inputs, {}, {}, how, false, &function};
    return launches(planned_entry(call)->call->plan());
}

void put(std::string& text, const std::string& from, const std::string& to) {
    for (std::size_t at; (at = text.find(from)) != std::string::npos;)
        text.replace(at, from.size(), to);
}

/// Operators that make heads NAME of part `index` of "rows", as float.
std::string heads_of(const std::string& name, int index) {
    std::string text = R"(
        {"name": "NAME_part", "type": "Slice", "inputs": ["parts"], "outputs": ["NAME_part"],
         "options": {"dim": 0, "begin": INDEX, "end": NEXT}},
        {"name": "NAME_half", "type": "Reshape", "inputs": ["NAME_part"], "outputs": ["NAME_half"],
         "options": {"dims": [8, 12, 1024, 64]}},
        {"name": "NAME", "type": "Cast", "inputs": ["NAME_half"], "outputs": ["NAME"],
         "options": {"dtype": "float32"}},)";
    put(text, "NAME", name);
    put(text, "INDEX", std::to_string(index));
    put(text, "NEXT", std::to_string(index + 1));
    return text;
}

/// The same for queries, keys and values.
std::string parts_of_rows() {
    return R"(
        {"name": "split", "type": "Reshape", "inputs": ["rows"], "outputs": ["split"],
         "options": {"dims": [8, 1024, 3, 12, 64]}},
        {"name": "parts", "type": "Transpose", "inputs": ["split"], "outputs": ["parts"],
         "options": {"dims": [2, 0, 3, 1, 4]}},)" +
           heads_of("q", 0) + heads_of("k", 1) + heads_of("v", 2);
}

}  // namespace

TEST_CASE("Products in 16 bits read transposed views where they lie") {
    const Context device = h200_device();
    for (const DType dtype : {DType::f16, DType::bf16}) {
        INFO(name_of(dtype));
        const Tensor x(device, {batch * length, width}, dtype),
            w(device, {4 * width, width}, dtype), dy(device, {batch * length, 4 * width}, dtype),
            bias(device, {4 * width}, dtype);
        const Tensor turned_w = w.transpose(0, 1), turned_dy = dy.transpose(0, 1);
        const ops::MatMul plain, with_bias{.bias = true};
        CHECK(moves(plan_of(plain, {x, turned_w}, in(dtype))) == none);
        CHECK(moves(plan_of(with_bias, {x, turned_w, bias}, in(dtype))) == none);
        CHECK(moves(plan_of(plain, {dy, w}, in(dtype))) == none);
        CHECK(moves(plan_of(plain, {x, turned_w}, in(dtype), {dy})) == none);
        const Lines direct{"MatMul by matmul.wgmma_direct"};
        CHECK(launches(plan_of(plain, {turned_dy, x}, in(dtype))) == direct);
        CHECK(launches(plan_of(plain, {turned_w, turned_dy}, in(dtype))) == direct);
    }
}

TEST_CASE("Attention in 16 bits reads and writes heads in the order of PyTorch's tensors") {
    const Context device = h200_device();
    // Batch, positions, heads, as most models have them, and positions, batch, heads, as
    // nn.MultiheadAttention has them.
    for (const std::array<int, 4>& order : {std::array{0, 2, 1, 3}, std::array{2, 0, 1, 3}})
        for (const DType dtype : {DType::f16, DType::bf16}) {
            INFO(name_of(dtype) << ", dimension " << order[0] << " outermost");
            const auto others = [&] { return heads_in(device, dtype, order); };
            const std::vector<Tensor> inputs{others(), others(), others()};
            const ops::Attention options{.is_causal = true, .stream = 0};
            ops::CallOptions how = in(dtype);
            how.out = {others()};
            CHECK(launches(plan_of(options, inputs, how)) ==
                  Lines{"AttentionForward by attention.wgmma"});
            how.out = {others(), others(), others()};
            CHECK(launches(plan_of(options, inputs, how, {others()})) ==
                  Lines{"AttentionForward by attention.wgmma", "Pointwise by pointwise.generated",
                        "AttentionBackward by attention.wgmma_backward"});
        }
}

TEST_CASE("Attention in 16 bits reads heads in the rows of one projection") {
    const Context device = h200_device();
    const Tensor rows(device, {batch * length, 3 * width}, DType::f16);
    std::vector<Tensor> inputs;
    for (const std::int64_t part : {0, 1, 2}) inputs.push_back(part_of_rows(rows, part));
    ops::CallOptions how = in(DType::f16);
    how.out = {heads_in(device, DType::f16, {0, 2, 1, 3})};
    CHECK(launches(plan_of(ops::Attention{.stream = 0}, inputs, how)) ==
          Lines{"AttentionForward by attention.wgmma"});
}

TEST_CASE("Casts of views in 16 bits are one launch") {
    const Context device = h200_device();
    const Tensor heads = heads_in(device, DType::f16, {0, 2, 1, 3});
    CHECK(launches(plan_of(ops::Cast{.dtype = DType::f32}, {heads}, {})) ==
          Lines{"Cast by cast.generated"});
}

TEST_CASE("Functions of attention in 16 bits cast and move nothing") {
    const Context device = h200_device();
    const Tensor rows(device, {batch * length, 3 * width}, DType::f16),
        merged(device, {batch * length, width}, DType::f16),
        logarithms(device, {batch, head_count, length}, DType::f32);
    CHECK(launches_of_function(
              R"({"inputs": [{"name": "rows", "shape": [8192, 2304], "dtype": "float16"}],
                  "outputs": ["merged", "logarithms"], "operators": [)" +
                  parts_of_rows() + R"(
                  {"name": "attention", "type": "AttentionForward", "inputs": ["q", "k", "v"],
                   "outputs": ["y", "logarithms"], "options": {"is_causal": true, "stream": 0}},
                  {"name": "half", "type": "Cast", "inputs": ["y"], "outputs": ["half"],
                   "options": {"dtype": "float16"}},
                  {"name": "turned", "type": "Transpose", "inputs": ["half"],
                   "outputs": ["turned"], "options": {"dims": [0, 2, 1, 3]}},
                  {"name": "merged", "type": "Reshape", "inputs": ["turned"],
                   "outputs": ["merged"], "options": {"dims": [8192, 768]}}]})",
              {rows}) == Lines{"AttentionForward by attention.wgmma"});
    std::string gradients, names;
    for (const std::string name : {"dq", "dk", "dv"}) {
        gradients += R"(
            {"name": "NAME_half", "type": "Cast", "inputs": ["NAME"], "outputs": ["NAME_half"],
             "options": {"dtype": "float16"}},
            {"name": "NAME_turned", "type": "Transpose", "inputs": ["NAME_half"],
             "outputs": ["NAME_turned"], "options": {"dims": [0, 2, 1, 3]}},
            {"name": "NAME_rows", "type": "Reshape", "inputs": ["NAME_turned"],
             "outputs": ["NAME_rows"], "options": {"dims": [8192, 768]}},)";
        put(gradients, "NAME", name);
        names += (names.empty() ? "\"" : ", \"") + name + "_rows\"";
    }
    CHECK(launches_of_function(
              R"({"inputs": [{"name": "rows", "shape": [8192, 2304], "dtype": "float16"},
                             {"name": "dy_rows", "shape": [8192, 768], "dtype": "float16"},
                             {"name": "logarithms", "shape": [8, 12, 1024]},
                             {"name": "sums", "shape": [8, 12, 1024]}],
                  "outputs": ["gradient"], "operators": [)" +
                  parts_of_rows() + R"(
                  {"name": "dy_split", "type": "Reshape", "inputs": ["dy_rows"],
                   "outputs": ["dy_split"], "options": {"dims": [8, 1024, 12, 64]}},
                  {"name": "dy_half", "type": "Transpose", "inputs": ["dy_split"],
                   "outputs": ["dy_half"], "options": {"dims": [0, 2, 1, 3]}},
                  {"name": "dy", "type": "Cast", "inputs": ["dy_half"], "outputs": ["dy"],
                   "options": {"dtype": "float32"}},
                  {"name": "attention", "type": "AttentionBackward",
                   "inputs": ["q", "k", "v", "logarithms", "sums", "dy"],
                   "outputs": ["dq", "dk", "dv"], "options": {"is_causal": true, "stream": 0}},)" +
                  gradients + R"(
                  {"name": "gradient", "type": "Concat", "inputs": [)" +
                  names + R"(], "outputs": ["gradient"], "options": {"dim": 1}}]})",
              {rows, merged, logarithms, logarithms}) ==
          Lines{"AttentionBackward by attention.wgmma_backward"});
}
