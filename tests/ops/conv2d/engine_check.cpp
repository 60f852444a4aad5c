// SPDX-License-Identifier: MIT
// Runs engines of convolution outside a network, with operands in the layouts that they need, and
// compares the results with the oracle's.
#include "engine_check.hpp"

#include "runtime/access.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/engine_trials.hpp"

#include <algorithm>

namespace dlprim::conv2d {

using testing::ref;
using testing::tolerance;

Example::Example(std::string title, const Attrs& options, const Shape& input, unsigned seed,
                 DType dtype)
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

HostArray Example::array(const Shape& shape, std::mt19937& random, DType dtype) {
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

Tensor upload(const Context& context, const HostArray& array, DType dtype) {
    // Other data in front, so that offsets are tested too.
    std::vector<float> values(3, 1e30f);
    values.insert(values.end(), array.data.begin(), array.data.end());
    const auto count = static_cast<std::int64_t>(values.size());
    const Tensor all(context, Shape{count}, values, dtype);
    if (count == 3) return Tensor(context, Shape{1}, std::vector<float>{0}, dtype);
    return all.slice(0, 3, count);
}

namespace {

// `from`, converted from one layout to another by the Reorder engine, with `front` other elements
// before it.
Tensor reordered(const Context& context, const Tensor& from, const Shape& shape,
                 const Layout& from_layout, const Layout& to_layout, std::int64_t front = 0) {
    Problem problem;
    problem.op = "Reorder";
    problem.inputs.push_back({shape, from.dtype(), from_layout, false});
    problem.outputs.push_back({shape, from.dtype(), to_layout, false});
    const Shape stored = physical_shape(shape, to_layout);
    const Tensor all(context, Shape{stored.numel() + front}, from.dtype());
    Tensor to = all.slice(0, front, front + stored.numel());
    ContextImpl& impl = Access::impl(context);
    const Engine* engine = EngineRegistry::instance().of("Reorder", impl.is_host()).at(0);
    const BufferRef pair[] = {ref(from), ref(to)};
    engine->build(impl, problem, {})->enqueue(impl.queue(), pair);
    return to;
}

// Operand `index` in the layout that its engine needs.
Tensor laid_out(const Context& context, const Engine& engine, const Problem& problem,
                const Tuning& tuning, std::size_t index, const Tensor& plain, std::int64_t front) {
    const Operand& operand = problem.inputs[index];
    if (operand.layout.is_plain()) return plain;
    if (operand.layout.kind != Layout::Kind::packed)
        return reordered(context, plain, operand.shape, Layout::plain(), operand.layout, front);
    Tensor packed(context, Shape{static_cast<std::int64_t>(operand.layout.bytes / 4)});
    ContextImpl& impl = Access::impl(context);
    const BufferRef pair[] = {ref(plain), ref(packed)};
    engine.build_packing(impl, problem, tuning, static_cast<int>(index))
        ->enqueue(impl.queue(), pair);
    return packed;
}

// The default tuning. With `all`, also every combination of tile and stages that the engine has,
// each with every other value alone, or the runtime's sample of these.
std::vector<Tuning> tunings(const Engine& engine, const Context& context, const Problem& problem,
                            bool all) {
    const Traits& traits = context.traits();
    const Tuning standard = engine.default_tuning(traits, problem);
    if (!all) return {standard};
    const TuneSpace space = engine.tune_space(traits, problem);
    std::vector<Tuning> made;
    const testing::Share share = testing::sample_of(context);
    unsigned offered = 0;
    for (const Tuning& tuning : tunings_of(engine, traits, problem)) {
        const auto others =
            std::count_if(tuning.begin(), tuning.end(), [&](const Tuning::value_type& item) {
                const auto& [name, value] = item;
                return space.values.count(name) != 0 && name != "stages" &&
                       standard.at(name) != value;
            });
        if (others > 1) continue;
        const bool mine = share.has(offered++);
        if (mine || tuning == standard) made.push_back(tuning);
    }
    return made;
}

}  // namespace

testing::Turns& turns() {
    static testing::Turns all;
    return all;
}

void check(const Context& context, Problem problem, const std::vector<Tensor>& inputs,
           const std::vector<double>& wanted, bool all_tunings, std::string_view only) {
    ContextImpl& impl = Access::impl(context);
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
            if (only.empty() ? !turns().take(kind, context)
                             : !testing::Turns::asked_for(engine->name()))
                continue;
            for (std::size_t i = 0; i < choice.inputs.size(); ++i)
                problem.inputs[i].layout = choice.inputs[i];
            problem.outputs[0].layout = choice.outputs[0];
            for (const Tuning& tuning : tunings(*engine, context, problem, all_tunings)) {
                std::vector<Tensor> operands;
                // Channels_last images start alternately at a multiple of 16 bytes and at any
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
                bound.reserve(operands.size());
                for (const Tensor& operand : operands) bound.push_back(ref(operand));
                const auto launch = engine->build(impl, problem, tuning);
                launch->enqueue(impl.queue(), bound);
                const std::vector<float> first = output.to_floats();
                const Tensor plain =
                    choice.outputs[0].is_plain()
                        ? output
                        : reordered(context, output, shape, choice.outputs[0], Layout::plain());
                CHECK(relative_error(plain.to_doubles(), wanted, 1e-15) < tolerance(problem));
                // Padding lanes must be zero, as in a reordered plain output.
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

}  // namespace dlprim::conv2d
