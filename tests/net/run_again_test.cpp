// SPDX-License-Identifier: MIT
// Tensors that are recomputed in backward, because operators are marked or a limit of memory is
// given: less memory, and the same bits of losses, gradients and parameters.
#include "net/support.hpp"

#include <algorithm>
#include <functional>
#include <optional>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

std::string network(const std::string& inputs, const std::string& operators) {
    return R"({"inputs": [)" + inputs + R"(], "outputs": ["loss"], "operators": [)" + operators +
           "]}";
}

/// A convolution, BatchNorm and ReLU in place.
std::string block(const std::string& n, const std::string& from, const std::string& more = {}) {
    return R"({"name": "conv)" + n + R"(", "type": "Convolution2D", "inputs": [")" + from +
           R"("], "outputs": ["c)" + n + R"("],
             "options": {"channels_out": 8, "kernel": 3, "pad": 1, "bias": false})" +
           more + R"(},
            {"name": "bn)" +
           n + R"(", "type": "BatchNorm", "inputs": ["c)" + n + R"("], "outputs": ["b)" + n +
           R"("]},
            {"name": "relu)" +
           n + R"(", "type": "Activation", "inputs": ["b)" + n + R"("], "outputs": ["b)" + n +
           R"("], "options": {"activation": "relu"}},)";
}

const char* const scores_and_loss = R"(
    {"name": "scores", "type": "InnerProduct", "inputs": ["last"], "outputs": ["scores"],
     "options": {"outputs": 5}},
    {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"],
     "outputs": ["loss"]})";
const char* const picture_inputs =
    R"({"name": "data", "shape": [8, 3, 16, 16]}, {"name": "label", "shape": [8], "dtype": "int"})";

/// Blocks, a residual sum, a pooling and dropout. `more` stands behind each convolution's options.
std::string blocks(const std::string& more = {}) {
    return network(picture_inputs, block("1", "data", more) + block("2", "b1", more) +
                                       block("3", "b2", more) + R"(
    {"name": "sum", "type": "Elementwise", "inputs": ["b3", "b1"], "outputs": ["sum"],
     "options": {"activation": "relu"}},)" +
                                       block("4", "sum", more) + R"(
    {"name": "pool", "type": "Pooling2D", "inputs": ["b4"], "outputs": ["pool"],
     "options": {"kernel": 2, "stride": 2}},
    {"name": "drop", "type": "Dropout", "inputs": ["pool"], "outputs": ["last"]},)" +
                                       scores_and_loss);
}

/// LayerNorm, attention with dropout, a hidden layer, and a layer that shares its parameters.
std::string transformer() {
    const auto product = [](const std::string& name, const std::string& from, const char* more) {
        return R"({"name": ")" + name + R"(", "type": "Convolution2D", "inputs": [")" + from +
               R"("], "outputs": [")" + name + R"("], "options": {"channels_out": 4, "kernel": 1)" +
               more + "},";
    };
    return network(
        R"({"name": "data", "shape": [4, 4, 12, 16]},
                      {"name": "label", "shape": [4], "dtype": "int"})",
        R"({"name": "norm", "type": "LayerNorm", "inputs": ["data"], "outputs": ["norm"]},)" +
            product("q", "norm", "}") + product("k", "norm", "}") + product("v", "norm", "}") + R"(
    {"name": "attention", "type": "Attention", "inputs": ["q", "k", "v"], "outputs": ["heads"],
     "options": {"dropout_p": 0.2}},
    {"name": "residual", "type": "Elementwise", "inputs": ["heads", "data"], "outputs": ["sum"]},)" +
            product("up", "sum", R"(, "activation": "gelu"}, "params": ["w", "b"])") +
            product("shared", "up", R"(, "activation": "tanh"}, "params": ["w", "b"])") +
            R"({"name": "flat", "type": "Flatten", "inputs": ["shared"], "outputs": ["last"]},)" +
            scores_and_loss);
}

std::string lstm() {
    return network(
        R"({"name": "data", "shape": [6, 4, 8]}, {"name": "label", "shape": [6], "dtype": "int"})",
        R"({"name": "lstm", "type": "LSTM", "inputs": ["data"], "outputs": ["states"],
                       "options": {"hidden_size": 10, "num_layers": 2, "dropout": 0.3}},
                      {"name": "act", "type": "Activation", "inputs": ["states"], "outputs": ["last"],
                       "options": {"activation": "silu"}},)" +
            std::string(scores_and_loss));
}

/// The network with the mark on each operator that `wanted` names; on all where it is empty.
std::string marked(std::string json, const std::vector<std::string>& wanted = {}) {
    const std::string key = R"(", "type": ")", mark = R"(, "recompute": true)";
    for (std::size_t at = 0; (at = json.find(key, at)) != std::string::npos; at += key.size()) {
        const std::size_t begin = json.rfind('"', at - 1) + 1;
        const std::string name = json.substr(begin, at - begin);
        if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end())
            continue;
        json.insert(at + 1, mark);
        at += mark.size();
    }
    return json;
}

struct Trained {
    std::vector<Bytes> losses;
    std::map<std::string, Bytes> gradients, params;
    std::uint64_t peak = 0;
    std::vector<std::string> notes;
    int again = 0;  ///< nodes that repeat others
};

Trained train(const Context& device, const std::string& json, NetOptions options = training(3),
              const SolverOptions& how = {}) {
    Net net = make_net(device, json, options);
    Solver solver(net, how);
    Trained result;
    result.peak = net.planned_peak_bytes();  // before inputs are fed, which takes memory beside it
    for (unsigned step = 0; step < 3; ++step) {
        feed_small_network(net, step);
        solver.step();
        result.losses.push_back(bits(net.output("loss")));
    }
    for (const std::string& name : net.gradient_names())
        result.gradients[name] = bits(net.gradient(name));
    result.params = all_bits(net);
    result.notes = net.notes();
    for (const NodeReport& node : net.nodes()) result.again += node.name.ends_with("/again");
    return result;
}

void check_same(const Trained& found, const Trained& wanted) {
    CHECK((found.losses == wanted.losses));
    CHECK((found.gradients == wanted.gradients));
    CHECK((found.params == wanted.params));
}

/// The least memory in which the network can train, from the error where there is none.
std::uint64_t least_bytes(const Context& device, const std::string& json,
                          const NetOptions& options = training(3),
                          const SolverOptions* solver = nullptr) {
    NetOptions none = options;
    none.memory_limit = 1;
    return Net::from_json(device, json, none).plan_memory(solver).setup_peak_bytes;
}

bool says(const std::vector<std::string>& notes, const std::string& words) {
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
        return note.find(words) != std::string::npos;
    });
}

/// Marks and limits give the bits of training without them.
void check_network(const Context& device, const std::string& json,
                   const NetOptions& options = training(3), const SolverOptions& how = {}) {
    const Trained plain = train(device, json, options, how);
    CHECK(plain.again == 0);
    const Trained all = train(device, marked(json), options, how);
    CHECK(all.again > 0);
    CHECK(says(all.notes, "tensors in backward: the plan needs "));
    check_same(all, plain);
    NetOptions limited = options;
    limited.memory_limit = (plain.peak + least_bytes(device, json, options, &how)) / 2;
    CHECK(limited.memory_limit < plain.peak);
    const Trained fitted = train(device, json, limited, how);
    CHECK(fitted.peak <= limited.memory_limit);
    CHECK(fitted.again > 0);
    check_same(fitted, plain);
}

}  // namespace

TEST_CASE("blocks with a residual and dropout recompute with the same bits", "[run_again]") {
    ON_EVERY_DEVICE(device) check_network(device, blocks());
}

TEST_CASE("attention and shared parameters recompute with the same bits", "[run_again]") {
    ON_EVERY_DEVICE(device) check_network(device, transformer());
}

TEST_CASE("an LSTM recomputes with the same bits", "[run_again]") {
    ON_EVERY_DEVICE(device) {
        const Trained plain = train(device, lstm()), all = train(device, marked(lstm()));
        CHECK(all.again > 0);
        check_same(all, plain);
    }
}

TEST_CASE("accumulation, a scaled loss and no fusion change nothing", "[run_again]") {
    SolverOptions how{.kind = SolverOptions::Kind::sgd, .momentum = 0.9, .accumulate = 2};
    ON_EVERY_DEVICE(device) {
        NetOptions options = training(3);
        options.precision = Precision::fp16;
        check_network(device, blocks(), options, how);
        options.precision = Precision::fp32;
        options.fuse = false;
        check_network(device, blocks(), options, how);
    }
}

TEST_CASE("a marked segment keeps only its inputs", "[run_again]") {
    const std::vector<std::string> names{"conv2", "bn2", "relu2", "conv3", "bn3", "relu3", "sum"};
    for (const Context& device : test_devices()) {
        INFO("on " << device.info().name);
        const Trained plain = train(device, blocks());
        const SolverOptions adam;
        Net net = Net::from_json(device, marked(blocks(), names), training(3));
        const MemoryMap map = net.plan_memory(&adam);
        CHECK(map.peak_bytes < plain.peak);
        // Each large tensor of the segment is free before backward, and there is a second one.
        const auto backward =
            std::find_if(map.steps.begin(), map.steps.end(),
                         [](const MemoryMap::Step& step) { return step.phase == "backward"; });
        const int begin = static_cast<int>(backward - map.steps.begin());
        int recomputed = 0;
        for (const MemoryMap::Entry& entry : map.entries) {
            recomputed += entry.recomputed;
            if (entry.recomputed) CHECK(entry.first >= begin);
            for (const char* name : {"c2", "b2", "c3", "b3", "sum"})
                if (entry.name == name) CHECK(entry.last < begin);
        }
        CHECK(recomputed > 0);
        check_same(train(device, marked(blocks(), names)), plain);
    }
}

TEST_CASE("forward and backward by hand recompute, too", "[run_again]") {
    for (const Context& device : test_devices()) {
        INFO("on " << device.info().name);
        std::vector<std::map<std::string, Bytes>> found;
        for (const std::string& json : {blocks(), marked(blocks())}) {
            for (const Mode mode : {Mode::training, Mode::evaluation}) {
                NetOptions options = with_mode(mode);
                options.input_gradients = true;
                Net net = make_net(device, json, options);
                feed_small_network(net, 1);
                net.forward();
                net.forward();
                net.backward();
                std::map<std::string, Bytes> all = all_bits(net);
                for (const std::string& name : net.gradient_names())
                    all["gradient " + name] = bits(net.gradient(name));
                found.push_back(std::move(all));
            }
        }
        CHECK((found[0] == found[2]));
        CHECK((found[1] == found[3]));
    }
}

TEST_CASE("marks without an effect are harmless", "[run_again]") {
    const Context device("cpu");
    // Nothing is kept for backward of a pooling's result, of scores or of a loss.
    const Trained plain = train(device, blocks());
    check_same(train(device, marked(blocks(), {"scores", "loss"})), plain);
    Net inference = make_net(device, blocks()), ignored = make_net(device, marked(blocks()));
    CHECK(inference.planned_peak_bytes() == ignored.planned_peak_bytes());
    CHECK_FALSE(says(ignored.notes(), "recompute"));
    for (const NodeReport& node : ignored.nodes()) CHECK_FALSE(node.name.ends_with("/again"));
}

TEST_CASE("a limit above the peak changes nothing", "[run_again]") {
    const Context device("cpu");
    const Trained plain = train(device, blocks());
    NetOptions options = training(3);
    options.memory_limit = plain.peak;
    const Trained limited = train(device, blocks(), options);
    CHECK(limited.again == 0);
    CHECK(limited.peak == plain.peak);
    options.memory_limit = plain.peak - 1;
    CHECK(train(device, blocks(), options).again > 0);
}

TEST_CASE("a limit that nothing meets is an error with the least peak", "[run_again]") {
    const Context device("cpu");
    NetOptions options = training(3);
    options.memory_limit = 200 << 10;
    Net net = make_net(device, blocks(), options);
    check_error(ErrorKind::out_of_memory,
                {"the plan needs ", " MiB at least, with ", " nodes that recompute tensors",
                 "the memory limit is 0.2 MiB", "wants ", "the largest batch that fits is "},
                [&] { net.prepare(); });
    options = with_mode(Mode::inference);
    options.memory_limit = 1;
    Net inference = make_net(device, blocks(), options);
    check_error(ErrorKind::out_of_memory, {"the plan needs ", "the memory limit is 0.0 MiB"},
                [&] { inference.prepare(); });
}

TEST_CASE("the largest batch of the error trains within the limit", "[run_again]") {
    const Context device("cpu");
    NetOptions options = training(3);
    options.memory_limit = least_bytes(device, blocks()) * 3 / 4;
    Net net = make_net(device, blocks(), options);
    const std::string message = message_of([&] { net.prepare(); });
    INFO(message);
    const std::string words = "the largest batch that fits is ";
    REQUIRE(message.find(words) != std::string::npos);
    options.batch = std::stoi(message.substr(message.find(words) + words.size()));
    CHECK(options.batch < 8);
    make_net(device, blocks(), options).prepare();
    ++options.batch;
    Net larger = make_net(device, blocks(), options);
    CHECK_THROWS_AS(larger.prepare(), Error);
}
