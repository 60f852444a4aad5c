// SPDX-License-Identifier: MIT
// Compares every engine of MatMul, InnerProduct and Embedding with the oracle, on every device:
// over the tables of cases, over seeded random problems, with every value of each tuning parameter,
// and with epilogues.
#include "engine/activations.hpp"
#include "engine/engine.hpp"
#include "engine/small_integers.hpp"
#include "graph/operator.hpp"
#include "runtime/access.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/engine_trials.hpp"
#include "support/json_cases.hpp"
#include "support/turns.hpp"

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>

using namespace dlprim;
using testing::ref;
using testing::tolerance;

namespace {

using Json = nlohmann::json;

HostArray normals(const Shape& shape, std::mt19937& random) {
    HostArray made{shape, {}, DType::f32};
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < shape.numel(); ++i)
        made.data.push_back(static_cast<double>(normal(random)));
    return made;
}

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
        as_expanded();
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
    /// What engines get after expand(): no activation, and an input whose features begin at 1.
    void as_expanded() {
        if (problem.attrs.has("activation"))
            problem.attrs.set("activation", std::string("identity"));
        if (!problem.attrs.has("axis")) return;
        const Shape x = inputs[0].shape;
        const std::int64_t axis = problem.attrs.integer("axis");
        const int first = static_cast<int>(axis < 0 ? axis + x.rank() : axis);
        if (first != 1) inputs[0].shape = Shape{x.product(0, first), x.product(first, x.rank())};
        problem.attrs.set("axis", std::int64_t{1});
    }
    static std::vector<HostArray> tensors(const std::vector<Shape>& shapes, unsigned seed) {
        std::mt19937 random(seed + 1000);
        std::vector<HostArray> made;
        made.reserve(shapes.size());
        for (const Shape& shape : shapes) made.push_back(normals(shape, random));
        return made;
    }
};

Tensor upload(const Context& context, const HostArray& array) {
    // Other data in front, so that offsets are tested too.
    const std::int64_t count = array.shape.numel() + 3;
    std::vector<double> values(3, 0);
    values.insert(values.end(), array.data.begin(), array.data.end());
    Tensor all(context, Shape{count}, array.dtype);
    std::vector<std::byte> bytes(values.size() * size_of(array.dtype));
    convert(values.data(), DType::f64, bytes.data(), array.dtype, values.size());
    all.copy_from_host(bytes.data(), bytes.size());
    return array.data.empty() ? Tensor(context, Shape{1}, array.dtype) : all.slice(0, 3, count);
}

testing::Turns turns;

void check_engine(const Context& context, const Engine& engine, Problem problem,
                  const std::vector<Tensor>& inputs, const std::vector<double>& wanted,
                  const Tuning* given = nullptr) {
    ContextImpl& impl = Access::impl(context);
    for (const LayoutChoice& choice : engine.layouts(impl.traits(), problem)) {
        for (std::size_t i = 0; i < choice.inputs.size(); ++i)
            problem.inputs[i].layout = choice.inputs[i];
        std::string kind = std::string(engine.name());
        for (const Layout& layout : choice.inputs) kind += layout.is_plain() ? " plain" : " packed";
        if (!problem.epilogue.empty()) kind += " with epilogue";
        for (const Operand& operand : problem.inputs)
            if (operand.dtype != DType::f32) kind += ' ' + std::string(name_of(operand.dtype));
        if (given == nullptr && !turns.take(kind, context)) continue;
        const Tuning tuning = given ? *given : engine.default_tuning(impl.traits(), problem);
        std::vector<Tensor> operands = inputs;
        for (std::size_t i = 0; i < choice.inputs.size(); ++i)
            if (!choice.inputs[i].is_plain()) {
                operands[i] =
                    Tensor(context, Shape{static_cast<std::int64_t>(choice.inputs[i].bytes / 4)});
                const BufferRef pair[] = {ref(inputs[i]), ref(operands[i])};
                engine.build_packing(impl, problem, tuning, static_cast<int>(i))
                    ->enqueue(impl.queue(), pair);
            }
        Tensor output(context, problem.outputs[0].shape, problem.outputs[0].dtype);
        output.fill(1e30);
        operands.push_back(output);
        if (const std::uint64_t scratch = engine.workspace_bytes(impl.traits(), problem, tuning)) {
            operands.push_back(
                Tensor(context, Shape{static_cast<std::int64_t>((scratch + 3) / 4)}));
            operands.back().fill(1e30);
        }
        std::vector<BufferRef> bound;
        bound.reserve(operands.size());
        for (const Tensor& operand : operands) bound.push_back(ref(operand));
        const auto launch = engine.build(impl, problem, tuning);
        launch->enqueue(impl.queue(), bound);
        const std::vector<double> first = output.to_doubles();
        CHECK(relative_error(first, wanted, 1e-15) < tolerance(problem));
        launch->enqueue(impl.queue(), bound);
        CHECK(output.to_doubles() == first);
        CHECK(engine.estimate(impl.traits(), problem, tuning) > 0);
    }
}

// `constant_tunings`: test tunings only if the second factor is constant. `of_unit`: of the other
// engines, run only the reference.
void check(const Context& context, const Example& e, bool all_tunings = false,
           bool constant_tunings = false, bool of_unit = false) {
    ContextImpl& impl = Access::impl(context);
    std::vector<Tensor> inputs;
    for (const HostArray& input : e.inputs) inputs.push_back(upload(context, input));
    for (const bool constant : {false, true}) {
        Problem problem = e.problem;
        problem.inputs[1].constant = constant;
        for (const Engine* engine : EngineRegistry::instance().of(problem.op, impl.is_host())) {
            INFO(engine->name() << " on " << context.info().name << ": " << problem.key());
            if (!testing::Turns::asked_for(engine->name())) continue;
            if (of_unit && engine->name().find("mma_") == std::string_view::npos &&
                engine->name().find("reference") == std::string_view::npos)
                continue;
            if (!engine->is_applicable(impl.traits(), problem)) continue;
            check_engine(context, *engine, problem, inputs, e.wanted.data);
            if (!all_tunings || constant != constant_tunings) continue;
            const Tuning start = engine->default_tuning(impl.traits(), problem);
            const TuneSpace space = engine->tune_space(impl.traits(), problem);
            std::vector<Tuning> parts = space.tiles;
            for (const auto& [name, values] : space.values)
                for (const std::int64_t value : values) parts.push_back({{name, value}});
            const testing::Share share = testing::sample_of(context);
            unsigned number = 0;
            for (const Tuning& part : parts) {
                if (!share.has(number++)) continue;
                Tuning tuning = part;
                tuning.insert(start.begin(), start.end());
                INFO(text_of(tuning));
                check_engine(context, *engine, problem, inputs, e.wanted.data, &tuning);
            }
        }
    }
}

unsigned random_problems() {
    const char* count = std::getenv("DLPRIM_TEST_RANDOM");
    return count ? static_cast<unsigned>(std::atoi(count)) : 200;
}

void check_table(const std::string& path) {
    const std::vector<Context>& devices = testing::test_devices();
    std::ifstream file(path);
    for (const Json& entry : Json::parse(file)) {
        if (entry.value("speed", false)) continue;
        INFO(entry["name"].get<std::string>());
        std::mt19937 random(1);
        std::vector<HostArray> inputs;
        for (const Json& input : entry["inputs"]) {
            HostArray array = normals(Shape(input["shape"].get<Ints>()), random);
            if (input.contains("dtype"))
                array.dtype = parse_dtype(input["dtype"].get<std::string>());
            if (input.value("fill", "") == "labels") {
                std::uniform_int_distribution<int> label(0, input["classes"].get<int>() - 1);
                for (double& v : array.data) v = label(random);
            } else if (!is_float(array.dtype)) {
                for (double& v : array.data) v = std::abs(std::round(9 * v));
            }
            inputs.push_back(array);
        }
        const Example e(entry["type"], testing::attrs_of(entry["options"]), inputs, 1);
        for (const Context& context : devices) check(context, e);
    }
    CHECK(turns.tried(devices));
}

}  // namespace

TEST_CASE("engines of MatMul agree with the oracle over the table") {
    check_table(CASES_DIR "/matmul.json");
}
TEST_CASE("engines of InnerProduct agree with the oracle over the table") {
    check_table(CASES_DIR "/inner_product.json");
}

TEST_CASE("engines of MatMul agree with the oracle over random problems") {
    const std::vector<Context>& devices = testing::test_devices();
    for (unsigned seed = 1; seed <= random_problems(); ++seed) {
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
    CHECK(turns.tried(devices));
}

TEST_CASE("engines agree with the oracle for every tuning") {
    const std::vector<Context>& devices = testing::test_devices();
    for (const Context& context : devices) {
        check(context,
              Example("MatMul", Attrs{}, Example::tensors({Shape{45, 600}, Shape{600, 70}}, 1), 1),
              true);
        check(context,
              Example("MatMul", Attrs{{"transpose_b", true}},
                      Example::tensors({Shape{9, 600}, Shape{70, 600}}, 2), 2),
              true);
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
            const Activation& f = find_activation(activation);
            std::mt19937 random(5);
            e.inputs.push_back(normals(e.wanted.shape, random));
            e.problem.inputs.push_back({e.wanted.shape, DType::f32, {}, false});
            e.problem.epilogue = {{EpilogueStage::Kind::add, 3, {}, 0, 0},
                                  {EpilogueStage::Kind::activation, -1, f.name, f.alpha, f.beta}};
            for (std::size_t i = 0; i < e.wanted.data.size(); ++i)
                e.wanted.data[i] =
                    activate(f.name, e.wanted.data[i] + e.inputs[3].data[i], f.alpha, f.beta);
            for (const Context& context : devices) check(context, e);
        }
    CHECK(turns.tried(devices));
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
        for (HostArray& tensor : tensors)  // the ends of the range often
            for (double& v : tensor.data) v = std::clamp(std::round(200 * v), -255.0, 255.0);
        Example e("MatMul", c.attrs, std::move(tensors), 6);
        e.problem.attrs.set(small_integers_attr, true);
        for (const Context& context : devices) check(context, e);
    }
    CHECK(turns.tried(devices));
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
            for (double& v : tensors[0].data) {
                std::byte stored[8];
                convert(&v, DType::f64, stored, dtype, 1);
                convert(stored, dtype, &v, DType::f64, 1);
            }
            Example e(c.type, c.attrs, tensors, 4);
            e.inputs[0].dtype = e.problem.inputs[0].dtype = dtype;
            if (c.narrow_output) e.problem.outputs[0].dtype = dtype;
            e.problem.precision = dtype == DType::f16 ? Precision::fp16 : Precision::bf16;
            for (const Context& context : devices)
                check(context, e, c.all_tunings && dtype == DType::f16, true);
            // ReLU of the sum with another 16-bit tensor.
            const Activation& f = find_activation("relu");
            std::mt19937 random(9);
            HostArray added = normals(e.problem.outputs[0].shape, random);
            for (std::size_t i = 0; i < added.data.size(); ++i) {
                std::byte stored[8];
                convert(&added.data[i], DType::f64, stored, dtype, 1);
                convert(stored, dtype, &added.data[i], DType::f64, 1);
                e.wanted.data[i] = activate(f.name, e.wanted.data[i] + added.data[i], 0, 0);
            }
            added.dtype = dtype;
            e.problem.epilogue = {
                {EpilogueStage::Kind::add, static_cast<int>(e.inputs.size()), {}, 0, 0},
                {EpilogueStage::Kind::activation, -1, f.name, 0, 0}};
            e.problem.inputs.push_back({added.shape, dtype, {}, false});
            e.inputs.push_back(added);
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
        for (std::size_t i = 0; i < 2; ++i) {
            for (double& v : tensors[i].data) {
                std::byte stored[8];
                convert(&v, DType::f64, stored, types[i], 1);
                convert(stored, types[i], &v, DType::f64, 1);
            }
        }
        Example e(
            "MatMul",
            Attrs{{"transpose_a", c.transpose_a}, {"transpose_b", c.transpose_b}, {"alpha", 0.125}},
            tensors, 4);
        for (std::size_t i = 0; i < 2; ++i)
            e.inputs[i].dtype = e.problem.inputs[i].dtype = types[i];
        e.problem.outputs[0].dtype = c.output;
        e.problem.precision = c.precision;
        for (const Context& context : devices) check(context, e, c.all_tunings, false, true);
        // An epilogue that adds another tensor, and an activation.
        std::mt19937 random(9);
        e.inputs.push_back(normals(e.wanted.shape, random));
        e.problem.inputs.push_back({e.wanted.shape, f32, {}, false});
        e.problem.epilogue = {{EpilogueStage::Kind::add, 2, {}, 0, 0},
                              {EpilogueStage::Kind::activation, -1, "relu", 0, 0}};
        for (std::size_t i = 0; i < e.wanted.data.size(); ++i)
            e.wanted.data[i] = std::max(0.0, e.wanted.data[i] + e.inputs[2].data[i]);
        for (const Context& context : devices) check(context, e, false, false, true);
    }
}
