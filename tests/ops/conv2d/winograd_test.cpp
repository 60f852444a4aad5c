// SPDX-License-Identifier: MIT
// Winograd engines with shapes at the limits of their tiles and slices.
#include "engine_check.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

using namespace dlprim;
using namespace dlprim::conv2d;
using namespace dlprim::testing;

TEST_CASE("engines by Winograd's algorithm agree with the oracle") {
    const std::vector<Context>& devices = test_devices();
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
        {"whole tiles and tiles cut on two sides", 1, 16, 16, 1, 12, 17, {1}, false},
        {"a pixel beyond the tiles", 2, 17, 8, 1, 19, 13, {0, 2, 2, 0}, false},
        {"one pixel", 2, 5, 7, 1, 1, 1, {1}, false},
        {"many channels", 1, 512, 8, 1, 7, 7, {1}, false},
    };
    for (const Case& c : cases) {
        INFO(c.name);
        const Attrs attrs{
            {"channels_out", c.out}, {"groups", c.groups}, {"kernel", Ints{3}}, {"pad", c.pad}};
        const Example e(c.name, attrs, Shape{c.n, c.in, c.h, c.w}, 7, c.dtype);
        Problem forward = e.forward(), backward = e.backward_data();
        for (Problem* problem : {&forward, &backward})
            problem->inputs[0].dtype = problem->outputs[0].dtype = c.dtype;
        const Trials trials{{"winograd"}, true, c.all_tunings};
        for (const Context& context : devices) {
            // Inference in tf32 has 6x6 tiles, which must meet float's bounds too.
            const std::pair<Phase, Precision> ways[] = {{Phase::inference, Precision::fp32},
                                                        {Phase::training, Precision::fp32},
                                                        {Phase::inference, Precision::tf32}};
            for (const auto& [phase, precision] : ways) {
                forward.phase = phase;
                forward.precision = precision;
                check_engines(context, forward, e.operands(), e.y.data, trials);
            }
            check_engines(context, backward, {e.dy, e.weight}, e.dx.data, trials);
        }
    }
}

TEST_CASE("gradients of weights by Winograd's algorithm agree with the oracle") {
    struct Case {
        const char* name;
        std::int64_t n, in, out, h, w;
        Ints pad;
    };
    const Case cases[] = {
        {"tiles in splits and groups", 2, 9, 20, 61, 70, {1}},
        {"channels in parts, of which the last is smaller", 1, 150, 310, 6, 9, {1}},
        {"parts and splits", 3, 70, 140, 30, 21, {1}},
        {"a smaller part in splits", 1, 520, 16, 40, 36, {1}},
        {"one block of output channels", 2, 40, 3, 13, 14, {1}},
        {"one block of input channels", 2, 3, 40, 14, 13, {1}},
        {"pads that differ", 2, 17, 18, 9, 12, {2, 0, 1, 2}},
        {"pads beyond the kernel", 1, 16, 16, 8, 9, {3, 4, 3, 5}},
        {"whole tiles without pads", 1, 16, 32, 14, 18, {0}},
        {"one pixel", 2, 20, 7, 1, 1, {1}},
    };
    for (const Case& c : cases) {
        INFO(c.name);
        const Attrs attrs{
            {"channels_out", c.out}, {"kernel", Ints{3}}, {"pad", c.pad}, {"bias", false}};
        const Example e(c.name, attrs, Shape{c.n, c.in, c.h, c.w}, 8);
        const Problem problem = e.backward_filter();
        for (const Context& context : test_devices()) {
            const Traits& device = context.traits();
            const Engine* engine =
                EngineRegistry::instance().find("conv2d_backward_filter.blocked_winograd");
            REQUIRE(engine != nullptr);
            CHECK(static_cast<bool>(engine->is_applicable(device, problem)) == device.wide_vectors);
            check_engines(context, problem, {e.x, e.dy}, e.dweight.data, {{"winograd"}, true});
        }
    }
}

TEST_CASE("gradients of weights by Winograd's algorithm take little memory on many cores") {
    const Engine* engine =
        EngineRegistry::instance().find("conv2d_backward_filter.blocked_winograd");
    REQUIRE(engine != nullptr);
    struct Case {
        std::int64_t n, channels, side;
    };
    for (const Case& c : {Case{16, 64, 224}, Case{16, 512, 28}, Case{2, 64, 56}, Case{1, 1024, 7}})
        for (const int width : {4, 8, 16})
            for (const int cores : {1, 2, 16, 64, 128}) {
                INFO(c.channels << " channels, " << c.side << " pixels, " << cores << " cores");
                const Shape image{c.n, c.channels, c.side, c.side};
                const Shape weight{c.channels, c.channels, 3, 3};
                Attrs attrs{{"groups", std::int64_t(1)},
                            {"kernel", Ints{3, 3}},
                            {"stride", Ints{1, 1}},
                            {"pad", Ints{1, 1}},
                            {"dilate", Ints{1, 1}}};
                const Problem problem =
                    problem_of(backward_filter_type, attrs.set("weight_shape", weight.to_vector()),
                               {image, image}, weight);
                Traits device;
                device.wide_vectors = true;
                device.vector_width = width;
                device.compute_units = cores;
                device.gflops = 80.0 * cores;
                device.gbytes_per_s = 10.0 * cores;
                REQUIRE(engine->is_applicable(device, problem));
                CHECK(engine->workspace_bytes(device, problem, {}) <=
                      (static_cast<std::uint64_t>(std::max(32, cores)) << 21));
                CHECK(engine->estimate(device, problem, {}) < 60);
            }
}
