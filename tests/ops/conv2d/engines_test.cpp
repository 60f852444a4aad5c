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

    Example(std::string title, const Attrs& options, const Shape& input, unsigned seed)
        : name(std::move(title)) {
        const auto op = make_forward();
        attrs = op->schema().complete(options, name);
        attrs.set("activation", std::string("identity"));
        const Conv2dOptions o = Conv2dOptions::read(attrs);
        std::vector<TensorSpec> specs{{input, DType::f32}};
        for (const ParamSpec& param : op->params(attrs, specs)) specs.push_back(param.spec);
        std::mt19937 random(seed);
        x = array(input, random);
        weight = array(specs[1].shape, random);
        bias = array(Shape{weight.shape[0]}, random);
        y.shape = op->infer(attrs, specs)[0].shape;
        dy = array(y.shape, random);
        forward_oracle(o, x, weight, o.bias ? &bias : nullptr, y);
        dx.shape = x.shape;
        backward_data_oracle(o, dy, weight, dx);
        dweight.shape = weight.shape;
        backward_filter_oracle(o, x, dy, dweight);
    }

    static HostArray array(const Shape& shape, std::mt19937& random) {
        HostArray made{shape, {}, DType::f32};
        std::normal_distribution<float> normal;
        for (std::int64_t i = 0; i < shape.numel(); ++i)
            made.data.push_back(static_cast<double>(normal(random)));
        return made;
    }
};

Tensor upload(const Context& context, const HostArray& array) {
    // A foreign offset in front, so that offsets are tried too.
    std::vector<float> values(3, 1e30f);
    values.insert(values.end(), array.data.begin(), array.data.end());
    const auto count = static_cast<std::int64_t>(values.size());
    const Tensor all(context, Shape{count}, values);
    if (count == 3) return Tensor(context, Shape{1}, std::vector<float>{0});
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

// `from` turned from one layout into another by the Reorder engine.
Tensor reordered(const Context& context, const Tensor& from, const Shape& shape,
                 const Layout& from_layout, const Layout& to_layout) {
    Problem problem;
    problem.op = "Reorder";
    problem.inputs.push_back({shape, DType::f32, from_layout, false});
    problem.outputs.push_back({shape, DType::f32, to_layout, false});
    const Tensor to(context, physical_shape(shape, to_layout));
    ContextImpl& impl = context.impl();
    const Engine* engine = EngineRegistry::instance().of("Reorder", impl.is_host()).at(0);
    const BufferRef pair[] = {ref(from), ref(to)};
    engine->build(impl, problem, {})->enqueue(impl.queue(), pair);
    return to;
}

// Operand `index` in the layout that its engine asked for.
Tensor laid_out(const Context& context, const Engine& engine, const Problem& problem,
                const Tuning& tuning, std::size_t index, const Tensor& plain) {
    const Operand& operand = problem.inputs[index];
    if (operand.layout.is_plain()) return plain;
    if (operand.layout.kind != Layout::Kind::packed)
        return reordered(context, plain, operand.shape, Layout::plain(), operand.layout);
    const Tensor packed(context, Shape{static_cast<std::int64_t>(operand.layout.bytes / 4)});
    ContextImpl& impl = context.impl();
    const BufferRef pair[] = {ref(plain), ref(packed)};
    engine.build_packing(impl, problem, tuning, static_cast<int>(index))
        ->enqueue(impl.queue(), pair);
    return packed;
}

testing::Turns turns;

// Runs the problem by every engine of the context's device and checks the first output.
void check(const Context& context, Problem problem, const std::vector<Tensor>& inputs,
           const std::vector<double>& wanted) {
    ContextImpl& impl = context.impl();
    const auto engines = EngineRegistry::instance().of(problem.op, impl.is_host());
    REQUIRE(!engines.empty());
    for (const Engine* engine : engines) {
        INFO(engine->name() << " on " << context.info().name << ": " << problem.key());
        if (!engine->is_applicable(impl.traits(), problem)) continue;
        for (const LayoutChoice& choice : engine->layouts(impl.traits(), problem)) {
            std::string kind = std::string(engine->name());
            for (const Layout& layout : choice.inputs)
                kind += layout.kind == Layout::Kind::packed ? " packed" : ' ' + layout.str();
            if (!problem.epilogue.empty()) kind += " with epilogue";
            if (!turns.take(kind, context)) continue;
            for (std::size_t i = 0; i < choice.inputs.size(); ++i)
                problem.inputs[i].layout = choice.inputs[i];
            problem.outputs[0].layout = choice.outputs[0];
            const Tuning tuning = engine->default_tuning(impl.traits(), problem);
            std::vector<Tensor> operands;
            for (std::size_t i = 0; i < choice.inputs.size(); ++i)
                operands.push_back(laid_out(context, *engine, problem, tuning, i, inputs[i]));
            const Shape& shape = problem.outputs[0].shape;
            Tensor output(context, physical_shape(shape, choice.outputs[0]));
            output.fill(1e30);
            operands.push_back(output);
            const std::uint64_t scratch = engine->workspace_bytes(impl.traits(), problem, tuning);
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
            CHECK(relative_error(plain.to_floats(), wanted) < 1e-5);
            // Padding lanes are zero: what the reorder of the plain output has there.
            if (!choice.outputs[0].is_plain()) {
                const Tensor again =
                    reordered(context, plain, shape, Layout::plain(), choice.outputs[0]);
                CHECK(again.to_floats() == first);
            }
            launch->enqueue(impl.queue(), bound);
            CHECK(output.to_floats() == first);
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
