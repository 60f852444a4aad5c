// SPDX-License-Identifier: MIT
// Networks whose operators get their devices by estimates of time and memory.
#include "net/support.hpp"

#include <dlprim/placed_net.hpp>

#include <algorithm>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Names = std::vector<std::string>;

/// A table of 40000 rows, 2.4 MiB, and two layers behind it, on these devices.
std::string with_table(const std::string& table_device = "", const std::string& rest_device = "") {
    const auto device = [](const std::string& name) {
        return name.empty() ? "" : ", \"device\": \"" + name + "\"";
    };
    return R"({
      "inputs": [{"name": "words", "shape": [16], "dtype": "int"},
                 {"name": "label", "shape": [16], "dtype": "int"}],
      "outputs": ["scores", "loss"],
      "operators": [
        {"name": "table", "type": "Embedding", "inputs": ["words"], "outputs": ["vectors"],
         "options": {"num_embeddings": 40000, "embedding_dim": 16})" +
           device(table_device) + R"(},
        {"name": "hidden", "type": "InnerProduct", "inputs": ["vectors"], "outputs": ["hidden"],
         "options": {"outputs": 4096, "activation": "relu"})" +
           device(rest_device) + R"(},
        {"name": "scores", "type": "InnerProduct", "inputs": ["hidden"], "outputs": ["scores"],
         "options": {"outputs": 5})" +
           device(rest_device) + R"(},
        {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"],
         "outputs": ["loss"])" +
           device(rest_device) + R"(}]})";
}

void feed_words(PlacedNet& net, unsigned number) {
    std::vector<std::int32_t> words(16), labels(16);
    for (std::size_t i = 0; i < 16; ++i) {
        words[i] = static_cast<std::int32_t>((i * 2399 + number * 17) % 40000);
        labels[i] = static_cast<std::int32_t>((i + number) % 5);
    }
    net.set_input("words", words.data(), 64);
    net.set_input("label", labels.data(), 64);
}

/// Devices and operators of the parts: "fast: table hidden".
Names parts_of(const PlacedNet& net) {
    Names parts;
    for (const PlacedNet::Part& part : net.parts()) {
        std::string text = part.device + ":";
        for (const std::string& name : part.operators) text += " " + name;
        parts.push_back(text);
    }
    return parts;
}

PlacementOptions automatic(std::map<std::string, std::uint64_t> limits = {}) {
    return {.automatic = true, .memory_limits = std::move(limits)};
}

constexpr std::uint64_t mib = 1 << 20;

}  // namespace

TEST_CASE("a network that fits on one device stays whole", "[automatic]") {
    ON_EVERY_DEVICE(device) {
        const std::vector<Context> both = contexts_like(device, 2);
        const std::vector<NamedDevice> devices{{"a", both[0]}, {"b", both[1]}};
        PlacedNet net = PlacedNet::from_json(devices, with_table(), training(), automatic());
        REQUIRE(net.parts().size() == 1);
        const PlacedNet::Part part = net.parts()[0];
        CHECK(part.estimated_ms > 0);
        const std::uint64_t planned = net.planned_peak_bytes().at(part.device);
        CHECK(part.estimated_bytes <= planned);  // which counts inputs, too
        CHECK(part.estimated_bytes > planned / 2);
        net.initialize();
        feed_words(net, 1);
        net.forward();
        const Names notes = net.notes();
        const auto told = [&](const std::string& words) {
            return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
                return note.find(words) != std::string::npos;
            });
        };
        CHECK(told("part 1 of 1 runs on device '" + part.device +
                   "': operators 'table' to 'loss', about "));
        CHECK(told("is bound, and no operator runs on it"));
        // Inference, with outputs of its own.
        NetOptions how{.extra_outputs = {"hidden"}, .without_losses = true};
        CHECK(PlacedNet::from_json(devices, with_table(), how, automatic()).parts().size() == 1);
    }
}

TEST_CASE("a table beyond a device's limit goes to the host, and the rest does not",
          "[automatic]") {
    ON_EVERY_DEVICE(device) {
        const Context fast = contexts_like(device, 1).front();
        const std::vector<NamedDevice> devices{{"fast", fast}, {"large", Context("host")}};
        // The table, its gradient and two moments take 9.8 MiB. The host has limits so that what
        // can be on the device is there.
        for (const bool solves : {false, true}) {
            PlacementOptions how = automatic(
                {{"fast", solves ? 8 * mib : 4 * mib}, {"large", solves ? 10 * mib : 5 * mib}});
            const SolverOptions adam;
            if (solves) how.solver = adam;
            INFO("with a solver: " << solves);
            PlacedNet net = PlacedNet::from_json(devices, with_table(), training(), how);
            REQUIRE(net.parts().size() == 2);
            CHECK(net.parts()[0].device == "large");
            CHECK(net.parts()[0].operators == Names{"table"});
            PlacedNet same = PlacedNet::from_json(devices, with_table("large", "fast"), training());
            CHECK(parts_of(net) == parts_of(same));
            for (const auto& [name, bytes] : net.planned_peak_bytes(solves ? &adam : nullptr))
                CHECK(bytes <= how.memory_limits.at(name));
            if (!solves) continue;
            net.initialize();
            same.initialize();
            PlacedSolver solver(net, adam), same_solver(same, adam);
            for (unsigned step = 0; step < 3; ++step) {
                feed_words(net, step);
                feed_words(same, step);
                solver.step();
                same_solver.step();
            }
            for (const std::string& name : net.param_names())
                CHECK(net.read_param(name).data == same.read_param(name).data);
        }
    }
}

TEST_CASE("devices are chosen by times that are measured", "[automatic]") {
    ON_EVERY_DEVICE(device) {
        const Context fast = contexts_like(device, 1).front();
        const std::vector<NamedDevice> devices{{"fast", fast}, {"large", Context("host")}};
        PlacementOptions how = automatic();
        how.measure = true;
        how.solver = SolverOptions{};
        PlacedNet free = PlacedNet::from_json(devices, with_table(), training(), how);
        double ms = 0;
        for (const PlacedNet::Part& part : free.parts()) ms += part.estimated_ms;
        CHECK(ms > 0);
        // What was measured leaves no memory behind, and the table must go to the host.
        CHECK(fast.memory().live == 0);
        how.memory_limits = {{"fast", 8 * mib}, {"large", 102 * mib / 10}};
        PlacedNet net = PlacedNet::from_json(devices, with_table(), training(), how);
        // Where what is small behind them runs depends on what was measured.
        const Names parts = parts_of(net);
        CHECK(parts.at(0) == "large: table");
        CHECK(parts.at(1).rfind("fast: hidden", 0) == 0);
    }
}

TEST_CASE("operators that name a device keep it", "[automatic]") {
    const std::vector<Context> hosts = contexts_like(Context("host"), 2);
    const std::vector<NamedDevice> devices{{"a", hosts[0]}, {"b", hosts[1]}};
    PlacedNet net =
        PlacedNet::from_json(devices, with_table("b"), training(), automatic({{"b", 8 * mib}}));
    REQUIRE(!net.parts().empty());
    CHECK(net.parts()[0].device == "b");
    CHECK(net.parts()[0].operators.front() == "table");
    // Without a reason to move, the others stay with it.
    CHECK(net.parts().size() == 1);
    // A second name of a context is kept, too.
    PlacedNet named = PlacedNet::from_json({{"a", hosts[0]}, {"other", hosts[0]}},
                                           with_table("other"), training(), automatic());
    CHECK(named.parts()[0].device == "other");
}

TEST_CASE("operators that share parameters stay together", "[automatic]") {
    const char* const json = R"({
      "inputs": [{"name": "x", "shape": [4, 64]}], "outputs": ["y"],
      "operators": [
        {"name": "one", "type": "InnerProduct", "inputs": ["x"], "outputs": ["one"],
         "params": ["w", "b"], "options": {"outputs": 64}},
        {"name": "act", "type": "Activation", "inputs": ["one"], "outputs": ["act"],
         "options": {"activation": "tanh"}},
        {"name": "two", "type": "InnerProduct", "inputs": ["act"], "outputs": ["two"],
         "params": ["w", "b"], "options": {"outputs": 64}},
        {"name": "y", "type": "InnerProduct", "inputs": ["two"], "outputs": ["y"],
         "options": {"outputs": 4096}}]})";
    const std::vector<Context> hosts = contexts_like(Context("host"), 2);
    PlacedNet net = PlacedNet::from_json({{"a", hosts[0]}, {"b", hosts[1]}}, json, {},
                                         automatic({{"a", 300 << 10}, {"b", 4 * mib}}));
    Names first = net.parts().front().operators;
    CHECK(std::find(first.begin(), first.end(), "two") != first.end());
}

TEST_CASE("limits are checked before anything runs, with what is missing", "[automatic]") {
    const std::vector<Context> hosts = contexts_like(Context("host"), 2);
    const std::vector<NamedDevice> devices{{"a", hosts[0]}, {"b", hosts[1]}};
    check_error(ErrorKind::out_of_memory,
                {"operator 'table' fits on no device", "device 'a'", "device 'b'", "bytes",
                 "more than that may use"},
                [&] {
                    PlacedNet::from_json(devices, with_table(), training(),
                                         automatic({{"a", mib}, {"b", 2 * mib}}));
                });
    check_error(invalid, {"'c'", "nobody has bound"}, [&] {
        PlacedNet::from_json(devices, with_table(), training(), automatic({{"c", mib}}));
    });

    // The same without automatic placement: by prepare(), forward(), backward() and the solver.
    PlacementOptions how{.memory_limits = {{"a", 4 * mib}}};
    PlacedNet net = PlacedNet::from_json(devices, with_table("a", "b"), training(), how);
    net.initialize();
    feed_words(net, 1);
    const std::uint64_t planned = net.planned_peak_bytes().at("a");
    REQUIRE(planned > 4 * mib);
    const std::vector<std::string> words{"device 'a'", std::to_string(planned) + " bytes",
                                         std::to_string(planned - 4 * mib) + " more than the limit",
                                         "operator 'table'"};
    check_error(ErrorKind::out_of_memory, words, [&] { net.prepare(); });
    check_error(ErrorKind::out_of_memory, words, [&] { net.forward(); });
    check_error(ErrorKind::out_of_memory, words, [&] { net.backward(); });
    how.memory_limits = {{"a", 6 * mib}};
    PlacedNet larger = PlacedNet::from_json(devices, with_table("a", "b"), training(), how);
    larger.initialize();
    feed_words(larger, 1);
    larger.forward();
    larger.backward();
    check_error(ErrorKind::out_of_memory, {"device 'a'", "the limit of"},
                [&] { PlacedSolver(larger, {}); });
}
