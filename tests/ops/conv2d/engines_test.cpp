// SPDX-License-Identifier: MIT
// Compares every engine of convolution and of its gradients with the oracle, on every device: over
// seeded random problems, and with every kind of epilogue. tests/operators has the table of cases.
#include "engine/activations.hpp"
#include "engine/small_integers.hpp"
#include "engine_check.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

#include <algorithm>
#include <random>

using namespace dlprim;
using namespace dlprim::conv2d;
using testing::check_engines;
using testing::engine_turns;

TEST_CASE("engines agree with the oracle over random problems") {
    const std::vector<Context>& devices = testing::test_devices();
    for (unsigned seed = 1; seed <= testing::random_problems(); ++seed) {
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
        for (const Context& context : devices) {
            e.check_forward(context);
            check_engines(context, e.backward_data(), {e.dy, e.weight}, e.dx.data);
            check_engines(context, e.backward_filter(), {e.x, e.dy}, e.dweight.data);
        }
    }
    CHECK(engine_turns().tried(devices));
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
            const Example e("groups", attrs, Shape{1, 3 * width, 5, 6}, 1);
            for (const Problem& problem : {e.forward(), e.backward_data(), e.backward_filter()})
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
                const HostArray added = testing::normals(e.y.shape, random);
                std::vector<double> wanted = e.y.data;
                for (std::size_t i = 0; i < wanted.size(); ++i)
                    wanted[i] = activate(f.name, wanted[i] + added.data[i], f.alpha, f.beta);
                Problem problem = e.forward();
                problem.inputs.push_back({e.y.shape, DType::f32, {}, false});
                problem.epilogue = {{EpilogueStage::Kind::add, 3, {}, 0, 0},
                                    {EpilogueStage::Kind::activation, -1, f.name, f.alpha, f.beta}};
                check_engines(context, problem, {e.x, e.weight, e.bias, added}, wanted);
                std::vector<double> data = e.dx.data;
                for (double& v : data) v = activate(f.name, v, f.alpha, f.beta);
                problem = e.backward_data();
                problem.epilogue = {{EpilogueStage::Kind::activation, -1, f.name, f.alpha, f.beta}};
                check_engines(context, problem, {e.dy, e.weight}, data);
            }
        }
    }
    CHECK(engine_turns().tried(devices));
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
        INFO(c.name);
        testing::make_small_integers(e.x);
        testing::make_small_integers(e.weight);
        e.ask_oracle();
        e.attrs.set(small_integers_attr, true);
        for (const Context& context : devices) e.check_forward(context);
    }
    CHECK(engine_turns().tried(devices));
}

TEST_CASE("a filter gradient over a million positions keeps its precision") {
    const std::vector<Context>& devices = testing::test_devices();
    const Attrs attrs{{"channels_out", std::int64_t(2)}, {"kernel", Ints{1}}, {"bias", false}};
    const Example e("long", attrs, Shape{2, 2, 700, 720}, 9);
    for (const Context& context : devices)
        check_engines(context, e.backward_filter(), {e.x, e.dy}, e.dweight.data);
}
