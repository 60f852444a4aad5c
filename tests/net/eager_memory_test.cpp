// SPDX-License-Identifier: MIT
// Memory of eager calls: scratch and packed weights that are given back, blocks that are used
// again, and running out of memory.
#include "net/support.hpp"

#include <dlprim/dlprim.hpp>

#include <cmath>

using namespace dlprim;
using dlprim::testing::check_error;

namespace {

Tensor filled(const Context& device, const Shape& shape, double value) {
    Tensor tensor(device, shape);
    tensor.fill(value);
    return tensor;
}

ops::CallOptions training_call() {
    return {.training = true};
}

}  // namespace

TEST_CASE("weights in the memory of earlier ones are packed anew", "[eager_memory]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = filled(device, {1, 16, 8, 8}, 1);
        // Integers, but for the rounding of Winograd's method.
        const auto centre = [&](const Tensor& w, const ops::CallOptions& how) {
            return std::round(ops::conv2d(x, w, {.pad = 1}, how).to_floats()[9]);
        };
        bool right = true;
        for (int i = 1; i < 30; ++i) {
            Tensor weight = filled(device, {32, 16, 3, 3}, i);
            const auto wanted = static_cast<float>(16 * 9 * i);
            const ops::CallOptions how = i % 3 == 0 ? training_call() : ops::CallOptions{};
            for (int repeat = 0; repeat < 3; ++repeat)
                right = right && centre(weight, how) == wanted;
            // Memory that the library writes to.
            ops::CallOptions in_place{.out = {weight}};
            for (int twice = 0; twice < 12; ++twice) {
                if (twice < 2) ops::pointwise("y0 = x0 * 2", {weight}, {}, in_place);
                const float factor = twice == 0 ? 2 : 4;
                right = right && centre(weight, how) == factor * wanted;
            }
        }
        CHECK(right);
    }
}

TEST_CASE("training keeps neither scratch nor packed weights", "[eager_memory]") {
    ON_EVERY_DEVICE(device) {
        const Context own(device.info().id);
        Tensor weight = filled(own, {256, 256, 3, 3}, 0.01);
        const Tensor x = filled(own, {1, 256, 8, 8}, 1);
        const std::uint64_t held = own.memory().live;
        for (int i = 0; i < 3; ++i) {
            const Tensor y = ops::conv2d(x, weight, {.pad = 1}, training_call());
            const auto gradients = ops::backward(
                ops::Convolution2D{.channels_out = 256, .bias = false, .kernel = 3, .pad = 1}, {x},
                {weight}, {y}, training_call());
            ops::CallOptions in_place{.out = {weight}};
            ops::pointwise("y0 = x0 - 0.1 * x1", {weight, gradients[1]}, {}, in_place);
        }
        // Scalars and the like; the weights alone have 2.3 MiB.
        CHECK(own.memory().live < held + 64 * 1024);
        const Counters before = own.counters();
        ops::conv2d(x, weight, {.pad = 1}, training_call());
        CHECK(own.counters().allocations == before.allocations);
    }
}

TEST_CASE("weights that are used once, as those cast by autocast, are not kept packed",
          "[eager_memory]") {
    ON_EVERY_DEVICE(device) {
        const Context own(device.info().id);
        const Tensor x = filled(own, {1, 256, 8, 8}, 1);
        std::vector<Tensor> weights;
        std::uint64_t held = 0;
        for (int i = 0; i < 24; ++i) {
            weights.push_back(filled(own, {256, 256, 3, 3}, 0.01));
            ops::conv2d(x, weights.back(), {.pad = 1});
            if (i == 11) held = own.memory().live;
        }
        // The first few are kept packed, whose size is the engine's. Later ones take what they are.
        CHECK(own.memory().live < held + 13 * weights[0].bytes());
    }
}

TEST_CASE("a call that runs out of memory leaves none behind", "[eager_memory]") {
    const testing::Variable small("DLPRIM_TRAITS", "global_mib=64,max_alloc_mib=32");
    ON_EVERY_DEVICE(device) {
        const Context own(device.info().id);
        const Tensor x = filled(own, {5 * 1024 * 1024}, 1);  // 20 MiB
        const std::uint64_t held = own.memory().live;
        std::vector<Tensor> made;
        for (int i = 0; i < 2; ++i) made.push_back(ops::relu(x));
        check_error(ErrorKind::out_of_memory, {"are in use"},
                    [&] { made.push_back(ops::relu(x)); });
        made.clear();
        CHECK(own.memory().live == held);
        CHECK(ops::relu(x).to_floats()[7] == 1);
    }
}
