// SPDX-License-Identifier: MIT
// BatchNorm during training: compares running statistics with their definition in double, and tests
// their use outside training.
#include "net/support.hpp"

#include <cmath>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

constexpr std::size_t normed_images = 5, channels = 3, side = 4, pixels = side * side;
constexpr double update_rate = 0.2, eps = 1e-3;

/// The BatchNorm reads the data directly, so its statistics are known in advance.
const char* const batchnorm_json = R"({
  "inputs": [{"name": "data", "shape": [5, 3, 4, 4]}, {"name": "target", "shape": [5, 2]}],
  "outputs": ["normal", "y", "loss"],
  "operators": [
    {"name": "bn", "type": "BatchNorm", "inputs": ["data"], "outputs": ["normal"],
     "options": {"momentum": 0.2, "eps": 1e-3}},
    {"name": "y", "type": "InnerProduct", "inputs": ["normal"], "outputs": ["y"],
     "options": {"outputs": 2}},
    {"name": "mse", "type": "MSELoss", "inputs": ["y", "target"], "outputs": ["loss"]}]})";

struct Statistics {
    std::vector<double> mean, variance;  ///< unbiased
};

/// Data with a mean far from 0, where sums of squares lose digits.
std::vector<float> normed_data_of(unsigned step) {
    std::vector<float> data = random_floats(normed_images * channels * pixels, 7 + step);
    for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = data[i] * 0.5f + static_cast<float>(i / pixels % channels) * 20 - 10;
    return data;
}

Statistics statistics(const std::vector<float>& data) {
    Statistics result;
    constexpr double count = normed_images * pixels;
    for (std::size_t c = 0; c < channels; ++c) {
        double sum = 0, squares = 0;
        const auto each = [&](auto&& visit) {
            for (std::size_t n = 0; n < normed_images; ++n)
                for (std::size_t p = 0; p < pixels; ++p)
                    visit(static_cast<double>(data[(n * channels + c) * pixels + p]));
        };
        each([&](double x) { sum += x; });
        const double mean = sum / count;
        each([&](double x) { squares += (x - mean) * (x - mean); });
        result.mean.push_back(mean);
        result.variance.push_back(squares / (count - 1));
    }
    return result;
}

void feed_images(Net& net, unsigned step) {
    set_floats(net, "data", normed_data_of(step));
    set_floats(net, "target", random_floats(normed_images * 2, 50 + step));
}

std::vector<double> normalized(Net& net, const std::vector<float>& data, const Statistics& with,
                               bool unbiased) {
    const auto scale = net.param("bn.2").to_floats(), offset = net.param("bn.3").to_floats();
    constexpr double count = normed_images * pixels;
    std::vector<double> y(data.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t c = i / pixels % channels;
        const double variance = with.variance[c] * (unbiased ? 1 : (count - 1) / count);
        y[i] = (data[i] - with.mean[c]) / std::sqrt(variance + eps) * scale[c] + offset[c];
    }
    return y;
}

}  // namespace

TEST_CASE("running statistics follow the batches, and evaluation uses them", "[batchnorm]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, batchnorm_json, training());
        CHECK(net.changed_by_forward() == std::vector<std::string>{"bn.0", "bn.1"});
        SolverOptions sgd;
        sgd.kind = SolverOptions::Kind::sgd;
        sgd.learning_rate = 0.01;
        Solver solver(net, sgd);
        CHECK(net.param("bn.0").to_floats() == std::vector<float>(channels, 0));
        CHECK(net.param("bn.1").to_floats() == std::vector<float>(channels, 1));
        Statistics running{std::vector<double>(channels, 0), std::vector<double>(channels, 1)};
        for (unsigned step = 0; step < 10; ++step) {
            feed_images(net, step);
            const Statistics now = statistics(normed_data_of(step));
            const std::vector<double> expected = normalized(net, normed_data_of(step), now, false);
            solver.step();
            check_close(net.output("normal").to_floats(), expected, 1e-5);
            for (std::size_t c = 0; c < channels; ++c) {
                running.mean[c] += update_rate * (now.mean[c] - running.mean[c]);
                running.variance[c] += update_rate * (now.variance[c] - running.variance[c]);
            }
        }
        check_close(net.param("bn.0").to_floats(), running.mean, 1e-5);
        check_close(net.param("bn.1").to_floats(), running.variance, 1e-5);

        for (const Mode mode : {Mode::inference, Mode::evaluation}) {
            INFO("mode " << static_cast<int>(mode));
            Net other = make_net(device, batchnorm_json, with_mode(mode));
            copy_params(net, other);
            const auto before = all_bits(other);
            feed_images(other, 77);
            other.forward();
            check_close(other.output("normal").to_floats(),
                        normalized(other, normed_data_of(77), running, true), 1e-5);
            CHECK((all_bits(other) == before));
        }
    }
}

TEST_CASE("a BatchNorm that uses global statistics leaves them in training", "[batchnorm]") {
    std::string json = batchnorm_json;
    json.insert(json.find("\"momentum\""), "\"use_global_stats\": true, ");
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, json, training());
        Solver solver(net, {});
        const Statistics given{{1, 2, 3}, {4, 5, 6}};
        net.param("bn.0").copy_from({1, 2, 3});
        net.param("bn.1").copy_from({4, 5, 6});
        net.params_changed();
        feed_images(net, 0);
        const auto expected = normalized(net, normed_data_of(0), given, true);
        solver.step();
        check_close(net.output("normal").to_floats(), expected, 1e-5);
        CHECK(net.param("bn.0").to_floats() == std::vector<float>{1, 2, 3});
        CHECK(net.param("bn.1").to_floats() == std::vector<float>{4, 5, 6});
        CHECK(net.changed_by_forward().empty());
    }
}

TEST_CASE("a BatchNorm leaves nothing along its input to the scale before it", "[batchnorm]") {
    // The second norm cancels the first one's scale except for eps, so the gradient of that scale
    // consists of rounding errors. If elements round independently, it is a few units in the last
    // place of the terms' root sum of squares. If all elements of a channel round alike, it is many
    // more.
    const char* const two_norms = R"json({
      "inputs": [{"name": "data", "shape": [4, 8, 64, 64]},
                 {"name": "slope", "shape": [4, 8, 64, 64]}],
      "outputs": ["loss"],
      "operators": [
        {"name": "first", "type": "BatchNorm", "inputs": ["data"], "outputs": ["first"],
         "options": {"eps": 1e-12}},
        {"name": "relu", "type": "Activation", "inputs": ["first"], "outputs": ["relu"],
         "options": {"activation": "relu"}},
        {"name": "second", "type": "BatchNorm", "inputs": ["relu"], "outputs": ["second"],
         "options": {"eps": 1e-12}},
        {"name": "loss", "type": "Pointwise", "inputs": ["second", "slope"], "outputs": ["loss"],
         "options": {"code": "y0 = sum[](x0 * x1)", "keep_dim": false}}]})json";
    constexpr std::size_t maps = 8, plane = 64 * 64, count = 4 * maps * plane;
    const std::vector<float> slope = random_floats(count, 4);
    std::vector<double> squares(maps, 0);
    for (std::size_t i = 0; i < count; ++i)
        squares[i / plane % maps] += static_cast<double>(slope[i]) * static_cast<double>(slope[i]);
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, two_norms, training());
        set_floats(net, "data", random_floats(count, 3));
        set_floats(net, "slope", slope);
        net.forward();
        net.backward();
        const std::vector<float> scale = net.gradient("first.2").to_floats();
        double sum = 0;
        for (std::size_t c = 0; c < maps; ++c) {
            const double units = std::ldexp(static_cast<double>(scale[c]), 24);
            sum += units * units / squares[c];
        }
        const double units = std::sqrt(sum / static_cast<double>(maps));
        INFO("units in the last place: " << units);
        CHECK(units < 6);
    }
}

TEST_CASE("a BatchNorm behind a convolution may make the network's output", "[batchnorm]") {
    // The norm's forward and backward nodes read the convolution's result, which CPUs keep in
    // blocks of channels, row-major: it is converted before the first of them.
    const char* const json = R"({
      "inputs": [{"name": "data", "shape": [4, 8, 8, 8]}], "outputs": ["bn"],
      "operators": [
        {"name": "conv", "type": "Convolution2D", "inputs": ["data"], "outputs": ["conv"],
         "options": {"channels_out": 8, "kernel": 3, "pad": 1, "bias": false}},
        {"name": "bn", "type": "BatchNorm", "inputs": ["conv"], "outputs": ["bn"]}]})";
    ON_EVERY_DEVICE(device) {
        NetOptions options = with_mode(Mode::evaluation);
        options.output_gradients = true;
        Net with_backward = make_net(device, json, options);
        options.backward = false;
        Net alone = make_net(device, json, options);
        const auto data = random_floats(4 * 8 * 8 * 8, 1);
        for (Net* const net : {&with_backward, &alone}) {
            set_floats(*net, "data", data);
            net->forward();
        }
        check_close(with_backward.output("bn").to_floats(), alone.output("bn").to_doubles(), 1e-5);
    }
}
