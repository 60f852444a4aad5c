// SPDX-License-Identifier: MIT
// Every engine of convolution and of its gradients against the oracle, on every device: over the
// table of cases, over seeded random problems, and with every kind of epilogue. Other layouts
// are made by the Reorder engines.
#include "engine/activations.hpp"
#include "engine/engine.hpp"
#include "ops/conv2d/operators.hpp"
#include "ops/conv2d/options.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
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
using namespace dlprim::conv2d;

namespace {

using Json = nlohmann::json;

Attrs attrs_of(const Json& options) {
    Attrs attrs;
    for (const auto& [name, value] : options.items()) {
        if (value.is_boolean()) attrs.set(name, value.get<bool>());
        if (value.is_number_integer()) attrs.set(name, value.get<std::int64_t>());
        if (value.is_string()) attrs.set(name, value.get<std::string>());
        if (value.is_array()) attrs.set(name, value.get<Ints>());
    }
    return attrs;
}

// One convolution: sizes and random contents, rounded to float as the engines see them.
struct Example {
    std::string name;
    Attrs attrs;
    HostArray x, weight, bias, y, dy, dx, dweight;

    // x and dy are values of `dtype`.
    Example(std::string title, const Attrs& options, const Shape& input, unsigned seed,
            DType dtype = DType::f32)
        : name(std::move(title)) {
        const auto op = make_forward();
        attrs = op->schema().complete(options, name);
        attrs.set("activation", std::string("identity"));
        const Conv2dOptions o = Conv2dOptions::read(attrs);
        std::vector<TensorSpec> specs{{input, DType::f32}};
        for (const ParamSpec& param : op->params(attrs, specs)) specs.push_back(param.spec);
        std::mt19937 random(seed);
        x = array(input, random, dtype);
        weight = array(specs[1].shape, random);
        bias = array(Shape{weight.shape[0]}, random);
        y.shape = op->infer(attrs, specs)[0].shape;
        dy = array(y.shape, random, dtype);
        forward_oracle(o, x, weight, o.bias ? &bias : nullptr, y);
        dx.shape = x.shape;
        backward_data_oracle(o, dy, weight, dx);
        dweight.shape = weight.shape;
        backward_filter_oracle(o, x, dy, dweight);
    }

    static HostArray array(const Shape& shape, std::mt19937& random, DType dtype = DType::f32) {
        HostArray made{shape, {}, DType::f32};
        std::normal_distribution<float> normal;
        for (std::int64_t i = 0; i < shape.numel(); ++i) {
            const float value = normal(random);
            std::byte stored[8];
            convert(&value, DType::f32, stored, dtype, 1);
            made.data.push_back(0);
            convert(stored, dtype, &made.data.back(), DType::f64, 1);
        }
        return made;
    }
};

Tensor upload(const Context& context, const HostArray& array, DType dtype = DType::f32) {
    // A foreign offset in front, so that offsets are tried too.
    std::vector<float> values(3, 1e30f);
    values.insert(values.end(), array.data.begin(), array.data.end());
    const auto count = static_cast<std::int64_t>(values.size());
    const Tensor all(context, Shape{count}, values, dtype);
    if (count == 3) return Tensor(context, Shape{1}, std::vector<float>{0}, dtype);
    return all.slice(0, 3, count);
}

BufferRef ref(const Tensor& tensor) {
    return {tensor.buffer().get(), tensor.byte_offset()};
}

double relative_error(const std::vector<float>& found, const std::vector<double>& wanted) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const double d = static_cast<double>(found[i]) - wanted[i];
        error += d * d;
        size += wanted[i] * wanted[i];
        if (!std::isfinite(found[i])) return INFINITY;
    }
    return error == 0 ? 0 : std::sqrt(error / std::max(size, 1e-30));
}

// `from` turned from one layout into another by the Reorder engine, with `front` elements of
// something else before it.
Tensor reordered(const Context& context, const Tensor& from, const Shape& shape,
                 const Layout& from_layout, const Layout& to_layout, std::int64_t front = 0) {
    Problem problem;
    problem.op = "Reorder";
    problem.inputs.push_back({shape, from.dtype(), from_layout, false});
    problem.outputs.push_back({shape, from.dtype(), to_layout, false});
    const Shape stored = physical_shape(shape, to_layout);
    const Tensor all(context, Shape{stored.numel() + front}, from.dtype());
    const Tensor to = all.slice(0, front, front + stored.numel());
    ContextImpl& impl = context.impl();
    const Engine* engine = EngineRegistry::instance().of("Reorder", impl.is_host()).at(0);
    const BufferRef pair[] = {ref(from), ref(to)};
    engine->build(impl, problem, {})->enqueue(impl.queue(), pair);
    return to;
}

// Operand `index` in the layout that its engine asked for.
Tensor laid_out(const Context& context, const Engine& engine, const Problem& problem,
                const Tuning& tuning, std::size_t index, const Tensor& plain, std::int64_t front) {
    const Operand& operand = problem.inputs[index];
    if (operand.layout.is_plain()) return plain;
    if (operand.layout.kind != Layout::Kind::packed)
        return reordered(context, plain, operand.shape, Layout::plain(), operand.layout, front);
    const Tensor packed(context, Shape{static_cast<std::int64_t>(operand.layout.bytes / 4)});
    ContextImpl& impl = context.impl();
    const BufferRef pair[] = {ref(plain), ref(packed)};
    engine.build_packing(impl, problem, tuning, static_cast<int>(index))
        ->enqueue(impl.queue(), pair);
    return packed;
}

// Of the L2 norm: float sums; or the rounding of weights, and of what is added and stored, each by
// up to half a unit of the last place of what the problem stores.
double tolerance(const Problem& problem) {
    double most = 1e-5;
    for (const auto* operands : {&problem.inputs, &problem.outputs})
        for (const Operand& operand : *operands) {
            if (operand.dtype == DType::f16) most = std::max(most, 3 * 0x1p-11);
            if (operand.dtype == DType::bf16) most = std::max(most, 3 * 0x1p-8);
        }
    return most;
}

testing::Turns turns;

// The default tuning; with `all` every combination of tile and stages that the engine offers, and
// every other value it offers alone.
std::vector<Tuning> tunings(const Engine& engine, const Traits& traits, const Problem& problem,
                            bool all) {
    const Tuning standard = engine.default_tuning(traits, problem);
    std::vector<Tuning> made{standard};
    if (!all) return made;
    for (const auto& [name, values] : engine.tune_space(traits, problem)) {
        const bool combined = name == "tile" || name == "stages";
        const std::vector<Tuning> base = combined ? made : std::vector<Tuning>{standard};
        for (const Tuning& tuning : base)
            for (const std::int64_t value : values) {
                Tuning next = tuning;
                next[name] = value;
                if (std::find(made.begin(), made.end(), next) == made.end()) made.push_back(next);
            }
    }
    return made;
}

// Runs the problem by every engine of the context's device and checks the first output. `only`: by
// those with this in their names, whoever's turn it is.
void check(const Context& context, Problem problem, const std::vector<Tensor>& inputs,
           const std::vector<double>& wanted, bool all_tunings = false,
           std::string_view only = {}) {
    ContextImpl& impl = context.impl();
    const auto engines = EngineRegistry::instance().of(problem.op, impl.is_host());
    REQUIRE(!engines.empty());
    for (const Engine* engine : engines) {
        if (engine->name().find(only) == std::string_view::npos) continue;
        INFO(engine->name() << " on " << context.info().name << ": " << problem.key());
        if (!engine->is_applicable(impl.traits(), problem)) continue;
        int number = 0;
        for (const LayoutChoice& choice : engine->layouts(impl.traits(), problem)) {
            std::string kind = std::string(engine->name()) + ' ' + std::to_string(number++);
            for (const Layout& layout : choice.inputs)
                kind += layout.kind == Layout::Kind::packed ? " packed" : ' ' + layout.str();
            if (!problem.epilogue.empty()) kind += " with epilogue";
            for (const Operand& operand : problem.inputs)
                if (operand.dtype != DType::f32) kind += ' ' + std::string(name_of(operand.dtype));
            if (only.empty() && !turns.take(kind, context)) continue;
            for (std::size_t i = 0; i < choice.inputs.size(); ++i)
                problem.inputs[i].layout = choice.inputs[i];
            problem.outputs[0].layout = choice.outputs[0];
            for (const Tuning& tuning : tunings(*engine, impl.traits(), problem, all_tunings)) {
                std::vector<Tensor> operands;
                // Images with channels last begin now at a multiple of 16 bytes, now at any
                // element.
                static int trials = 0;
                const std::int64_t front =
                    choice.inputs[0].kind == Layout::Kind::channels_last && ++trials % 3 == 0 ? 3
                                                                                              : 0;
                for (std::size_t i = 0; i < choice.inputs.size(); ++i)
                    operands.push_back(
                        laid_out(context, *engine, problem, tuning, i, inputs[i], front));
                const Shape& shape = problem.outputs[0].shape;
                Tensor output(context, physical_shape(shape, choice.outputs[0]),
                              problem.outputs[0].dtype);
                output.fill(1e30);
                operands.push_back(output);
                const std::uint64_t scratch =
                    engine->workspace_bytes(impl.traits(), problem, tuning);
                if (scratch > 0)
                    operands.push_back(
                        Tensor(context, Shape{static_cast<std::int64_t>((scratch + 3) / 4)}));
                std::vector<BufferRef> bound;
                for (const Tensor& operand : operands) bound.push_back(ref(operand));
                const auto launch = engine->build(impl, problem, tuning);
                launch->enqueue(impl.queue(), bound);
                const std::vector<float> first = output.to_floats();
                const Tensor plain =
                    choice.outputs[0].is_plain()
                        ? output
                        : reordered(context, output, shape, choice.outputs[0], Layout::plain());
                CHECK(relative_error(plain.to_floats(), wanted) < tolerance(problem));
                // Padding lanes are zero: what the reorder of the plain output has there.
                if (!choice.outputs[0].is_plain()) {
                    const Tensor again =
                        reordered(context, plain, shape, Layout::plain(), choice.outputs[0]);
                    CHECK(again.to_floats() == first);
                }
                launch->enqueue(impl.queue(), bound);
                CHECK(output.to_floats() == first);
            }
        }
        for (Operand& operand : problem.inputs) operand.layout = {};
        problem.outputs[0].layout = {};
    }
}

Problem problem_of(const char* op, const Attrs& attrs, const std::vector<Shape>& inputs,
                   const Shape& output) {
    Problem problem;
    problem.op = op;
    problem.attrs = attrs;
    for (const Shape& shape : inputs) problem.inputs.push_back({shape, DType::f32, {}, false});
    problem.outputs.push_back({output, DType::f32, {}, false});
    return problem;
}

Attrs gradient_attrs(const Attrs& attrs, const char* name, const Shape& shape) {
    Attrs kept;
    for (const char* option : {"groups", "kernel", "stride", "pad", "dilate"})
        kept.set(option, attrs.items().find(option)->second);
    return kept.set(name, shape.to_vector());
}

void check(const Context& context, const Example& e) {
    const Tensor x = upload(context, e.x), weight = upload(context, e.weight);
    const Tensor dy = upload(context, e.dy);
    std::vector<Shape> shapes{e.x.shape, e.weight.shape};
    std::vector<Tensor> inputs{x, weight};
    if (e.attrs.boolean("bias")) {
        shapes.push_back(e.bias.shape);
        inputs.push_back(upload(context, e.bias));
    }
    for (const bool constant : {false, true}) {
        Problem problem = problem_of(forward_type, e.attrs, shapes, e.y.shape);
        problem.inputs[1].constant = constant;
        problem.phase = constant ? Phase::inference : Phase::training;
        check(context, problem, inputs, e.y.data);
    }
    check(context,
          problem_of(backward_data_type, gradient_attrs(e.attrs, "input_shape", e.x.shape),
                     {e.y.shape, e.weight.shape}, e.x.shape),
          {dy, weight}, e.dx.data);
    check(context,
          problem_of(backward_filter_type, gradient_attrs(e.attrs, "weight_shape", e.weight.shape),
                     {e.x.shape, e.y.shape}, e.weight.shape),
          {x, dy}, e.dweight.data);
}

}  // namespace

TEST_CASE("engines agree with the oracle over the table") {
    const std::vector<Context>& devices = testing::test_devices();
    std::ifstream file(CASES_DIR "/conv2d.json");
    for (const Json& entry : Json::parse(file)) {
        if (entry.value("speed", false)) continue;
        const Example e(entry["name"], attrs_of(entry["options"]),
                        Shape(entry["inputs"][0]["shape"].get<Ints>()), 1);
        INFO(e.name);
        for (const Context& context : devices) check(context, e);
    }
    CHECK(turns.tried(devices));
}

TEST_CASE("engines agree with the oracle over random problems") {
    const std::vector<Context>& devices = testing::test_devices();
    const char* count = std::getenv("DLPRIM_TEST_RANDOM");
    for (unsigned seed = 1; seed <= (count ? static_cast<unsigned>(std::atoi(count)) : 200);
         ++seed) {
        std::mt19937 random(seed);
        const auto pick = [&](std::int64_t low, std::int64_t high) {
            return std::uniform_int_distribution<std::int64_t>(low, high)(random);
        };
        const std::int64_t groups = pick(0, 2) ? 1 : pick(1, 6);
        const std::int64_t in = groups * pick(1, groups == 1 ? 40 : 4);
        const std::int64_t out = groups * pick(1, groups == 1 ? 50 : 5);
        const Ints kernel{pick(1, 5), pick(1, 5)}, dilate{pick(1, 3), pick(1, 3)};
        const Ints pad{pick(0, 3), pick(0, 3), pick(0, 3), pick(0, 3)};
        Ints size;
        for (std::size_t d = 0; d < 2; ++d)
            size.push_back(pick(0, 14) + std::max<std::int64_t>(1, (kernel[d] - 1) * dilate[d] + 1 -
                                                                       pad[d] - pad[d + 2]));
        const Attrs attrs{
            {"channels_out", out},    {"groups", groups}, {"kernel", kernel},
            {"dilate", dilate},       {"pad", pad},       {"stride", Ints{pick(1, 4), pick(1, 4)}},
            {"bias", pick(0, 1) == 1}};
        const Example e("random", attrs, Shape{pick(1, 3), in, size[0], size[1]}, seed);
        for (const Context& context : devices) check(context, e);
    }
    CHECK(turns.tried(devices));
}

TEST_CASE("an epilogue is applied") {
    const std::vector<Context>& devices = testing::test_devices();
    for (const bool dense : {true, false}) {
        const Attrs attrs{{"channels_out", std::int64_t(8)},
                          {"groups", std::int64_t(dense ? 1 : 8)},
                          {"kernel", Ints{3}},
                          {"pad", Ints{1}},
                          {"stride", Ints{dense ? 1 : 2}}};
        const Example e(dense ? "dense" : "depthwise", attrs, Shape{2, 8, 7, 9}, 3);
        for (const Context& context : devices) {
            for (const char* activation : {"relu", "relu6", "tanh", "leaky_relu"}) {
                const Activation& f = find_activation(activation);
                std::mt19937 random(5);
                const HostArray added = Example::array(e.y.shape, random);
                std::vector<double> wanted = e.y.data;
                for (std::size_t i = 0; i < wanted.size(); ++i)
                    wanted[i] = activate(f.name, wanted[i] + added.data[i], f.alpha, f.beta);
                Problem problem =
                    problem_of(forward_type, e.attrs,
                               {e.x.shape, e.weight.shape, e.bias.shape, e.y.shape}, e.y.shape);
                problem.epilogue = {{EpilogueStage::Kind::add, 3, {}, 0, 0},
                                    {EpilogueStage::Kind::activation, -1, f.name, f.alpha, f.beta}};
                check(context, problem,
                      {upload(context, e.x), upload(context, e.weight), upload(context, e.bias),
                       upload(context, added)},
                      wanted);
                std::vector<double> data = e.dx.data;
                for (double& v : data) v = activate(f.name, v, f.alpha, f.beta);
                problem = problem_of(backward_data_type,
                                     gradient_attrs(e.attrs, "input_shape", e.x.shape),
                                     {e.y.shape, e.weight.shape}, e.x.shape);
                problem.epilogue = {{EpilogueStage::Kind::activation, -1, f.name, f.alpha, f.beta}};
                check(context, problem, {upload(context, e.dy), upload(context, e.weight)}, data);
            }
        }
    }
    CHECK(turns.tried(devices));
}

TEST_CASE("engines by Winograd's algorithm agree with the oracle") {
    const std::vector<Context>& devices = testing::test_devices();
    struct Case {
        const char* name;
        std::int64_t n, in, out, groups, h, w;
        Ints pad;
        bool all_tunings;
        DType dtype = DType::f32;
    };
    const Case cases[] = {
        {"several slices", 2, 20, 24, 1, 13, 10, {1}, true},
        {"a long sum, pads that differ", 1, 140, 9, 1, 6, 7, {2, 0, 1, 2}, true},
        {"groups", 3, 6, 10, 2, 9, 12, {0}, false},
        {"groups of whole steps", 1, 16, 8, 2, 5, 8, {1}, false},
        {"images of half", 2, 5, 6, 1, 5, 8, {1}, false, DType::f16},
        {"images of bfloat16", 2, 5, 6, 1, 5, 8, {1}, false, DType::bf16},
        {"images of half, odd", 1, 3, 4, 1, 6, 5, {1}, false, DType::f16},
        {"pads beyond the kernel", 1, 4, 4, 1, 8, 9, {3, 4, 3, 5}, false},
        {"one pixel", 2, 5, 7, 1, 1, 1, {1}, false},
        {"many channels", 1, 512, 8, 1, 7, 7, {1}, false},
    };
    for (const Case& c : cases) {
        INFO(c.name);
        const Attrs attrs{
            {"channels_out", c.out}, {"groups", c.groups}, {"kernel", Ints{3}}, {"pad", c.pad}};
        const Example e(c.name, attrs, Shape{c.n, c.in, c.h, c.w}, 7, c.dtype);
        Problem forward =
            problem_of(forward_type, e.attrs, {e.x.shape, e.weight.shape, e.bias.shape}, e.y.shape);
        Problem backward =
            problem_of(backward_data_type, gradient_attrs(e.attrs, "input_shape", e.x.shape),
                       {e.y.shape, e.weight.shape}, e.x.shape);
        for (Problem* problem : {&forward, &backward})
            problem->inputs[0].dtype = problem->outputs[0].dtype = c.dtype;
        for (const Context& context : devices) {
            const Tensor weight = upload(context, e.weight), bias = upload(context, e.bias);
            for (const Phase phase : {Phase::inference, Phase::training}) {
                forward.phase = phase;
                check(context, forward, {upload(context, e.x, c.dtype), weight, bias}, e.y.data,
                      c.all_tunings, "winograd");
            }
            check(context, backward, {upload(context, e.dy, c.dtype), weight}, e.dx.data,
                  c.all_tunings, "winograd");
        }
    }
}

TEST_CASE("a filter gradient over a million positions keeps its precision") {
    const std::vector<Context>& devices = testing::test_devices();
    const Attrs attrs{{"channels_out", std::int64_t(2)}, {"kernel", Ints{1}}, {"bias", false}};
    const Example e("long", attrs, Shape{2, 2, 700, 720}, 9);
    for (const Context& context : devices)
        check(context,
              problem_of(backward_filter_type,
                         gradient_attrs(e.attrs, "weight_shape", e.weight.shape),
                         {e.x.shape, e.y.shape}, e.weight.shape),
              {upload(context, e.x), upload(context, e.dy)}, e.dweight.data);
}

// Precision fp16 and bf16: images stored in 16 bits, on devices that have engines for that.
TEST_CASE("engines of images of 16 bits agree with the oracle") {
    const std::vector<Context>& devices = testing::test_devices();
    struct Case {
        const char* name;
        Ints kernel, stride, pad, dilate;
        std::int64_t in, out, n, size;
        bool all_tunings;
        std::int64_t groups = 1;
    };
    const Case cases[] = {
        {"taps", {3}, {1}, {1}, {1}, 64, 128, 2, 14, true},
        {"1x1", {1}, {1}, {0}, {1}, 256, 72, 3, 9, true},
        {"a stride", {3, 5}, {2, 3}, {1, 2}, {1}, 72, 64, 2, 15, true},
        {"empty phases", {1}, {2}, {0}, {1}, 128, 256, 2, 8, false},
        {"a dilation", {3}, {1}, {2}, {2}, 40, 24, 2, 11, false},
        {"many channels, few pixels", {3}, {1}, {1}, {1}, 512, 512, 1, 4, true},
        {"many pixels", {1}, {1}, {0}, {1}, 16, 96, 4, 56, false},
        {"odd channels out", {3}, {1}, {1}, {1}, 8, 21, 2, 10, false},
        {"a first layer", {7}, {2}, {3}, {1}, 3, 64, 2, 31, true},
        {"a first layer of odd channels", {3}, {1}, {1}, {2}, 5, 21, 2, 9, false},
        {"depthwise", {3}, {1}, {1}, {1}, 72, 72, 2, 13, true, 72},
        {"depthwise with a stride", {3, 5}, {2}, {1, 2}, {1}, 32, 32, 3, 12, true, 32},
        {"depthwise with a dilation", {3}, {1}, {2}, {2}, 8, 8, 2, 9, false, 8},
        {"depthwise with empty phases", {1}, {2}, {0}, {1}, 12, 12, 2, 9, false, 12},
    };
    for (const DType dtype : {DType::f16, DType::bf16})
        for (const Case& c : cases) {
            INFO(c.name << ", " << name_of(dtype));
            const bool all_tunings = c.all_tunings && dtype == DType::f16;
            const Attrs attrs{{"channels_out", c.out}, {"kernel", c.kernel}, {"stride", c.stride},
                              {"pad", c.pad},          {"dilate", c.dilate}, {"bias", true},
                              {"groups", c.groups}};
            const Example e(c.name, attrs, Shape{c.n, c.in, c.size, c.size + 1}, 3, dtype);
            std::mt19937 random(5);
            const HostArray added = Example::array(e.y.shape, random, dtype);
            std::vector<double> fused = e.y.data;
            for (std::size_t i = 0; i < fused.size(); ++i)
                fused[i] = std::max(fused[i] + added.data[i], 0.0);
            const auto narrow = [&](Problem problem, std::initializer_list<std::size_t> inputs,
                                    bool output) {
                problem.precision = dtype == DType::f16 ? Precision::fp16 : Precision::bf16;
                for (const std::size_t i : inputs) problem.inputs[i].dtype = dtype;
                if (output) problem.outputs[0].dtype = dtype;
                return problem;
            };
            for (const Context& context : devices) {
                const Tensor x = upload(context, e.x, dtype), dy = upload(context, e.dy, dtype);
                const Tensor weight = upload(context, e.weight), bias = upload(context, e.bias);
                const Problem forward = problem_of(
                    forward_type, e.attrs, {e.x.shape, e.weight.shape, e.bias.shape}, e.y.shape);
                // A network's image may be float.
                const Tensor image = upload(context, e.x);
                check(context, narrow(forward, {}, true), {image, weight, bias}, e.y.data);
                check(context,
                      narrow(problem_of(backward_filter_type,
                                        gradient_attrs(e.attrs, "weight_shape", e.weight.shape),
                                        {e.x.shape, e.y.shape}, e.weight.shape),
                             {1}, false),
                      {image, dy}, e.dweight.data);
                check(context, narrow(forward, {0}, true), {x, weight, bias}, e.y.data,
                      all_tunings);
                Problem with_epilogue = forward;
                with_epilogue.inputs.push_back({e.y.shape, DType::f32, {}, false});
                with_epilogue.epilogue = {{EpilogueStage::Kind::add, 3, {}, 0, 0},
                                          {EpilogueStage::Kind::activation, -1, "relu", 0, 0}};
                check(context, narrow(with_epilogue, {0, 3}, true),
                      {x, weight, bias, upload(context, added, dtype)}, fused);
                check(context, narrow(with_epilogue, {0}, false),
                      {x, weight, bias, upload(context, added)}, fused);
                check(context,
                      narrow(problem_of(backward_data_type,
                                        gradient_attrs(e.attrs, "input_shape", e.x.shape),
                                        {e.y.shape, e.weight.shape}, e.x.shape),
                             {0}, true),
                      {dy, weight}, e.dx.data, all_tunings);
                check(context,
                      narrow(problem_of(backward_filter_type,
                                        gradient_attrs(e.attrs, "weight_shape", e.weight.shape),
                                        {e.x.shape, e.y.shape}, e.weight.shape),
                             {0, 1}, false),
                      {x, dy}, e.dweight.data, all_tunings);
            }
        }
}
