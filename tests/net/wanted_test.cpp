// SPDX-License-Identifier: MIT
// CallOptions::wanted: results that nobody wants are empty, and nothing is launched for them alone.
#include "exec/eager.hpp"
#include "net/eager_support.hpp"
#include "plan/plan.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

ops::CallOptions wanting(std::vector<bool> wanted) {
    return {.wanted = std::move(wanted)};
}

}  // namespace

TEST_CASE("wanted: gradients of a convolution, each alone", "[wanted]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = random_tensor(device, Shape{2, 3, 6, 6}, 1);
        const Tensor weight = random_tensor(device, Shape{4, 3, 3, 3}, 2);
        const Tensor bias = random_tensor(device, Shape{4}, 3);
        const Tensor dy = random_tensor(device, Shape{2, 4, 6, 6}, 4);
        const ops::Convolution2D options{.channels_out = 4, .kernel = 3, .pad = 1};
        const auto all = ops::backward(options, {x}, {weight, bias}, {dy});
        for (std::size_t only = 0; only < 3; ++only) {
            ops::CallOptions how{.wanted = {only == 0, only == 1, only == 2}};
            const auto one = ops::backward(options, {x}, {weight, bias}, {dy}, how);
            REQUIRE(one.size() == 3);
            for (std::size_t i = 0; i < 3; ++i) {
                CHECK(one[i].defined() == (i == only));
                if (i == only) CHECK(bits(one[i]) == bits(all[i]));
            }
            const auto launches = launches_of(device, [&] {
                ops::backward(options, {x}, {weight, bias}, {dy}, how);
            });
            CHECK(launches > 0);
            CHECK(launches < launches_of(
                                 device,
                                 [&] {
                                     ops::backward(options, {x}, {weight, bias}, {dy});
                                 }));
        }
        ops::CallOptions none{.wanted = {false, false, false}};
        const auto empty = ops::backward(options, {x}, {weight, bias}, {dy}, none);
        for (const Tensor& tensor : empty) CHECK(!tensor.defined());
        CHECK(launches_of(device, [&] {
                  ops::backward(options, {x}, {weight, bias}, {dy}, none);
              }) == 0);
    }
}

TEST_CASE("wanted: outputs of a call", "[wanted]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = random_tensor(device, Shape{4, 5}, 1);
        const auto both = ops::call(ops::TopK{.k = 2, .dim = 1}, {x});
        ops::CallOptions how{.wanted = {false, true}};
        const auto places = ops::call(ops::TopK{.k = 2, .dim = 1}, {x}, {}, how);
        REQUIRE(places.size() == 2);
        CHECK(!places[0].defined());
        CHECK(bits(places[1]) == bits(both[1]));
        const auto parts = ops::call(ops::Split{.dim = 1, .parts = 5}, {x}, {},
                                     wanting({false, false, true, false, false}));
        REQUIRE(parts.size() == 5);
        CHECK(parts[2].shape() == Shape{4, 1});
        CHECK(!parts[4].defined());

        // Running statistics are written all the same.
        const Tensor image = random_tensor(device, Shape{4, 3, 2, 2}, 2);
        Tensor mean(device, Shape{3}, std::vector<float>{0, 0, 0});
        Tensor variance(device, Shape{3}, std::vector<float>{1, 1, 1});
        const Tensor scale(device, Shape{3}, std::vector<float>{1, 1, 1});
        const auto before = bits(mean);
        how.training = true;
        how.wanted = {false};
        const auto nothing =
            ops::call(ops::BatchNorm{}, {image}, {mean, variance, scale, scale}, how);
        CHECK(!nothing.at(0).defined());
        CHECK(bits(mean) != before);

        check_error(invalid, {"TopK", "2 outputs", "3 elements"}, [&] {
            ops::call(ops::TopK{.k = 2, .dim = 1}, {x}, {}, wanting({true, true, true}));
        });
        check_error(invalid, {"1 inputs and parameters", "2 elements"}, [&] {
            ops::backward(ops::Softmax{}, {x}, {}, {x}, wanting({true, true}));
        });
    }
}
