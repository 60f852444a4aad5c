// SPDX-License-Identifier: MIT
// Compares every engine of convolution and of its gradients with the oracle, on every device: over
// the table of cases, over seeded random problems, and with every kind of epilogue.
#include "engine/activations.hpp"
#include "engine/small_integers.hpp"
#include "engine_check.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/json_cases.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>

using namespace dlprim;
using namespace dlprim::conv2d;

using Json = nlohmann::json;

TEST_CASE("engines agree with the oracle over the table") {
    const std::vector<Context>& devices = testing::test_devices();
    std::ifstream file(CASES_DIR "/conv2d.json");
    for (const Json& entry : Json::parse(file)) {
        if (entry.value("speed", false)) continue;
        const Shape shape(entry["inputs"][0]["shape"].get<Ints>());
        if (shape.empty()) continue;  // no engine gets it
        const Example e(entry["name"], testing::attrs_of(entry["options"]), shape, 1);
        INFO(e.name);
        for (const Context& context : devices) check(context, e);
    }
    CHECK(turns().tried(devices));
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
    CHECK(turns().tried(devices));
}

TEST_CASE("blocked engines serve groups of any width but one") {
    for (const Context& context : testing::test_devices()) {
        const Traits& traits = context.traits();
        if (!traits.wide_vectors) continue;
        for (const std::int64_t width : {1, 2, 4, 24, 40, 56, 120}) {
            const Attrs attrs{{"channels_out", 3 * width},
                              {"groups", std::int64_t(3)},
                              {"kernel", Ints{3}},
                              {"pad", Ints{1}},
                              {"stride", Ints{2}},
                              {"dilate", Ints{1}},
                              {"bias", false}};
            const Shape x{1, 3 * width, 5, 6}, weight{3 * width, width, 3, 3};
            const Shape y{1, 3 * width, 3, 3};
            const Problem problems[] = {
                problem_of(forward_type, attrs, {x, weight}, y),
                problem_of(backward_data_type, gradient_attrs(attrs, "input_shape", x), {y, weight},
                           x),
                problem_of(backward_filter_type, gradient_attrs(attrs, "weight_shape", weight),
                           {x, y}, weight)};
            for (const Problem& problem : problems)
                for (const Engine* engine : EngineRegistry::instance().of(problem.op, false)) {
                    if (!engine->name().ends_with(".blocked")) continue;
                    INFO(engine->name() << " on " << context.info().name << ": " << width);
                    const bool applies = static_cast<bool>(engine->is_applicable(traits, problem));
                    CHECK(applies == (width != 1));
                }
        }
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
    CHECK(turns().tried(devices));
}

TEST_CASE("engines multiply small integers") {
    const std::vector<Context>& devices = testing::test_devices();
    struct Case {
        const char* name;
        std::int64_t images, in, out;
        Attrs attrs;
    };
    const Case cases[] = {
        {"3x3, an odd number of products", 2, 3, 17, {{"kernel", Ints{3}}, {"pad", Ints{1}}}},
        {"1x1 of one image", 1, 30, 5, {{"kernel", Ints{1}}}},
        {"1x1 of two images", 2, 30, 2, {{"kernel", Ints{1}}, {"bias", false}}},
        {"groups", 1, 8, 24, {{"kernel", Ints{2, 3}}, {"groups", std::int64_t(4)}}},
        {"stride and dilation",
         2,
         40,
         14,
         {{"kernel", Ints{3}}, {"stride", Ints{2, 3}}, {"dilate", Ints{2}}}},
        {"along columns", 1, 6, 7, {{"kernel", Ints{5, 1}}, {"pad", Ints{2, 0}}}},
    };
    for (const Case& c : cases) {
        Attrs attrs = c.attrs;
        attrs.set("channels_out", c.out);
        const bool line = std::string_view(c.name) == "along columns";
        Example e(c.name, attrs, Shape{c.images, c.in, 13, line ? 1 : 11}, 4);
        INFO(e.name);
        for (HostArray* array : {&e.x, &e.weight})  // the ends of the range often
            for (double& v : array->data) v = std::clamp(std::round(200 * v), -255.0, 255.0);
        const bool bias = e.attrs.boolean("bias");
        forward_oracle(Conv2dOptions::read(e.attrs), e.x, e.weight, bias ? &e.bias : nullptr, e.y);
        e.attrs.set(small_integers_attr, true);
        std::vector<Shape> shapes{e.x.shape, e.weight.shape};
        if (bias) shapes.push_back(e.bias.shape);
        for (const Context& context : devices)
            for (const bool constant : {false, true}) {
                Problem problem = problem_of(forward_type, e.attrs, shapes, e.y.shape);
                problem.inputs[1].constant = constant;
                std::vector<Tensor> inputs{upload(context, e.x), upload(context, e.weight)};
                if (bias) inputs.push_back(upload(context, e.bias));
                check(context, problem, inputs, e.y.data);
            }
    }
    CHECK(turns().tried(devices));
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
