// SPDX-License-Identifier: MIT
// An inference net may release parameters after packing them. Its results equal those of a net that
// keeps them. Whoever asks for such a parameter gets it or is told why not.
#include "net/support.hpp"

#include <fstream>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

// A convolution with a norm to fold and a product, both larger than 64 KiB, and a convolution and
// vectors that are smaller.
const char* const large_layers = R"({
  "inputs": [{"name": "data", "shape": [4, 16, 6, 6]}],
  "outputs": ["scores"],
  "operators": [
    {"name": "conv", "type": "Convolution2D", "inputs": ["data"], "outputs": ["conv"],
     "options": {"channels_out": 128, "kernel": 3, "pad": 1}},
    {"name": "bn", "type": "BatchNorm", "inputs": ["conv"], "outputs": ["bn"]},
    {"name": "small", "type": "Convolution2D", "inputs": ["bn"], "outputs": ["small"],
     "options": {"channels_out": 32, "kernel": 1, "activation": "relu"}},
    {"name": "scores", "type": "InnerProduct", "inputs": ["small"], "outputs": ["scores"],
     "options": {"outputs": 32}}
  ]
})";

Net make(const Context& device, bool keep) {
    NetOptions options = with_mode(Mode::inference);
    options.keep_parameters = keep;
    return make_net(device, large_layers, options);
}

Bytes score_bits(Net& net) {
    const auto count = static_cast<std::size_t>(net.input_shape("data").numel());
    set_floats(net, "data", random_floats(count, 3));
    net.forward();
    return bits(net.output("scores"));
}

/// The files of two sets of weights, and their results.
struct Weights {
    explicit Weights(const Context& device) {
        for (const unsigned which : {0u, 1u}) {
            Net net = make(device, true);
            unsigned seed = 100 * (which + 1);
            for (const std::string& name : net.param_names())
                net.param(name).copy_from(random_floats(
                    static_cast<std::size_t>(net.param_shape(name).numel()), ++seed, 0.5, 1.5));
            net.params_changed();
            params[which] = all_bits(net);
            results[which] = score_bits(net);
            net.save_weights(path(which));
            net.reshape(2);
            results_of_two[which] = score_bits(net);
        }
        REQUIRE(results[0] != results[1]);
    }
    std::string path(unsigned which) const { return folder.file(which == 0 ? "a.h5" : "b.h5"); }
    Folder folder;
    std::map<std::string, Bytes> params[2];
    Bytes results[2], results_of_two[2];
};

}  // namespace

TEST_CASE("parameters are let go once they are packed", "[keep_parameters]") {
    ON_EVERY_DEVICE(device) {
        const Weights weights(device);
        const auto memory = [&](bool keep) {
            const std::uint64_t before = device.counters().allocated_bytes;
            Net net = make(device, keep);
            net.load_weights(weights.path(0));
            CHECK(score_bits(net) == weights.results[0]);
            return device.counters().allocated_bytes - before;
        };
        Net kept = make(device, true), let_go = make(device, false);
        CHECK(kept.planned_setup_peak_bytes() == kept.planned_peak_bytes());
        CHECK(let_go.planned_setup_peak_bytes() >= let_go.planned_peak_bytes());
        // A weight that kernels read directly is kept.
        const std::uint64_t less = kept.planned_peak_bytes() - let_go.planned_peak_bytes();
        INFO(less << " bytes less");
        const std::uint64_t real = memory(true) - memory(false);
        CHECK(real <= less + 4096);
        CHECK(real + 4096 >= less);
        // The norm is folded everywhere, so no step reads that convolution's weights.
        CHECK(less >= 128 * 16 * 9 * 4);
    }
}

TEST_CASE("parameters that were let go are read again for who asks", "[keep_parameters]") {
    ON_EVERY_DEVICE(device) {
        const Weights weights(device);
        Net net = make(device, false);
        net.load_weights(weights.path(0));
        CHECK(score_bits(net) == weights.results[0]);
        const std::string saved = weights.folder.file("saved.h5");
        net.save_weights(saved);
        Net saved_into = make(device, true);
        saved_into.load_weights(saved);
        CHECK((all_bits(saved_into) == weights.params[0]));
        net.reshape(2);
        CHECK(score_bits(net) == weights.results_of_two[0]);
        CHECK((all_bits(net) == weights.params[0]));

        // After a write, both plans use the new value. Weights of another file are stored at the
        // same place.
        const Tensor given = net.param("conv.0");
        for (const auto& [name, bytes] : weights.params[1])
            net.param(name).copy_from_host(bytes.data(), bytes.size());
        net.params_changed();
        CHECK(score_bits(net) == weights.results_of_two[1]);
        net.reshape(4);
        CHECK(score_bits(net) == weights.results[1]);
        CHECK(given.shares_memory(net.param("conv.0")));
        net.load_weights(weights.path(0));
        CHECK(bits(given) == weights.params[0].at("conv.0"));
        CHECK(score_bits(net) == weights.results[0]);
        net.load_weights(weights.path(1));
        CHECK(score_bits(net) == weights.results[1]);
    }
}

TEST_CASE("initial parameters that were let go are made again", "[keep_parameters]") {
    ON_EVERY_DEVICE(device) {
        Net kept = make(device, true), let_go = make(device, false);
        for (const char* const method : {"default", "he"}) {
            kept.initialize(method);
            let_go.initialize(method);
            const Bytes expected = score_bits(kept);
            CHECK(score_bits(let_go) == expected);
            let_go.reshape(2);
            for (const std::string& name : let_go.input_names()) let_go.input(name).fill(0);
            let_go.forward();
            let_go.reshape(4);
            CHECK(score_bits(let_go) == expected);
        }
        CHECK((all_bits(let_go) == all_bits(kept)));
    }
}

TEST_CASE("a weights file may be replaced, but not changed, under a net", "[keep_parameters]") {
    ON_EVERY_DEVICE(device) {
        const Weights weights(device);
        const std::string path = weights.folder.file("w.h5"), spare = weights.folder.file("s.h5");
        for (const bool removed : {false, true}) {
            std::filesystem::copy_file(weights.path(0), path);
            Net net = make(device, false);
            net.load_weights(path);
            if (removed) {
                std::filesystem::remove(path);
            } else {
                std::filesystem::copy_file(weights.path(1), spare);
                std::filesystem::rename(spare, path);
            }
            net.reshape(2);
            CHECK(score_bits(net) == weights.results_of_two[0]);
            CHECK((all_bits(net) == weights.params[0]));
            std::filesystem::remove(path);
        }

        std::filesystem::copy_file(weights.path(0), path);
        Net net = make(device, false), kept = make(device, true);
        net.load_weights(path);
        kept.load_weights(path);
        std::ofstream(path, std::ios::binary | std::ios::app) << "more";
        CHECK(score_bits(net) == weights.results[0]);
        net.reshape(2);
        kept.reshape(2);
        CHECK(score_bits(kept) == weights.results_of_two[0]);
        CHECK(score_bits(net) == weights.results_of_two[0]);  // what the first plan has packed
        net.params_changed();
        for (int again = 0; again < 2; ++again)
            check_error(ErrorKind::io, {path, "has changed since", "keep_parameters"},
                        [&] { score_bits(net); });
        check_error(ErrorKind::io, {path, "has changed since"}, [&] { net.save_weights(spare); });
        CHECK_FALSE(std::filesystem::exists(spare));
        net.load_weights(weights.path(1));
        CHECK(score_bits(net) == weights.results_of_two[1]);
    }
}

TEST_CASE("a file that cannot be taken leaves parameters as they were", "[keep_parameters]") {
    ON_EVERY_DEVICE(device) {
        const Weights weights(device);
        Net net = make(device, false);
        net.load_weights(weights.path(0));
        const std::string bad = weights.folder.file("bad.h5");
        save_tensors({{bad, {{"conv.0", {Shape{3}, DType::f32, std::vector<std::byte>(12)}}}}});
        CHECK_THROWS_AS(net.load_weights(bad), Error);
        CHECK(score_bits(net) == weights.results[0]);
        net.reshape(2);
        CHECK(score_bits(net) == weights.results_of_two[0]);
    }
}
