// SPDX-License-Identifier: MIT
// Parameters that are read to host memory and written from it: the bits are the same, and failures
// change nothing.
#include "net/support.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

std::map<std::string, HostTensor> read_all(Net& net) {
    std::map<std::string, HostTensor> values;
    for (const std::string& name : net.param_names()) values[name] = net.read_param(name);
    return values;
}

std::map<std::string, Bytes> bytes_of(const std::map<std::string, HostTensor>& values) {
    std::map<std::string, Bytes> bytes;
    for (const auto& [name, value] : values) bytes[name] = value.data;
    return bytes;
}

/// One product whose weights exceed 64 KiB, so inference releases them after packing.
const char* const large_product = R"({
  "inputs": [{"name": "data", "shape": [2, 64, 5, 5]}],
  "outputs": ["scores"],
  "operators": [
    {"name": "conv", "type": "Convolution2D", "inputs": ["data"], "outputs": ["scores"],
     "options": {"channels_out": 64, "kernel": 3, "pad": 1}}]})";

std::vector<float> scores_of(Net& net) {
    set_floats(net, "data",
               random_floats(static_cast<std::size_t>(net.input_shape("data").numel()), 3));
    net.forward();
    return net.output("scores").to_floats();
}

}  // namespace

TEST_CASE("parameters go through host memory bit by bit", "[host_params]") {
    ON_EVERY_DEVICE(device) {
        Net trained = make_net(device, small_network, training());
        Solver solver(trained, {});
        feed_small_network(trained, 0);
        solver.step();
        const auto values = read_all(trained);
        CHECK(bytes_of(values) == all_bits(trained));
        for (const Mode mode : {Mode::inference, Mode::evaluation, Mode::training}) {
            Net net = Net::from_json(device, small_network, with_mode(mode));
            net.write_params(values);
            CHECK(bytes_of(read_all(net)) == bytes_of(values));
            feed_small_network(net, 1);
            net.forward();
        }
    }
}

TEST_CASE("inference takes parameters from host memory as often as it needs them",
          "[host_params]") {
    ON_EVERY_DEVICE(device) {
        Net first = make_net(device, large_product, training(7));
        const auto values = read_all(first);
        Net net = Net::from_json(device, large_product);
        net.write_params(values);
        const std::vector<float> before = scores_of(net);
        const std::uint64_t memory = device.counters().allocated_bytes;
        CHECK(bytes_of(read_all(net)) == bytes_of(values));
        CHECK(device.counters().allocated_bytes == memory);
        net.reshape(1);  // another plan packs the weights again
        scores_of(net);
        net.reshape(2);
        CHECK(scores_of(net) == before);
    }
}

TEST_CASE("float types of parameters are converted", "[host_params]") {
    Net net = make_net(Context("cpu"), large_product, training());
    auto values = read_all(net);
    HostTensor& bias = values.at("conv.1");
    const std::vector<double> wide(64, 0.5);
    bias.dtype = DType::f64;
    bias.data.resize(64 * sizeof(double));
    convert(wide.data(), DType::f64, bias.data.data(), DType::f64, wide.size());
    net.write_params(values);
    CHECK(net.param("conv.1").to_floats() == std::vector<float>(64, 0.5f));
}

TEST_CASE("parameters that do not fit change nothing", "[host_params]") {
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, training());
        const auto before = all_bits(net);
        const auto good = read_all(net);
        const auto refused = [&](ErrorKind kind, const std::vector<std::string>& words,
                                 auto change) {
            auto values = good;
            for (auto& [name, value] : values)
                for (std::byte& byte : value.data) byte ^= std::byte{1};
            change(values);
            check_error(kind, words, [&] { net.write_params(values); });
            CHECK(all_bits(net) == before);
        };
        using Values = std::map<std::string, HostTensor>;
        refused(ErrorKind::not_found, {"'conv.0'"}, [](Values& v) { v.erase("conv.0"); });
        refused(ErrorKind::not_found, {"'conv.9'", "'conv.0'"},
                [](Values& v) { v["conv.9"] = v.at("conv.0"); });
        refused(ErrorKind::invalid_argument, {"'conv.0'", "[1]"},
                [](Values& v) { v.at("conv.0").shape = Shape{1}; });
        refused(ErrorKind::invalid_argument, {"'conv.0'", "int32"},
                [](Values& v) { v.at("conv.0").dtype = DType::i32; });
        refused(ErrorKind::invalid_argument, {"'conv.0'", "bytes"},
                [](Values& v) { v.at("conv.0").data.pop_back(); });
    }
}

TEST_CASE("missing_ok initialises what is missing", "[host_params]") {
    Net net = Net::from_json(Context("cpu"), large_product, training(5));
    check_error(ErrorKind::invalid_argument, {"read_param()", "'conv.0'"},
                [&] { net.read_param("conv.0"); });
    Net other = make_net(Context("cpu"), large_product, training(5));
    auto values = read_all(other);
    for (std::byte& byte : values.at("conv.1").data) byte = std::byte{0};
    values.erase("conv.0");
    net.write_params(values, true);
    CHECK(bits(net.param("conv.0")) == bits(other.param("conv.0")));
    CHECK(net.param("conv.1").to_floats() == std::vector<float>(64, 0.0f));
}
