// SPDX-License-Identifier: MIT
// Precision fp16 and bf16: images stored in 16 bits, on devices that have engines for them.
#include "engine_check.hpp"
#include "support/catch.hpp"
#include "support/devices.hpp"

#include <algorithm>
#include <random>

using namespace dlprim;
using namespace dlprim::conv2d;

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
                // A network's input image may be float.
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
