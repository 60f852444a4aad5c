// SPDX-License-Identifier: MIT
// Precision fp16 and bf16: images stored in 16 bits, on devices that have engines for them.
#include "engine_check.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

#include <algorithm>
#include <random>

using namespace dlprim;
using namespace dlprim::conv2d;
using testing::check_engines;

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
        {"depthwise of 49 taps", {7}, {1}, {3}, {1}, 40, 40, 2, 13, true, 40},
        {"depthwise of 49 taps and a stride", {7}, {2}, {3}, {1}, 12, 12, 2, 9, false, 12},
        {"depthwise of an odd number of channels", {3}, {1}, {1}, {1}, 29, 29, 2, 13, true, 29},
        {"depthwise of 49 taps, odd channels", {7}, {1}, {3}, {1}, 58, 58, 2, 8, false, 58},
        {"depthwise with empty phases", {1}, {2}, {0}, {1}, 12, 12, 2, 9, false, 12},
    };
    for (const DType dtype : {DType::f16, DType::bf16})
        for (const Case& c : cases) {
            INFO(c.name << ", " << name_of(dtype));
            const Attrs attrs{{"channels_out", c.out}, {"kernel", c.kernel}, {"stride", c.stride},
                              {"pad", c.pad},          {"dilate", c.dilate}, {"bias", true},
                              {"groups", c.groups}};
            const Example e(c.name, attrs, Shape{c.n, c.in, c.size, c.size + 1}, 3, dtype);
            std::mt19937 random(5);
            const HostArray added = testing::normals(e.y.shape, random, dtype);
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
            Problem with_epilogue = e.forward();
            with_epilogue.inputs.push_back({e.y.shape, DType::f32, {}, false});
            with_epilogue.epilogue = {{EpilogueStage::Kind::add, 3, {}, 0, 0},
                                      {EpilogueStage::Kind::activation, -1, "relu", 0, 0}};
            const testing::Trials trials{.all_tunings = c.all_tunings && dtype == DType::f16};
            for (const Context& context : devices) {
                // A network's input image may be float.
                check_engines(context, narrow(e.forward(), {}, true), e.operands(), e.y.data);
                check_engines(context, narrow(e.backward_filter(), {1}, false), {e.x, e.dy},
                              e.dweight.data);
                check_engines(context, narrow(e.forward(), {0}, true), e.operands(), e.y.data,
                              trials);
                for (const bool output : {true, false}) {
                    const Problem problem = output ? narrow(with_epilogue, {0, 3}, true)
                                                   : narrow(with_epilogue, {0}, false);
                    check_engines(context, problem, {e.x, e.weight, e.bias, added}, fused);
                }
                check_engines(context, narrow(e.backward_data(), {0}, true), {e.dy, e.weight},
                              e.dx.data, trials);
                check_engines(context, narrow(e.backward_filter(), {0, 1}, false), {e.x, e.dy},
                              e.dweight.data, trials);
            }
        }
}
