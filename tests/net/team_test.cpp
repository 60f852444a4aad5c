// SPDX-License-Identifier: MIT
// Teams: the shards of a batch on several devices. Devices of a kind train the bits of one; a
// device that fails ends the call with its name, and nobody hangs.
#include "net/support.hpp"
#include "net/two_layers.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <set>
#include <thread>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Bits = std::map<std::string, Bytes>;

SolverOptions adam(int shards) {
    return {.learning_rate = 0.01, .clip_norm = 1, .shards = shards};
}

Net open_small(const Context& context, int) {
    return make_net(context, small_network, training(4));
}

unsigned number(int step, int shard) {
    return static_cast<unsigned>(step * 100 + shard);
}

/// Parameters and the loss after three batches of a team.
Bits bits_of_team(const std::vector<Context>& devices, int shards,
                  const TeamOptions& options = {}) {
    Team team(devices, open_small, adam(shards), options);
    for (int step = 0; step < 3; ++step)
        team.step(
            [&](int rank, int shard) { feed_small_network(team.net(rank), number(step, shard)); });
    Bits first = all_bits(team.net(0));
    for (int rank = 1; rank < team.size(); ++rank) CHECK((all_bits(team.net(rank)) == first));
    first["loss"] = bits(team.net(0).output("loss"));
    return first;
}

Bits bits_of_one(const Context& device, int shards) {
    Net net = open_small(device, 0);
    Solver solver(net, adam(shards));
    for (int step = 0; step < 3; ++step)
        for (int shard = 0; shard < shards; ++shard) {
            feed_small_network(net, number(step, shard));
            solver.step();
        }
    Bits all = all_bits(net);
    all["loss"] = bits(net.output("loss"));
    return all;
}

Net open_two_layers(const Context& context, int) {
    return make_net(context, TwoLayers::json(4), training());
}

}  // namespace

TEST_CASE("devices of a kind train the bits of one device", "[team]") {
    const int shards = GENERATE(4, 7);
    ON_EVERY_DEVICE(device) {
        const Bits one = bits_of_one(device, shards);
        for (const std::size_t count : {1, 2, 4}) {
            INFO(count << " devices");
            CHECK((bits_of_team(contexts_like(device, count), shards) == one));
        }
    }
}

TEST_CASE("a shard on each device trains the bits of one device", "[team]") {
    // Its gradients wait for those of others where they are.
    ON_EVERY_DEVICE(device) {
        for (const int count : {2, 3, 5}) {
            INFO(count << " devices");
            CHECK((bits_of_team(contexts_like(device, static_cast<std::size_t>(count)), count) ==
                   bits_of_one(device, count)));
        }
    }
}

TEST_CASE("a team that ends keeps nothing of what it was given", "[team]") {
    const auto given = std::make_shared<int>();
    {
        Team team(contexts_like(Context("cpu"), 2), open_small, adam(2));
        for (int step = 0; step < 2; ++step)
            team.step([given, &team, step](int rank, int shard) {
                feed_small_network(team.net(rank), number(step, shard));
            });
    }
    CHECK(given.use_count() == 1);
}

TEST_CASE("gradients are clipped alike by any number of devices", "[team]") {
    ON_EVERY_DEVICE(device) {
        const auto train = [&](std::size_t count, double clip_norm) {
            SolverOptions options = adam(4);
            options.kind = SolverOptions::Kind::sgd;
            options.clip_norm = clip_norm;
            Team team(contexts_like(device, count), open_small, options);
            for (int step = 0; step < 3; ++step)
                team.step([&](int rank, int shard) {
                    feed_small_network(team.net(rank), number(step, shard));
                });
            return all_bits(team.net(static_cast<int>(count) - 1));
        };
        const Bits one = train(1, 0.01);
        CHECK((train(1, 0) != one));
        for (const std::size_t count : {2, 4}) {
            INFO(count << " devices");
            CHECK((train(count, 0.01) == one));
        }
    }
}

TEST_CASE("sums travel through plain memory where none is pinned, with the same bits", "[team]") {
    const auto way = [](const Team& team) { return team.notes().at(0); };
    ON_EVERY_DEVICE(device) {
        const std::vector<Context> devices = contexts_like(device, 2);
        const Team pinned(devices, open_two_layers, adam(2));
        CHECK(way(pinned).find("through pinned host memory") != std::string::npos);
        const Bits bits = bits_of_team(devices, 4);
        const Variable off("DLPRIM_PINNED", "0");
        const Team plain(devices, open_two_layers, adam(2));
        CHECK(way(plain).find("through host memory") != std::string::npos);
        CHECK((bits_of_team(devices, 4) == bits));
    }
    const Variable wrong("DLPRIM_PINNED", "no");
    check_error(invalid, {"DLPRIM_PINNED", "'no'"}, [] {
        Team({Context("cpu"), Context("cpu")}, open_two_layers, adam(2));
    });
}

TEST_CASE("all GPUs are opened by one word", "[team]") {
    std::size_t gpus = 0;
    for (const DeviceInfo& info : Context::devices()) gpus += info.kind == DeviceKind::gpu ? 1 : 0;
    if (gpus > 0) {
        CHECK(open_devices("gpus").size() == gpus);
        CHECK(open_devices("cpu,gpus").size() == 1 + gpus);
        return;
    }
    for (const char* names : {"gpus", "cpu,gpus"})
        check_error(ErrorKind::not_found, {"no GPU for 'gpus'", "dlprim_doctor"},
                    [&] { open_devices(names); });
}

TEST_CASE("uneven devices compute uneven numbers of shards, and the same bits", "[team]") {
    ON_EVERY_DEVICE(device) {
        const Bits one = bits_of_one(device, 5);
        CHECK((bits_of_team(contexts_like(device, 2), 5, {{4, 1}}) == one));
        CHECK((bits_of_team(contexts_like(device, 3), 5, {{1, 1, 3}}) == one));
    }
}

TEST_CASE("states that are cut over devices train the same bits", "[team]") {
    const SolverOptions::Kind kind =
        GENERATE(SolverOptions::Kind::sgd, SolverOptions::Kind::adam, SolverOptions::Kind::adamw);
    ON_EVERY_DEVICE(device) {
        const Folder folder;
        SolverOptions solver = adam(4);
        solver.kind = kind;
        solver.weight_decay = 0.01;
        if (kind == SolverOptions::Kind::sgd) solver.momentum = 0.9;
        solver.average = 0.99;
        NetOptions net_options = training(4);
        if (kind == SolverOptions::Kind::adam) {  // with a loss scale, which grows
            net_options.precision = Precision::fp16;
            solver.loss_scale = 256;
            solver.loss_scale_steps = 2;
        }
        const auto open = [&](const Context& context, int) {
            return make_net(context, small_network, net_options);
        };
        const auto train = [&](std::size_t count, bool sharded, const std::string& resume) {
            TeamOptions options{.sharded_states = sharded};
            Team team(contexts_like(device, count), open, solver, options);
            int step = 0;
            if (!resume.empty()) {
                team.solver(0).load_checkpoint(resume);
                team.share_state();
                step = 2;
            }
            for (; step < 4; ++step) {
                team.step([&](int rank, int shard) {
                    feed_small_network(team.net(rank), number(step, shard));
                });
                if (step == 1)
                    team.solver(0).save_checkpoint(folder.file(std::to_string(count) + ".h5"));
            }
            Bits all = all_bits(team.net(0));
            for (int rank = 1; rank < team.size(); ++rank) CHECK((all_bits(team.net(rank)) == all));
            if (kind == SolverOptions::Kind::adam)
                CHECK(team.solver(1 % team.size()).loss_scale() == 1024);
            team.solver(0).save_checkpoint(folder.file("end.h5"));
            for (const auto& [name, tensor] : load_tensors(folder.file("end.h5")))
                all["checkpoint " + name] = tensor.data;
            team.solver(0).use_averages();
            for (const auto& [name, bytes] : all_bits(team.net(0))) all["average " + name] = bytes;
            return all;
        };
        const Bits one = train(1, false, "");
        for (const std::size_t count : {2, 3}) {
            INFO(count << " devices");
            CHECK((train(count, true, "") == one));
        }
        // Checkpoints fit any number of devices, with whole states and with parts.
        CHECK((train(2, true, folder.file("1.h5")) == one));
        CHECK((train(3, true, folder.file("2.h5")) == one));
        CHECK((train(1, false, folder.file("3.h5")) == one));
    }
}

TEST_CASE("states that cannot be cut are an error", "[team]") {
    const Context device("cpu");
    TeamOptions options{.sharded_states = true};
    check_error(invalid, {"too few parameters", "5 parts", "whole"},
                [&] { Team(contexts_like(device, 5), open_two_layers, adam(5), options); });
    SolverOptions part = adam(2);
    part.state_parts = 2;
    Net net = open_two_layers(device, 0);
    Solver solver(net, part);
    check_error(invalid, {"needs a team"}, [&] { solver.step(); });
    part.state_part = 2;
    check_error(invalid, {"no part 2 of 2"}, [&] { Solver(net, part); });
}

TEST_CASE("a rank with a part of the state takes less memory", "[team]") {
    Net net = open_small(Context("cpu"), 0);
    SolverOptions whole = adam(2), part = whole;
    part.state_parts = 2;
    const auto bytes = [&](const SolverOptions& options) {
        std::uint64_t all = 0;
        for (const MemoryMap::Entry& entry : net.plan_memory(&options).entries)
            if (entry.name == "states") all += entry.bytes;
        return all;
    };
    CHECK(bytes(part) < bytes(whole) * 3 / 5);
}

TEST_CASE("gradients leave in ranges of any size, and the same bits", "[team]") {
    // Ranges of one parameter, pieces of a large one, all in one; after more than one shard of a
    // rank; and the first step, whose backward part is not proven, beside later ones.
    ON_EVERY_DEVICE(device) {
        const Bits one = bits_of_one(device, 5);
        for (const std::uint64_t bytes : {256, 4096, 1 << 20}) {
            INFO("ranges of " << bytes << " bytes");
            TeamOptions options{.range_bytes = bytes};
            CHECK((bits_of_team(contexts_like(device, 2), 5, options) == one));
        }
    }
    TeamOptions none{.range_bytes = 0};
    check_error(invalid, {"ranges of 0 bytes"}, [&] {
        Team({Context("cpu"), Context("cpu")}, open_two_layers, adam(2), none);
    });
}

TEST_CASE("devices that add up different sums are an error", "[team]") {
    const Context device("cpu"), other("cpu");
    const auto open = [](const Context& context, int rank) {
        return make_net(context, TwoLayers::json(rank + 4), training());
    };
    Team same({device, other}, open, adam(2));  // a loss is one number for any batch
    same.step([&](int rank, int) {
        set_floats(same.net(rank), "data", random_floats(3 * (rank + 4), 1));
        set_floats(same.net(rank), "target", random_floats(2 * (rank + 4), 2));
    });
    // A loss for each output has more elements where the batch is larger.
    Team team(
        {device, other},
        [](const Context& context, int rank) {
            std::string json = TwoLayers::json(rank + 4);
            json.insert(json.rfind(", \"inputs\""), R"(, "options": {"reduce": "none"})");
            return make_net(context, json, training());
        },
        adam(2));
    check_error(ErrorKind::device, {"rank 0", "rank 1", "elements", "the same steps"}, [&] {
        team.step([&](int rank, int) {
            set_floats(team.net(rank), "data", random_floats(3 * (rank + 4), 1));
            set_floats(team.net(rank), "target", random_floats(2 * (rank + 4), 2));
        });
    });
}

TEST_CASE("sums travel by each way with the same bits, and notes say which", "[team]") {
    struct Way {
        const char *peers, *pinned, *note;
    };
    const Bits one = bits_of_one(Context("cpu"), 5);
    for (const Way& way : {Way{"1", "1", "travel through memory that the devices share"},
                           Way{"0", "1", "travel through pinned host memory"},
                           Way{"0", "0", "travel through host memory"}}) {
        const Variable peers("DLPRIM_PEER", way.peers), pinned("DLPRIM_PINNED", way.pinned);
        const std::vector<Context> devices = contexts_like(Context("cpu"), 3);
        CHECK((bits_of_team(devices, 5) == one));
        std::string notes;
        const Team team(devices, open_small, adam(5));
        for (const std::string& note : team.notes()) notes += note + "\n";
        INFO(notes);
        CHECK(notes.find(way.note) != std::string::npos);
        CHECK(notes.find("do not reach") == std::string::npos);
    }
}

TEST_CASE("sums wait in several segments where memory of peers comes in small pieces", "[team]") {
    // 16 MiB of gradients, in pieces of 5 MiB: one parameter is larger than a piece.
    constexpr const char* large = R"({
      "inputs": [{"name": "data", "shape": [2, 1024]}, {"name": "label", "shape": [2], "dtype": "int"}],
      "outputs": ["loss"],
      "operators": [
        {"name": "a", "type": "InnerProduct", "inputs": ["data"], "outputs": ["a"],
         "options": {"outputs": 1024, "activation": "relu"}},
        {"name": "b", "type": "InnerProduct", "inputs": ["a"], "outputs": ["b"],
         "options": {"outputs": 2048, "activation": "relu"}},
        {"name": "c", "type": "InnerProduct", "inputs": ["b"], "outputs": ["c"],
         "options": {"outputs": 500}},
        {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["c", "label"], "outputs": ["loss"]}]})";
    const auto train = [&](const char* peers, const char* mib) {
        const Variable reach("DLPRIM_PEER", peers), most("DLPRIM_PEER_MIB", mib);
        Team team(
            contexts_like(Context("cpu"), 2),
            [&](const Context& context, int) { return make_net(context, large, training()); },
            adam(3));
        for (int step = 0; step < 2; ++step)
            team.step([&](int rank, int shard) {
                set_floats(team.net(rank), "data", random_floats(2 * 1024, number(step, shard)));
                const std::vector<std::int32_t> labels{7, 300 + shard};
                team.net(rank).set_input("label", labels.data(), sizeof(labels[0]) * 2);
            });
        return all_bits(team.net(1));
    };
    const Bits through_host = train("0", "1");
    for (const char* mib : {"5", "9", "100"}) {
        INFO("pieces of " << mib << " MiB");
        CHECK((train("1", mib) == through_host));
    }
    check_error(ErrorKind::invalid_argument, {"DLPRIM_PEER_MIB", "'few'", "at least 1"},
                [&] { train("1", "few"); });
}

TEST_CASE("devices of several kinds train together", "[team]") {
    std::vector<Context> devices;
    std::set<std::string> kinds;
    for (const Context& device : test_devices())
        if (kinds.insert(device.info().platform + device.info().name).second)
            devices.push_back(device);
    if (devices.size() < 2) return;
    const int shards = static_cast<int>(devices.size()) + 1;
    const auto train = [&] {
        Team team(devices, open_two_layers, adam(shards));
        for (int step = 0; step < 4; ++step)
            team.step(
                [&](int rank, int shard) { feed_two_layers(team.net(rank), number(step, shard)); });
        Bits first = all_bits(team.net(0));
        for (int rank = 1; rank < team.size(); ++rank) CHECK((all_bits(team.net(rank)) == first));
        return first;
    };
    const Bits found = train();
    CHECK((train() == found));
    Net net = open_two_layers(devices[0], 0);
    Solver solver(net, adam(shards));
    for (int step = 0; step < 4; ++step)
        for (int shard = 0; shard < shards; ++shard) {
            feed_two_layers(net, number(step, shard));
            solver.step();
        }
    for (const auto& [name, bytes] : found) {
        INFO("parameter " << name);
        std::vector<float> values(bytes.size() / sizeof(float));
        std::memcpy(values.data(), bytes.data(), bytes.size());
        check_close(values, doubles(net.param(name).to_floats()), 1e-4);
    }
}

TEST_CASE("a team goes on from a checkpoint of one device", "[team]") {
    const Context device("cpu");
    const Folder folder;
    const auto step = [](Team& team, int number_of_step) {
        team.step([&](int rank, int shard) {
            feed_small_network(team.net(rank), number(number_of_step, shard));
        });
    };
    Team one({device}, open_small, adam(4));
    step(one, 0);
    one.solver(0).save_checkpoint(folder.file("run.h5"));
    step(one, 1);

    Team two(contexts_like(device, 2), open_small, adam(4));
    two.solver(0).load_checkpoint(folder.file("run.h5"));
    two.share_state();
    step(two, 1);
    CHECK((all_bits(two.net(1)) == all_bits(one.net(0))));
    CHECK(two.solver(1).steps() == 2);
}

TEST_CASE("a team is checked before it works", "[team]") {
    const Context device("cpu"), other("cpu");
    check_error(invalid, {"2 devices and 1 shard", "\"shards\" to 2"}, [&] {
        Team({device, other}, open_two_layers, adam(1));
    });
    check_error(invalid, {"given twice"}, [&] {
        Team({device, device}, open_two_layers, adam(2));
    });
    const auto open_wider = [](const Context& context, int rank) {
        std::string json = TwoLayers::json(4);
        if (rank > 0) json.replace(json.find("\"outputs\": 5"), 12, "\"outputs\": 4");
        return make_net(context, json, training());
    };
    check_error(invalid, {"the same net", "rank 0", "'first.0' of [5, 3]", "rank 1", "[4, 3]"},
                [&] {
                    Team({device, other}, open_wider, adam(2));
                });
    check_error(invalid, {"'cpu,'", "lacks a device"}, [] { open_devices("cpu,"); });
    check_error(invalid, {"needs a device"}, [&] { Team({}, open_two_layers, adam(2)); });
    check_error(invalid, {"given 5 shards in all", "has 4"}, [&] {
        Team({device, other}, open_two_layers, adam(4), {{3, 2}});
    });
    // The sum of these is 4 for who counts by 32 bits.
    check_error(invalid, {"given 4294967300 shards in all", "has 4"}, [&] {
        Team({device, other, Context("cpu")}, open_two_layers, adam(4),
             {{2147483647, 2147483647, 6}});
    });
    check_error(invalid, {"given for 1 devices"}, [&] {
        Team({device, other}, open_two_layers, adam(4), {{4}});
    });
    check_error(invalid, {"device 1", "0 shards"}, [&] {
        Team({device, other}, open_two_layers, adam(4), {{4, 0}});
    });
}

TEST_CASE("a device that fails is named, and the others do not wait for it", "[team]") {
    const std::vector<Context> devices{Context("cpu"), Context("cpu"), Context("cpu")};
    const int bad = GENERATE(0, 1, 2);
    Team team(devices, open_two_layers, adam(3));
    const std::string name = "rank " + std::to_string(bad);
    const auto fails = [&] {
        team.step([&](int rank, int shard) {
            if (rank == bad) team.net(rank).input("nothing");
            feed_two_layers(team.net(rank), number(0, shard));
        });
    };
    check_error(ErrorKind::not_found, {name, "no input 'nothing'"}, fails);
    check_error(ErrorKind::not_found, {name}, [&] { team.call_off(1); });
}

TEST_CASE("a device that does not answer ends the step after the deadline", "[team]") {
    const std::vector<Context> devices{Context("cpu"), Context("cpu")};
    Team team(devices, open_two_layers, adam(2), {{}, 0.3});
    std::promise<void> ended, returned;
    check_error(ErrorKind::device, {"rank 1", "0.3 seconds"}, [&] {
        team.step([&](int rank, int shard) {
            if (rank == 1) ended.get_future().wait();
            feed_two_layers(team.net(rank), number(0, shard));
            if (rank == 1) returned.set_value();
        });
    });
    ended.set_value();
    returned.get_future().wait();  // it still uses what the step was given
}

TEST_CASE("random delays change no bits", "[team]") {
    const Context device("cpu");
    const auto train = [&](bool delays) {
        TeamOptions options{.range_bytes = 64};
        Team team(contexts_like(device, 3), open_two_layers, adam(5), options);
        std::atomic<unsigned> state{1};
        for (int step = 0; step < 100; ++step)
            team.step([&](int rank, int shard) {
                const unsigned random = state = state * 1664525u + 1013904223u;
                if (delays) std::this_thread::sleep_for(std::chrono::microseconds(random >> 22));
                feed_two_layers(team.net(rank), number(step, shard));
            });
        return all_bits(team.net(2));
    };
    CHECK((train(true) == train(false)));
}
