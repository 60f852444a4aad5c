// SPDX-License-Identifier: MIT
// Compares every engine of MatMul and InnerProduct with the oracle, on every device: over seeded
// random problems, with every value of each tuning parameter, and with epilogues. tests/operators
// has the tables of cases.
#include "engine/activations.hpp"
#include "engine/small_integers.hpp"
#include "graph/operator.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/engine_trials.hpp"

#include <algorithm>
#include <random>

using namespace dlprim;
using testing::engine_turns;
using testing::normals;

namespace {

/// A problem with its contents and the oracle's result.
struct Example {
    Problem problem;
    std::vector<HostArray> inputs;
    HostArray wanted;

    Example(const std::string& type, const Attrs& options, std::vector<HostArray> tensors,
            unsigned seed)
        : inputs(std::move(tensors)) {
        const Operator& op = OperatorRegistry::instance().get(type);
        std::mt19937 random(seed);
        problem.op = type;
        problem.attrs = op.schema().complete(options, "test");
        if (problem.attrs.has("activation"))
            problem.attrs.set("activation", std::string("identity"));
        std::vector<TensorSpec> specs;
        for (const HostArray& input : inputs) specs.push_back({input.shape, input.dtype});
        for (const ParamSpec& param : op.params(problem.attrs, specs))
            inputs.push_back(normals(param.spec.shape, random));
        specs.clear();
        for (const HostArray& input : inputs) {
            specs.push_back({input.shape, input.dtype});
            problem.inputs.push_back({input.shape, input.dtype, {}, false});
        }
        const TensorSpec output = op.infer(problem.attrs, specs).at(0);
        problem.outputs.push_back({output.shape, output.dtype, {}, false});
        OracleCall call{problem.attrs, false, inputs, std::vector<HostArray>(1), {}};
        op.oracle(call);
        wanted = call.outputs[0];
        REQUIRE(wanted.shape == output.shape);
    }
    static std::vector<HostArray> tensors(const std::vector<Shape>& shapes, unsigned seed) {
        std::mt19937 random(seed + 1000);
        std::vector<HostArray> made;
        made.reserve(shapes.size());
        for (const Shape& shape : shapes) made.push_back(normals(shape, random));
        return made;
    }
};

/// Whose tunings are all tried: products of two computed factors, or with a constant second one.
enum class Tuned { none, computed, constant };

void check(const Context& context, const Example& e, Tuned tuned = Tuned::none,
           const std::vector<std::string_view>& only = {}) {
    for (const bool constant : {false, true}) {
        Problem problem = e.problem;
        problem.inputs[1].constant = constant;
        testing::check_engines(
            context, problem, e.inputs, e.wanted.data,
            {.only = only, .all_tunings = tuned == (constant ? Tuned::constant : Tuned::computed)});
    }
}

/// Adds a tensor of this type to the result, and applies an activation.
void add_epilogue(Example& e, std::string_view activation, unsigned seed,
                  DType dtype = DType::f32) {
    const Activation& f = find_activation(activation);
    std::mt19937 random(seed);
    const HostArray added = normals(e.wanted.shape, random, dtype);
    e.problem.epilogue = {{EpilogueStage::Kind::add, static_cast<int>(e.inputs.size()), {}, 0, 0},
                          {EpilogueStage::Kind::activation, -1, f.name, f.alpha, f.beta}};
    e.problem.inputs.push_back({added.shape, dtype, {}, false});
    e.inputs.push_back(added);
    for (std::size_t i = 0; i < added.data.size(); ++i)
        e.wanted.data[i] = activate(f.name, e.wanted.data[i] + added.data[i], f.alpha, f.beta);
}

}  // namespace

TEST_CASE("engines of MatMul agree with the oracle over random problems") {
    const std::vector<Context>& devices = testing::test_devices();
    for (unsigned seed = 1; seed <= testing::random_problems(); ++seed) {
        std::mt19937 random(seed);
        const auto pick = [&](std::int64_t low, std::int64_t high) {
            return std::uniform_int_distribution<std::int64_t>(low, high)(random);
        };
        const auto size = [&] { return pick(0, 3) ? pick(1, 20) : pick(1, 150); };
        const bool ta = pick(0, 1), tb = pick(0, 1), bias = pick(0, 1);
        const std::int64_t m = size(), n = size(), k = pick(0, 9) ? size() : pick(200, 1500),
                           batch = pick(1, 3);
        Ints a = ta ? Ints{k, m} : Ints{m, k}, b = tb ? Ints{n, k} : Ints{k, n};
        if (pick(0, 1)) a.insert(a.begin(), pick(0, 2) ? batch : 1);
        if (pick(0, 1)) b.insert(b.begin(), pick(0, 2) ? batch : 1);
        std::vector<Shape> shapes{Shape(a), Shape(b)};
        if (bias) shapes.push_back(Shape{n});
        const Attrs attrs{{"transpose_a", ta},
                          {"transpose_b", tb},
                          {"bias", bias},
                          {"alpha", pick(0, 3) ? 1.0 : -0.3}};
        const Example e("MatMul", attrs, Example::tensors(shapes, seed), seed);
        for (const Context& context : devices) check(context, e);
    }
    CHECK(engine_turns().tried(devices));
}

TEST_CASE("engines agree with the oracle for every tuning") {
    const std::vector<Context>& devices = testing::test_devices();
    for (const Context& context : devices) {
        check(context,
              Example("MatMul", Attrs{}, Example::tensors({Shape{45, 600}, Shape{600, 70}}, 1), 1),
              Tuned::computed);
        check(context,
              Example("MatMul", Attrs{{"transpose_b", true}},
                      Example::tensors({Shape{9, 600}, Shape{70, 600}}, 2), 2),
              Tuned::computed);
    }
}

TEST_CASE("an epilogue of matrix products is applied") {
    const std::vector<Context>& devices = testing::test_devices();
    for (const bool transpose_b : {false, true})
        for (const char* activation : {"leaky_relu", "sigmoid"}) {
            const Attrs attrs{{"transpose_b", transpose_b}, {"bias", true}};
            Example e(
                "MatMul", attrs,
                Example::tensors(
                    {Shape{2, 5, 67}, transpose_b ? Shape{35, 67} : Shape{67, 35}, Shape{35}}, 3),
                3);
            add_epilogue(e, activation, 5);
            for (const Context& context : devices) check(context, e);
        }
    CHECK(engine_turns().tried(devices));
}

TEST_CASE("engines multiply small integers") {
    const std::vector<Context>& devices = testing::test_devices();
    struct Case {
        Attrs attrs;
        std::vector<Shape> shapes;
    };
    const Case cases[] = {
        {{}, {Shape{1, 257}, Shape{257, 70}}},  // few rows, an odd number of products
        {{{"transpose_b", true}}, {Shape{24, 700}, Shape{67, 700}}},
        {{{"transpose_a", true}, {"alpha", 2.0}}, {Shape{3, 33}, Shape{3, 40}}},
        {{{"bias", true}}, {Shape{2, 3, 14, 9}, Shape{3, 9, 5}, Shape{5}}},  // batches
    };
    for (const Case& c : cases) {
        std::vector<HostArray> tensors = Example::tensors(c.shapes, 6);
        for (HostArray& tensor : tensors) testing::make_small_integers(tensor);
        Example e("MatMul", c.attrs, std::move(tensors), 6);
        e.problem.attrs.set(small_integers_attr, true);
        for (const Context& context : devices) check(context, e);
    }
    CHECK(engine_turns().tried(devices));
}

TEST_CASE("a sum of 100,000 products keeps its precision") {
    const std::vector<Context>& devices = testing::test_devices();
    for (const bool transpose_b : {false, true}) {
        const Example e(
            "MatMul", Attrs{{"transpose_b", transpose_b}},
            Example::tensors({Shape{2, 100000}, transpose_b ? Shape{3, 100000} : Shape{100000, 3}},
                             7),
            7);
        for (const Context& context : devices) check(context, e);
    }
}

// Precision fp16 and bf16: activations stored in 16 bits, on devices that have engines for them.
TEST_CASE("engines of activations of 16 bits agree with the oracle") {
    const std::vector<Context>& devices = testing::test_devices();
    struct Case {
        const char* type;
        Attrs attrs;
        std::vector<Shape> shapes;
        bool narrow_output, all_tunings;
    };
    const auto outputs = [](std::int64_t n) { return Attrs{{"outputs", n}}; };
    const Case cases[] = {
        {"InnerProduct", outputs(40), {Shape{5, 72}}, true, false},
        {"InnerProduct", outputs(131), {Shape{130, 8, 3, 5}}, true, false},
        {"InnerProduct", outputs(1000), {Shape{64, 2048}}, false, true},
        {"MatMul", Attrs{}, {Shape{70, 136}, Shape{136, 68}}, true, false},
        {"MatMul", Attrs{{"transpose_b", true}}, {Shape{3, 40, 64}, Shape{24, 64}}, true, false},
    };
    for (const DType dtype : {DType::f16, DType::bf16})
        for (const Case& c : cases) {
            INFO(c.type << " of " << c.shapes[0].str() << ", " << name_of(dtype));
            std::vector<HostArray> tensors = Example::tensors(c.shapes, 4);
            round_to(dtype, tensors[0].data);
            Example e(c.type, c.attrs, tensors, 4);
            e.inputs[0].dtype = e.problem.inputs[0].dtype = dtype;
            if (c.narrow_output) e.problem.outputs[0].dtype = dtype;
            e.problem.precision = dtype == DType::f16 ? Precision::fp16 : Precision::bf16;
            for (const Context& context : devices)
                check(context, e,
                      c.all_tunings && dtype == DType::f16 ? Tuned::constant : Tuned::none);
            add_epilogue(e, "relu", 9, dtype);
            for (const Context& context : devices) check(context, e);
        }
}

// Attention's products, and those of the gradients of weights: both factors are computed, and
// stored in 16 bits. storage_test covers other engines for them, whose kernels take long to compile
// for CPUs.
TEST_CASE("engines on matrix units agree with the oracle over two factors of 16 bits") {
    const std::vector<Context>& devices = testing::test_devices();
    struct Case {
        bool transpose_a, transpose_b;
        std::vector<Shape> shapes;
        DType first, second, output;
        Precision precision;
        bool all_tunings = false;
    };
    constexpr DType f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16;
    const Case cases[] = {
        {false, true, {Shape{2, 3, 136, 64}, Shape{2, 3, 72, 64}}, f16, f16, f16, Precision::fp16},
        {false, false, {Shape{6, 40, 136}, Shape{6, 136, 64}}, bf16, bf16, bf16, Precision::bf16},
        {true, false, {Shape{600, 136}, Shape{600, 72}}, f16, f16, f32, Precision::fp16, true},
        {true, false, {Shape{600, 136}, Shape{600, 72}}, bf16, f32, f32, Precision::bf16, true},
        {true, true, {Shape{3, 200, 24}, Shape{16, 200}}, bf16, bf16, f32, Precision::bf16},
        // Rows whose length is not a multiple of eight, and batches that are broadcast in two
        // dimensions.
        {false, false, {Shape{2, 1, 19, 37}, Shape{2, 3, 37, 21}}, f16, f16, bf16, Precision::fp16},
        {false, false, {Shape{2, 1, 24, 40}, Shape{2, 3, 40, 16}}, f16, f16, f16, Precision::fp16},
        {true, false, {Shape{67, 131}, Shape{67, 9}}, bf16, f16, f16, Precision::bf16},
        {false, false, {Shape{70, 136}, Shape{136, 68}}, f32, f16, f16, Precision::fp16},
        // With a finer precision than that of the stored values.
        {false, true, {Shape{70, 136}, Shape{72, 136}}, f16, bf16, f32, Precision::fp32},
        {false, true, {Shape{70, 136}, Shape{72, 136}}, bf16, bf16, f32, Precision::tf32},
    };
    for (const Case& c : cases) {
        std::vector<HostArray> tensors = Example::tensors(c.shapes, 4);
        const DType types[] = {c.first, c.second};
        for (std::size_t i = 0; i < 2; ++i) round_to(types[i], tensors[i].data);
        Example e(
            "MatMul",
            Attrs{{"transpose_a", c.transpose_a}, {"transpose_b", c.transpose_b}, {"alpha", 0.125}},
            tensors, 4);
        for (std::size_t i = 0; i < 2; ++i)
            e.inputs[i].dtype = e.problem.inputs[i].dtype = types[i];
        e.problem.outputs[0].dtype = c.output;
        e.problem.precision = c.precision;
        // Of the other engines, the reference alone.
        const std::vector<std::string_view> only{"mma_", "reference"};
        for (const Context& context : devices)
            check(context, e, c.all_tunings ? Tuned::computed : Tuned::none, only);
        add_epilogue(e, "relu", 9);
        for (const Context& context : devices) check(context, e, Tuned::none, only);
    }
}
