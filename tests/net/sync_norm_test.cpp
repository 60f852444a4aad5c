// SPDX-License-Identifier: MIT
// Batch norms with "sync": statistics of the whole batch in a team whose ranks have one shard each.
// About the numbers of the whole batch on one device, and the same bits wherever a rank runs.
#include "net/support.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

constexpr std::size_t shard_batch = 2, picture = 3 * 5 * 5;
using Bits = std::map<std::string, Bytes>;

/// Two batch norms, one of images and one of rows, the former without scale.
std::string network(std::size_t batch, bool sync) {
    const std::string n = std::to_string(batch), how = sync ? "true" : "false";
    return R"({"inputs": [{"name": "data", "shape": [)" + n + R"(, 3, 5, 5]},
                          {"name": "target", "shape": [)" +
           n + R"(, 2]}],
      "outputs": ["y", "loss"],
      "operators": [
        {"name": "conv", "type": "Convolution2D", "inputs": ["data"], "outputs": ["a"],
         "options": {"channels_out": 4, "kernel": 3}},
        {"name": "images", "type": "BatchNorm", "inputs": ["a"], "outputs": ["b"],
         "options": {"affine": false, "sync": )" +
           how + R"(}},
        {"name": "relu", "type": "Activation", "inputs": ["b"], "outputs": ["c"],
         "options": {"activation": "relu"}},
        {"name": "hidden", "type": "InnerProduct", "inputs": ["c"], "outputs": ["d"],
         "options": {"outputs": 6}},
        {"name": "rows", "type": "BatchNorm", "inputs": ["d"], "outputs": ["e"],
         "options": {"sync": )" +
           how + R"(}},
        {"name": "last", "type": "InnerProduct", "inputs": ["e"], "outputs": ["y"],
         "options": {"outputs": 2}},
        {"name": "loss", "type": "MSELoss", "inputs": ["y", "target"], "outputs": ["loss"]}]})";
}

SolverOptions norm_solver(int shards) {
    return {
        .kind = SolverOptions::Kind::sgd, .learning_rate = 0.05, .momentum = 0.9, .shards = shards};
}

/// Pictures of a shard. The mean differs from shard to shard, and is large beside the deviation.
std::vector<float> pictures(int step, int shard) {
    std::vector<float> values =
        random_floats(shard_batch * picture, static_cast<unsigned>(step * 100 + shard));
    for (float& value : values) value += 3 + 0.5f * static_cast<float>(shard);
    return values;
}

std::vector<float> targets(int step, int shard) {
    return random_floats(shard_batch * 2, static_cast<unsigned>(step * 100 + shard + 50));
}

template <typename Make>
std::vector<float> of_all(int shards, Make&& make) {
    std::vector<float> all;
    for (int shard = 0; shard < shards; ++shard) {
        const std::vector<float> values = make(shard);
        all.insert(all.end(), values.begin(), values.end());
    }
    return all;
}

constexpr int steps = 3;

/// A team whose devices have a shard each, after some steps.
Bits train(const std::vector<Context>& devices, bool sync,
           std::map<std::string, std::vector<float>>* values = nullptr) {
    Team team(
        devices,
        [&](const Context& context, int) {
            return make_net(context, network(shard_batch, sync), training());
        },
        norm_solver(static_cast<int>(devices.size())));
    for (int step = 0; step < steps; ++step)
        team.step([&](int rank, int shard) {
            set_floats(team.net(rank), "data", pictures(step, shard));
            set_floats(team.net(rank), "target", targets(step, shard));
        });
    Bits first = all_bits(team.net(0));
    for (int rank = 1; rank < team.size(); ++rank) CHECK((all_bits(team.net(rank)) == first));
    first["loss"] = bits(team.net(0).output("loss"));
    if (values != nullptr) {
        for (const std::string& name : team.net(0).param_names())
            (*values)[name] = team.net(0).param(name).to_floats();
        (*values)["loss"] = team.net(0).output("loss").to_floats();
    }
    return first;
}

/// The same as one batch.
std::map<std::string, std::vector<float>> train_whole(const Context& device, int shards) {
    Net net = make_net(device, network(shard_batch * static_cast<std::size_t>(shards), false),
                       training());
    Solver solver(net, norm_solver(1));
    for (int step = 0; step < steps; ++step) {
        set_floats(net, "data", of_all(shards, [&](int shard) { return pictures(step, shard); }));
        set_floats(net, "target", of_all(shards, [&](int shard) { return targets(step, shard); }));
        solver.step();
    }
    std::map<std::string, std::vector<float>> values;
    for (const std::string& name : net.param_names()) values[name] = net.param(name).to_floats();
    values["loss"] = net.output("loss").to_floats();
    return values;
}

double worst_difference(const std::map<std::string, std::vector<float>>& a,
                        const std::map<std::string, std::vector<float>>& b) {
    double worst = 0;
    for (const auto& [name, values] : a)
        for (std::size_t i = 0; i < values.size(); ++i)
            worst = std::max(worst, std::abs(static_cast<double>(values[i]) - b.at(name).at(i)) /
                                        (1 + std::abs(static_cast<double>(values[i]))));
    return worst;
}

/// Contexts of so many shards on the first so many devices like this one.
std::vector<Context> contexts(const Context& device, std::size_t shards, std::size_t most) {
    std::vector<std::string> ids;
    for (const DeviceInfo& info : Context::devices())
        if (info.name == device.info().name && info.platform == device.info().platform &&
            ids.size() < most)
            ids.push_back(info.id);
    std::vector<Context> all;
    for (std::size_t i = 0; i < shards; ++i) all.emplace_back(ids[i * ids.size() / shards]);
    return all;
}

}  // namespace

TEST_CASE("batch norms take statistics of all shards of the batch", "[team]") {
    const std::size_t shards = GENERATE(3, 4);
    ON_EVERY_DEVICE(device) {
        INFO(shards << " shards");
        std::map<std::string, std::vector<float>> values, apart;
        const Bits one = train(contexts(device, shards, 1), true, &values);
        for (const std::size_t count : {2, 4}) {
            INFO(count << " devices");
            CHECK((train(contexts(device, shards, count), true) == one));
        }
        const auto whole = train_whole(device, static_cast<int>(shards));
        CHECK(worst_difference(whole, values) < 2e-5);
        train(contexts(device, shards, 1), false, &apart);
        CHECK(worst_difference(whole, apart) > 1e-2);
    }
}

TEST_CASE("one shard with sync has the bits of a batch norm without", "[team]") {
    ON_EVERY_DEVICE(device) {
        CHECK((train({device}, true) == train({device}, false)));
    }
}

TEST_CASE("statistics of all shards need a rank for each", "[team]") {
    const Context device("cpu"), other("cpu");
    const auto open = [](const Context& context, int) {
        return make_net(context, network(shard_batch, true), training());
    };
    check_error(ErrorKind::invalid_argument, {"'images'", "\"sync\"", "rank 0 has 2 shards"}, [&] {
        Team({device, other}, open, norm_solver(4));
    });
    Net net = open(device, 0);
    Solver solver(net, norm_solver(2));
    check_error(ErrorKind::invalid_argument, {"'images'", "a rank of its own", "2 shards"},
                [&] { solver.step(); });
}

TEST_CASE("a rank that does not come to batch norms is named", "[team]") {
    const std::vector<Context> devices{Context("cpu"), Context("cpu"), Context("cpu")};
    Team team(
        devices,
        [](const Context& context, int) {
            return make_net(context, network(shard_batch, true), training());
        },
        norm_solver(3));
    check_error(ErrorKind::not_found, {"rank 2", "no input 'nothing'"}, [&] {
        team.step([&](int rank, int shard) {
            if (rank == 2) team.net(rank).input("nothing");
            set_floats(team.net(rank), "data", pictures(0, shard));
            set_floats(team.net(rank), "target", targets(0, shard));
        });
    });
}
