// SPDX-License-Identifier: MIT
// Results of eager calls may stay in the layout that their engine wrote. No user of a result can
// tell.
#include "net/support.hpp"
#include "runtime/access.hpp"
#include "runtime/deferred.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

const char* const conv_a = R"({"channels_out": 20, "kernel": 3, "pad": 1, "bias": false})";
const char* const conv_b = R"({"channels_out": 24, "kernel": 1, "bias": false})";
const char* const pooling = R"({"mode": "max", "kernel": 2, "stride": 2})";

// The computation of the calls below. y is also an output.
const char* const chain_net = R"({
  "inputs": [{"name": "x", "shape": [2, 19, 8, 8]}],
  "outputs": ["y", "pooled"],
  "operators": [
    {"name": "a", "type": "Convolution2D", "inputs": ["x"], "outputs": ["y"],
     "options": {"channels_out": 20, "kernel": 3, "pad": 1, "bias": false}},
    {"name": "r", "type": "Activation", "inputs": ["y"], "outputs": ["z"],
     "options": {"activation": "relu"}},
    {"name": "b", "type": "Convolution2D", "inputs": ["z"], "outputs": ["w"],
     "options": {"channels_out": 24, "kernel": 1, "bias": false}},
    {"name": "p", "type": "Pooling2D", "inputs": ["w"], "outputs": ["pooled"],
     "options": {"mode": "max", "kernel": 2, "stride": 2}}
  ]
})";

/// The operands of the chain, and the correct results.
struct Chain {
    explicit Chain(const Context& device)
        : x(device, Shape{2, 19, 8, 8}, random_floats(2 * 19 * 64, 1)),
          weight_a(device, Shape{20, 19, 3, 3}, random_floats(20 * 19 * 9, 2)),
          weight_b(device, Shape{24, 20, 1, 1}, random_floats(24 * 20, 3)) {
        NetOptions options{.fuse = false};
        Net net = make_net(device, chain_net, options);
        net.prepare();
        net.input("x").copy_from(x.to_floats());
        net.param("a.0").copy_from(weight_a.to_floats());
        net.param("b.0").copy_from(weight_b.to_floats());
        net.params_changed();
        net.forward();
        y_right = net.output("y").to_floats();
        pooled_right = net.output("pooled").to_floats();
    }

    Tensor y() const { return ops::call("Convolution2D", conv_a, {x}, {weight_a}).at(0); }
    Tensor after(const Tensor& y) const {
        const Tensor z = ops::relu(y);
        const Tensor w = ops::call("Convolution2D", conv_b, {z}, {weight_b}).at(0);
        return ops::call("Pooling2D", pooling, {w}).at(0);
    }

    Tensor x, weight_a, weight_b;
    std::vector<float> y_right, pooled_right;
};

bool lies_otherwise(const Tensor& tensor) {
    return Access::deferred(tensor) && Access::deferred(tensor)->contents();
}

/// CPUs with OpenCL have convolutions that write blocked channels. On other devices the tests check
/// nothing new.
void check_lies_otherwise(const Context& device, const Tensor& tensor) {
    if (device.traits().wide_vectors && !device.traits().host) CHECK(lies_otherwise(tensor));
}

void check_same(const std::vector<float>& found, const std::vector<float>& right) {
    check_close(found, {right.begin(), right.end()}, 1e-5);
}

}  // namespace

TEST_CASE("a chain of eager calls gives what the network does", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Chain chain(device);
        const Tensor y = chain.y();
        check_lies_otherwise(device, y);
        const Tensor pooled = chain.after(y);
        check_lies_otherwise(device, pooled);
        check_same(pooled.to_floats(), chain.pooled_right);
        CHECK(!lies_otherwise(pooled));
        check_lies_otherwise(device, y);  // its readers used its own layout
        check_same(y.to_floats(), chain.y_right);
        check_same(y.to_floats(), chain.y_right);
        check_same(chain.after(y).to_floats(), chain.pooled_right);
    }
}

TEST_CASE("a chain of eager calls converts nothing on its way", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Chain chain(device);
        const auto work = [&] { chain.after(chain.y()).to_floats(); };
        for (int i = 0; i < 2; ++i) work();
        const Counters before = device.counters();
        work();
        const Counters after = device.counters();
        CHECK(after.allocations == before.allocations);
        CHECK(after.compiles == before.compiles);
        CHECK(after.cache_hits == before.cache_hits);
        CHECK(after.waits == before.waits + 1);
        // Four operators, one conversion of the input, one of the result.
        if (device.traits().wide_vectors && !device.traits().host)
            CHECK(after.launches - before.launches <= 6);
    }
}

TEST_CASE("views of a result see its contents", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Chain chain(device);
        const auto right = [&](std::int64_t n, std::int64_t c, std::int64_t pixel) {
            return chain.y_right[static_cast<std::size_t>((n * 20 + c) * 64 + pixel)];
        };
        const Tensor y = chain.y();
        Tensor flat = y.reshape({2 * 20 * 64});
        const Tensor second = y.slice(0, 1, 2), channels = y.slice(1, 17, 20);
        const Tensor turned = y.transpose(0, 1);
        check_lies_otherwise(device, y);
        check_same(flat.to_floats(), chain.y_right);
        CHECK(second.to_floats()[5 * 64 + 3] == y.to_floats()[(20 + 5) * 64 + 3]);
        CHECK(std::abs(channels.to_floats()[(3 + 2) * 64 + 9] - right(1, 19, 9)) < 1e-4);
        CHECK(std::abs(turned.to_floats()[(4 * 2 + 1) * 64 + 7] - right(1, 4, 7)) < 1e-4);
        // Both share the same memory.
        flat.fill(3);
        CHECK(y.to_floats() == std::vector<float>(2 * 20 * 64, 3));
        CHECK(second.shares_memory(y));
    }
}

TEST_CASE("an operator takes a view of a result", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Chain chain(device);
        const Tensor y = chain.y();
        const std::vector<float> flat = ops::relu(y.reshape({2, 20 * 64})).to_floats();
        const std::vector<float> part = ops::relu(chain.y().slice(0, 1, 2)).to_floats();
        for (std::size_t i = 0; i < flat.size(); ++i)
            CHECK(std::abs(flat[i] - std::max(0.0f, chain.y_right[i])) < 1e-4);
        for (std::size_t i = 0; i < part.size(); ++i)
            CHECK(std::abs(part[i] - std::max(0.0f, chain.y_right[20 * 64 + i])) < 1e-4);
        // A tensor of the same shape whose dimensions were exchanged is no longer row-major.
        const Tensor square =
            ops::call("Convolution2D", R"({"channels_out": 2, "kernel": 1, "bias": false})", {y},
                      {Tensor(device, {2, 20, 1, 1}, random_floats(40, 4))})
                .at(0);
        const Tensor copy(device, square.shape(), square.to_floats());
        CHECK(ops::relu(square.transpose(0, 1)).to_floats() ==
              ops::relu(copy.transpose(0, 1)).to_floats());
    }
}

TEST_CASE("what is written to a result replaces it", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Chain chain(device);
        const std::vector<float> values = random_floats(2 * 20 * 64, 7);
        Tensor copied = chain.y(), filled = chain.y(), half = chain.y();
        const Tensor before = copied;
        const std::uint64_t launches = device.counters().launches;
        copied.copy_from(values);
        filled.fill(2);
        CHECK(device.counters().launches == launches);  // what is overwritten needs no conversion
        CHECK(before.to_floats() == values);
        CHECK(ops::relu(filled).to_floats() == std::vector<float>(values.size(), 2));
        half.slice(0, 0, 1).fill(5);
        const std::vector<float> mixed = half.to_floats();
        CHECK(mixed[19 * 64] == 5);
        CHECK(std::abs(mixed[20 * 64 + 11] - chain.y_right[20 * 64 + 11]) < 1e-4);
    }
}

TEST_CASE("out tensors get row-major results, and may be results themselves", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Chain chain(device);
        ops::CallOptions into{.out = {Tensor(device, {2, 20, 8, 8})}};
        const Tensor y =
            ops::call("Convolution2D", conv_a, {chain.x}, {chain.weight_a}, into).at(0);
        CHECK(y.shares_memory(into.out[0]));
        check_same(into.out[0].to_floats(), chain.y_right);

        const Tensor old = chain.y(), other = old;
        into.out = {old};
        ops::call("Activation", R"({"activation": "relu"})", {y}, {}, into);
        const std::vector<float> positive = ops::relu(y).to_floats();
        CHECK(other.to_floats() == positive);
        // The operation is in place.
        const Tensor x = chain.y();
        into.out = {x};
        ops::call("Activation", R"({"activation": "relu"})", {x}, {}, into);
        check_same(x.to_floats(), positive);
        // A refused call leaves both unchanged.
        const Tensor kept = chain.y();
        into.out = {kept};
        CHECK_THROWS_AS(ops::call("Pooling2D", pooling, {y}, {}, into), Error);
        check_same(kept.to_floats(), chain.y_right);
    }
}

TEST_CASE("a network takes a result as input", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Chain chain(device);
        const char* const net_json = R"({
          "inputs": [{"name": "y", "shape": [2, 20, 8, 8]}],
          "outputs": ["pooled"],
          "operators": [{"name": "r", "type": "Activation", "inputs": ["y"], "outputs": ["z"],
                         "options": {"activation": "relu"}},
                        {"name": "b", "type": "Convolution2D", "inputs": ["z"], "outputs": ["w"],
                         "options": {"channels_out": 24, "kernel": 1, "bias": false}},
                        {"name": "p", "type": "Pooling2D", "inputs": ["w"], "outputs": ["pooled"],
                         "options": {"mode": "max", "kernel": 2, "stride": 2}}]})";
        Net net = make_net(device, net_json);
        net.prepare();
        net.param("b.0").copy_from(chain.weight_b.to_floats());
        net.params_changed();
        ops::CallOptions into{.out = {net.input("y")}};
        ops::call("Convolution2D", conv_a, {chain.x}, {chain.weight_a}, into);
        net.forward();
        check_same(net.output("pooled").to_floats(), chain.pooled_right);
        net.input("y").copy_from(chain.y().to_floats());
        net.forward();
        check_same(net.output("pooled").to_floats(), chain.pooled_right);
    }
}

TEST_CASE("a result serves as a parameter", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Chain chain(device);
        const char* const options = R"({"channels_out": 20, "kernel": 1, "bias": false})";
        const Tensor image(device, {2, 20, 5, 5}, random_floats(2 * 20 * 25, 5));
        const Tensor one(device, {20, 20, 1, 1}, random_floats(400, 6));
        const Tensor rows(device, {20, 20, 3, 3}, random_floats(20 * 20 * 9, 8));
        // Weights that are the result of a convolution over "images" of 3x3.
        const Tensor made = ops::call("Convolution2D", options, {rows}, {one}).at(0);
        const Tensor copy(device, made.shape(), made.to_floats());
        const Tensor again = ops::call("Convolution2D", options, {rows}, {one}).at(0);
        const char* const with = R"({"channels_out": 20, "kernel": 3, "bias": false})";
        CHECK(ops::call("Convolution2D", with, {image}, {again}).at(0).to_floats() ==
              ops::call("Convolution2D", with, {image}, {copy}).at(0).to_floats());
    }
}

TEST_CASE("results may go unread", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Chain chain(device);
        chain.y();
        Tensor kept = chain.after(chain.y());  // its operands are released
        { const Tensor unread = chain.y(), copy = unread, view = unread.slice(0, 0, 1); }
        device.finish();
        check_same(kept.to_floats(), chain.pooled_right);
        kept = chain.y();
        kept = Tensor();
        CHECK(!kept.defined());
    }
}

TEST_CASE("gradients pass as they lie", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Chain chain(device);
        const Tensor y = chain.y(), z = ops::relu(y);
        const Tensor w = ops::call("Convolution2D", conv_b, {z}, {chain.weight_b}).at(0);
        const Tensor pooled = ops::call("Pooling2D", pooling, {w}).at(0);
        // The same calls on row-major copies.
        const auto plain = [&](const Tensor& t) {
            return Tensor(device, t.shape(), t.to_floats());
        };
        const Tensor seed(device, pooled.shape(),
                          random_floats(static_cast<std::size_t>(pooled.shape().numel()), 9));
        struct Gradients {
            std::vector<float> x, a, b;
        };
        const auto backward = [&](const auto& pass) {
            const Tensor dw = ops::backward("Pooling2D", pooling, {pass(w)}, {}, {seed}).at(0);
            const auto b =
                ops::backward("Convolution2D", conv_b, {pass(z)}, {chain.weight_b}, {pass(dw)});
            const Tensor dy = ops::backward("Activation", R"({"activation": "relu"})", {pass(y)},
                                            {}, {pass(b.at(0))})
                                  .at(0);
            const auto a =
                ops::backward("Convolution2D", conv_a, {chain.x}, {chain.weight_a}, {pass(dy)});
            return Gradients{a.at(0).to_floats(), a.at(1).to_floats(), b.at(1).to_floats()};
        };
        const Gradients found = backward([](const Tensor& t) { return t; });
        const Gradients right = backward(plain);
        check_same(found.x, right.x);
        check_same(found.a, right.a);
        check_same(found.b, right.b);
        // With a wrong shape it is refused like any tensor.
        CHECK_THROWS_AS(ops::backward("Convolution2D", conv_b, {z}, {chain.weight_b}, {y}), Error);
    }
}

TEST_CASE("options that differ in kind alone are not taken for each other", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, {2, 3, 1, 5}, random_floats(30, 11));
        const std::vector<Tensor> params{Tensor(device, {1, 5}, std::vector<float>(5, 1)),
                                         Tensor(device, {1, 5}, std::vector<float>(5, 0))};
        CHECK(ops::call("Squeeze", R"({"dims": [2]})", {x}).at(0).shape() == Shape{2, 3, 5});
        CHECK(ops::call("LayerNorm", R"({"dims": 2})", {x}, params).at(0).shape() == x.shape());
    }
}

TEST_CASE("a single channel in a block of many", "[eager_layout]") {
    ON_EVERY_DEVICE(device) {
        const Tensor x(device, {2, 16, 3, 3}, random_floats(2 * 16 * 9, 12, 0.5, 1));
        const Tensor weight(device, {1, 16, 1, 1}, std::vector<float>(16, 1));
        const char* const options = R"({"channels_out": 1, "kernel": 1, "bias": false})";
        const Tensor y = ops::call("Convolution2D", options, {x}, {weight}).at(0);
        const Tensor twice = ops::add(y, y);
        const std::vector<float> once = y.to_floats(), sum = twice.to_floats();
        for (std::size_t i = 0; i < once.size(); ++i) {
            CHECK(once[i] > 7);
            CHECK(sum[i] == 2 * once[i]);
        }
    }
}
