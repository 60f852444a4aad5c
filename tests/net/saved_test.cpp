// SPDX-License-Identifier: MIT
// Gradients from what forward calls returned are those that ops::backward() computes from the
// operands, and run no part of the forward pass.
#include "net/eager_support.hpp"

#include <algorithm>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

void check_same(const Tensor& found, const Tensor& wanted, double tolerance = 2e-6) {
    REQUIRE(found.shape() == wanted.shape());
    check_close(found.to_floats(), doubles(wanted.to_floats()), tolerance);
}

ops::CallOptions in_training() {
    return {.training = true};
}

}  // namespace

TEST_CASE("saved: statistics of norms", "[saved]") {
    ON_EVERY_DEVICE(device) {
        const Shape shape{4, 6, 5, 3};
        const Tensor x = random_tensor(device, shape, 1), dy = random_tensor(device, shape, 2);
        const Tensor scale = random_tensor(device, Shape{6}, 3);
        const Tensor offset = random_tensor(device, Shape{6}, 4);
        const auto running = [&] {
            return std::vector<Tensor>{Tensor(device, Shape{6}, std::vector<float>(6, 0.0f)),
                                       Tensor(device, Shape{6}, std::vector<float>(6, 1.0f)), scale,
                                       offset};
        };
        const ops::CallOptions how = in_training();
        const auto y = ops::call(ops::BatchNorm{.return_statistics = true}, {x}, running(), how);
        REQUIRE(y.size() == 3);
        check_same(y[0], ops::call(ops::BatchNorm{}, {x}, running(), how).at(0));
        const auto whole = [&] {
            return ops::backward(ops::BatchNorm{}, {x}, running(), {dy}, how);
        };
        const auto saved = [&] {
            return ops::call(ops::BatchNormBackward{}, {dy, x, y[1], y[2], scale}, {}, how);
        };
        const auto from_x = whole(), from_saved = saved();
        check_same(from_saved[0], from_x[0]);
        check_same(from_saved[1], from_x[3]);
        check_same(from_saved[2], from_x[4]);
        CHECK(launches_again(device, saved) < launches_again(device, whole));
        ops::CallOptions parameters = how;
        parameters.wanted = {false, true, true};
        const auto part =
            ops::call(ops::BatchNormBackward{}, {dy, x, y[1], y[2], scale}, {}, parameters);
        CHECK(!part[0].defined());
        CHECK(bits(part[1]) == bits(from_saved[1]));

        const ops::LayerNorm layer{.dims = 2, .return_statistics = true};
        const Tensor weight = random_tensor(device, Shape{5, 3}, 5);
        const Tensor bias = random_tensor(device, Shape{5, 3}, 6);
        const auto rows = ops::call(layer, {x}, {weight, bias});
        CHECK(rows.at(1).shape() == Shape{4, 6, 1, 1});
        const auto rows_x = ops::backward(ops::LayerNorm{.dims = 2}, {x}, {weight, bias}, {dy});
        const auto rows_saved =
            ops::call(ops::LayerNormBackward{.dims = 2}, {dy, x, rows.at(1), rows.at(2), weight});
        for (std::size_t i = 0; i < 3; ++i) check_same(rows_saved[i], rows_x[i]);

        const auto groups = ops::call(ops::GroupNorm{.num_groups = 3, .return_statistics = true},
                                      {x}, {scale, offset});
        CHECK(groups.at(2).shape() == Shape{4, 3});
        const auto groups_x =
            ops::backward(ops::GroupNorm{.num_groups = 3}, {x}, {scale, offset}, {dy});
        const auto groups_saved = ops::call(ops::GroupNormBackward{.num_groups = 3},
                                            {dy, x, groups.at(1), groups.at(2), scale});
        for (std::size_t i = 0; i < 3; ++i) check_same(groups_saved[i], groups_x[i]);
    }
}

TEST_CASE("saved: results of softmax and of activations", "[saved]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = random_tensor(device, Shape{7, 33}, 1);
        const Tensor dy = random_tensor(device, Shape{7, 33}, 2);
        for (const bool log : {false, true}) {
            const Tensor y = ops::call(ops::Softmax{.log = log}, {x}).at(0);
            const auto saved = [&] {
                return ops::call(ops::SoftmaxBackward{.log = log}, {dy, y}).at(0);
            };
            const auto whole = [&] {
                return ops::backward(ops::Softmax{.log = log}, {x}, {}, {dy}).at(0);
            };
            check_same(saved(), whole());
            CHECK(launches_again(device, saved) < launches_again(device, whole));
        }
        for (const char* const name : {"relu", "sigmoid", "tanh"}) {
            const Tensor y = ops::call(ops::Activation{.activation = name}, {x}).at(0);
            const auto saved = [&] {
                return ops::call(ops::ActivationBackward{.activation = name}, {dy, y}).at(0);
            };
            check_same(saved(),
                       ops::backward(ops::Activation{.activation = name}, {x}, {}, {dy}).at(0));
            CHECK(launches_again(device, saved) == 1);
        }
        check_error(invalid, {"gelu", "result"}, [&] {
            ops::call(ops::ActivationBackward{.activation = "gelu"}, {dy, x});
        });
    }
}

TEST_CASE("saved: positions of maxima", "[saved]") {
    ON_EVERY_DEVICE(device) {
        for (const std::int64_t channels : {3, 16}) {
            const Tensor x = random_tensor(device, Shape{2, channels, 9, 11}, 1);
            const ops::MaxPooling2D options{.kernel = 3, .stride = 2, .pad = 1, .ceil_mode = true};
            const ops::Pooling2D plain{.kernel = 3, .stride = 2, .pad = 1, .ceil_mode = true};
            const auto made = ops::call(options, {x});
            REQUIRE(made.at(1).dtype() == DType::i64);
            check_same(made[0], ops::call(plain, {x}).at(0), 0);
            // The positions are those of the maxima.
            std::vector<std::int64_t> at(static_cast<std::size_t>(made[1].shape().numel()));
            made[1].copy_to_host(at.data(), made[1].bytes());
            const std::vector<float> values = x.to_floats(), top = made[0].to_floats();
            const std::size_t plane = top.size() / static_cast<std::size_t>(2 * channels);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < at.size(); ++i)
                wrong += values[i / plane * 99 + static_cast<std::size_t>(at[i])] != top[i];
            CHECK(wrong == 0);

            const Tensor dy = random_tensor(device, made[0].shape(), 2);
            const ops::MaxPooling2DBackward back{
                .kernel = 3, .stride = 2, .pad = 1, .ceil_mode = true, .sizes = {9, 11}};
            const Tensor dx = ops::backward(plain, {x}, {}, {dy}).at(0);
            check_same(ops::call(back, {dy, made[1]}).at(0), dx, 0);
            std::vector<std::int32_t> narrow(at.begin(), at.end());
            Tensor positions(device, made[1].shape(), DType::i32);
            positions.copy_from_host(narrow.data(), positions.bytes());
            check_same(ops::call(back, {dy, positions}).at(0), dx, 0);
            check_same(ops::backward(options, {x}, {}, {dy}).at(0), dx, 0);
            CHECK(launches_again(device, [&] { ops::call(back, {dy, made[1]}); }) == 2);
        }
    }
}

TEST_CASE("saved: the total weight of labels", "[saved]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x = random_tensor(device, Shape{3, 5, 4, 2}, 1);
        std::vector<std::int64_t> numbers;
        for (std::int64_t i = 0; i < 24; ++i) numbers.push_back(i % 7 == 6 ? -100 : i % 5);
        Tensor label(device, Shape{3, 4, 2}, DType::i64);
        label.copy_from_host(numbers.data(), label.bytes());
        const Tensor weight(device, Shape{5}, random_floats(5, 2, 0.5, 2));
        const Tensor dy(device, Shape{1}, std::vector<float>{0.75f});
        const ops::NLLLoss plain{.ignore_index = -100};
        const auto loss = ops::call(ops::NLLLoss{.ignore_index = -100, .return_weight = true},
                                    {x, label, weight});
        CHECK(loss.at(1).shape() == Shape{1});
        const Tensor saved = ops::call(ops::NLLLossBackward{.ignore_index = -100, .classes = 5},
                                       {dy, label, loss.at(1), weight})
                                 .at(0);
        check_same(saved, ops::backward(plain, {x, label, weight}, {}, {dy}).at(0));
        const std::vector<float> found = saved.to_floats();
        CHECK(std::count_if(found.begin(), found.end(), [](float v) { return v != 0; }) ==
              std::count_if(numbers.begin(), numbers.end(), [](auto n) { return n >= 0; }));
    }
}
