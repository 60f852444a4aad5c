// SPDX-License-Identifier: MIT
// Inference whose steps run in one launch (src/exec/chain.hpp) has the same bits as steps that run
// one by one, in repeated runs and while inputs and parameters change.
#include "net/support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

// A first layer, a depthwise one, 1x1 with and without a stride, a 3x3 that may use Winograd, a sum
// in an epilogue, pooling in between, and an inner product.
const char* const many_small_layers = R"({
  "inputs": [{"name": "data", "shape": [2, 3, 20, 20]}],
  "outputs": ["scores"],
  "operators": [
    {"name": "c0", "type": "Convolution2D", "inputs": ["data"], "outputs": ["c0"],
     "options": {"channels_out": 24, "kernel": 3, "pad": 1, "activation": "relu"}},
    {"name": "c1", "type": "Convolution2D", "inputs": ["c0"], "outputs": ["c1"],
     "options": {"channels_out": 24, "kernel": 3, "pad": 1, "groups": 24, "activation": "relu6"}},
    {"name": "c2", "type": "Convolution2D", "inputs": ["c1"], "outputs": ["c2"],
     "options": {"channels_out": 24, "kernel": 1}},
    {"name": "sum", "type": "Elementwise", "inputs": ["c2", "c0"], "outputs": ["sum"],
     "options": {"operation": "sum", "activation": "relu"}},
    {"name": "c3", "type": "Convolution2D", "inputs": ["sum"], "outputs": ["c3"],
     "options": {"channels_out": 72, "kernel": 1, "stride": 2}},
    {"name": "pool", "type": "Pooling2D", "inputs": ["c3"], "outputs": ["pool"],
     "options": {"kernel": 2, "stride": 1}},
    {"name": "c4", "type": "Convolution2D", "inputs": ["pool"], "outputs": ["c4"],
     "options": {"channels_out": 32, "kernel": 3, "pad": 1, "activation": "relu"}},
    {"name": "c5", "type": "Convolution2D", "inputs": ["c4"], "outputs": ["c5"],
     "options": {"channels_out": 40, "kernel": 3, "stride": 2, "pad": 1}},
    {"name": "scores", "type": "InnerProduct", "inputs": ["c5"], "outputs": ["scores"],
     "options": {"outputs": 10}}
  ]
})";

// An encoder's layer: kernels of which some texts name work-groups and the range's size, such as
// generated ones, copies and the packing of products.
const char* const encoder_layer = R"({
  "inputs": [{"name": "data", "shape": [52, 48]}],
  "outputs": ["scores"],
  "operators": [
    {"name": "norm", "type": "LayerNorm", "inputs": ["data"], "outputs": ["norm"]},
    {"name": "query", "type": "InnerProduct", "inputs": ["norm"], "outputs": ["query"],
     "options": {"outputs": 160}},
    {"name": "key", "type": "InnerProduct", "inputs": ["norm"], "outputs": ["key"],
     "options": {"outputs": 160}},
    {"name": "turned", "type": "Transpose", "inputs": ["key"], "outputs": ["turned"]},
    {"name": "product", "type": "MatMul", "inputs": ["query", "turned"], "outputs": ["product"]},
    {"name": "weights", "type": "Softmax", "inputs": ["product"], "outputs": ["weights"]},
    {"name": "wide", "type": "Pad", "inputs": ["weights"], "outputs": ["wide"],
     "options": {"pads": [3, 3]}},
    {"name": "mixed", "type": "MatMul", "inputs": ["weights", "norm"], "outputs": ["mixed"]},
    {"name": "scores", "type": "Concat", "inputs": ["wide", "mixed"], "outputs": ["scores"]}
  ]
})";

void feed(Net& net, unsigned number) {
    const auto shape = net.input_shape("data");
    set_floats(net, "data", random_floats(static_cast<std::size_t>(shape.numel()), number));
}

/// The launches of a forward pass that is not the first.
std::uint64_t launches_of_a_batch(const Context& device, Net& net) {
    feed(net, 1);
    net.forward();
    device.finish();
    const std::uint64_t start = device.counters().launches;
    net.forward();
    device.finish();
    return device.counters().launches - start;
}

}  // namespace

TEST_CASE("steps that run as one launch compute what they compute alone", "[chain]") {
    const char* const network = GENERATE(many_small_layers, encoder_layer);
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, network, with_mode(Mode::inference));
        for (unsigned number = 0; number < 3; ++number) {
            feed(net, number);
            // Profiling launches every step separately.
            net.profile(false);
            const Bytes alone = bits(net.output("scores"));
            for (int run = 0; run < 20; ++run) {
                net.forward();
                CHECK(bits(net.output("scores")) == alone);
            }
        }
        feed(net, 7);
        net.forward();
        const Bytes before = bits(net.output("scores"));
        Net other = make_net(device, network, with_mode(Mode::inference));
        copy_params(net, other);
        feed(other, 7);
        other.forward();
        CHECK(bits(other.output("scores")) == before);
        feed(other, 8);
        other.forward();
        CHECK(bits(other.output("scores")) != before);
    }
}

TEST_CASE("a chain takes fewer launches than there are layers", "[chain]") {
    ON_EVERY_DEVICE(device) {
        const Traits& traits = device.traits();
        if (!traits.wide_vectors || traits.host || traits.compute_units < 2) continue;
        Net net = make_net(device, many_small_layers, with_mode(Mode::inference));
        const std::uint64_t launches = launches_of_a_batch(device, net);
        CHECK(launches >= 1);
        CHECK(launches < net.nodes().size());
    }
}

TEST_CASE("kernels whose texts name work-groups are part of chains", "[chain]") {
    ON_EVERY_DEVICE(device) {
        const Traits& traits = device.traits();
        if (!traits.wide_vectors || traits.host || traits.compute_units < 2) continue;
        Net net = make_net(device, encoder_layer, with_mode(Mode::inference));
        CHECK(launches_of_a_batch(device, net) == 1);
    }
}

TEST_CASE("a chain's kernels are not compiled alone until they run alone", "[chain]") {
    ON_EVERY_DEVICE(shared) {
        const Traits& traits = shared.traits();
        if (!traits.wide_vectors || traits.host || traits.compute_units < 2) continue;
        const Context device(shared.info().id);
        const auto programs = [&] {
            return device.counters().compiles + device.counters().cache_hits;
        };
        Net net = make_net(device, many_small_layers, with_mode(Mode::inference));
        net.prepare();
        feed(net, 1);
        net.forward();
        device.finish();
        const std::uint64_t before = programs();
        net.forward();
        CHECK(programs() == before);
        net.profile(false);
        const std::uint64_t alone = programs();
        CHECK(alone > before + 3);
        net.profile(false);
        CHECK(programs() == alone);
    }
}
