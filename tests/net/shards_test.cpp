// SPDX-License-Identifier: MIT
// Shards: a batch in parts, each computed as a batch of its own. What is summed over them has the
// bits of separate nets whose results are added in the tree by hand.
#include "net/support.hpp"
#include "net/two_layers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

using Floats = std::vector<float>;

/// The sum over parts[begin, end): both halves, cut after the largest power of two below their
/// number.
Floats tree_sum(const std::vector<Floats>& parts, std::size_t begin, std::size_t end) {
    if (end - begin == 1) return parts[begin];
    std::size_t half = 1;
    while (2 * half < end - begin) half *= 2;
    Floats left = tree_sum(parts, begin, begin + half);
    const Floats right = tree_sum(parts, begin + half, end);
    for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
    return left;
}

Floats tree_mean(const std::vector<Floats>& parts) {
    Floats mean = tree_sum(parts, 0, parts.size());
    const auto share = static_cast<float>(1.0 / static_cast<double>(parts.size()));
    for (float& value : mean) value *= share;
    return mean;
}

bool same_bits(const Floats& a, const Floats& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// What a step leaves, by name: gradients, running statistics, the loss.
std::map<std::string, Floats> results(Net& net) {
    std::map<std::string, Floats> all;
    for (const std::string& name : net.gradient_names())
        all["gradient of " + name] = net.gradient(name).to_floats();
    for (const std::string& name : net.changed_by_forward())
        all[name] = net.param(name).to_floats();
    all["loss"] = net.output("loss").to_floats();
    return all;
}

SolverOptions sgd(int shards, double rate = 0.05) {
    return {.kind = SolverOptions::Kind::sgd, .learning_rate = rate, .shards = shards};
}

}  // namespace

TEST_CASE("sums over shards have the bits of separate nets added in the tree", "[shards]") {
    const int shards = GENERATE(2, 3, 4, 7);
    ON_EVERY_DEVICE(device) {
        Net net = make_net(device, small_network, training(4));
        Solver solver(net, sgd(shards));
        for (unsigned batch = 0; batch < 2; ++batch) {
            const unsigned first = batch * static_cast<unsigned>(shards);
            std::map<std::string, std::vector<Floats>> apart;
            for (unsigned shard = 0; shard < static_cast<unsigned>(shards); ++shard) {
                Net one = make_net(device, small_network, training(4));
                const Solver of_one(one, sgd(1));
                // Dropout's random numbers are those of this forward run since the first.
                feed_small_network(one, first + shard);
                for (unsigned before = 0; before < first + shard; ++before) one.forward();
                copy_params(net, one);
                one.forward();
                one.backward();
                for (auto& [name, values] : results(one)) apart[name].push_back(values);
            }
            const auto before = all_bits(net);
            for (unsigned shard = 0; shard < static_cast<unsigned>(shards); ++shard) {
                CHECK((all_bits(net) == before));
                feed_small_network(net, first + shard);
                solver.step();
            }
            CHECK(solver.steps() == batch + 1);
            CHECK((all_bits(net) != before));
            for (auto& [name, values] : results(net)) {
                INFO(name << " of batch " << batch);
                CHECK(same_bits(values, tree_mean(apart.at(name))));
            }
        }
    }
}

TEST_CASE("two shards update as two accumulated batches do, bit for bit", "[shards]") {
    const SolverOptions::Kind kind = GENERATE(SolverOptions::Kind::sgd, SolverOptions::Kind::adam);
    ON_EVERY_DEVICE(device) {
        SolverOptions options{.kind = kind, .clip_norm = 0.2, .accumulate = 2, .average = 0.9};
        Net batches = make_net(device, TwoLayers::json(4), training());
        Solver of_batches(batches, options);
        options.accumulate = 1;
        options.shards = 2;
        Net parts = make_net(device, TwoLayers::json(4), training());
        Solver of_parts(parts, options);
        for (unsigned step = 0; step < 6; ++step) {
            for (Net* net : {&batches, &parts}) feed_two_layers(*net, step);
            of_batches.step();
            of_parts.step();
        }
        CHECK(of_parts.steps() == 3);
        CHECK((all_bits(parts) == all_bits(batches)));
    }
}

TEST_CASE("shards of a network without batch norm are about the whole batch", "[shards]") {
    ON_EVERY_DEVICE(device) {
        Net whole = make_net(device, TwoLayers::json(12), training());
        Net parts = make_net(device, TwoLayers::json(4), training());
        Solver of_whole(whole, sgd(1)), of_parts(parts, sgd(3));
        for (unsigned step = 0; step < 4; ++step) {
            const Floats data = random_floats(36, step), target = random_floats(24, 9 + step);
            set_floats(whole, "data", data);
            set_floats(whole, "target", target);
            of_whole.step();
            for (int shard = 0; shard < 3; ++shard) {
                set_floats(parts, "data",
                           {data.begin() + 12 * shard, data.begin() + 12 * (shard + 1)});
                set_floats(parts, "target",
                           {target.begin() + 8 * shard, target.begin() + 8 * (shard + 1)});
                of_parts.step();
            }
            check_close(parts.output("loss").to_floats(), doubles(whole.output("loss").to_floats()),
                        1e-5);
        }
        for (const std::string& name : whole.param_names())
            check_close(parts.param(name).to_floats(), doubles(whole.param(name).to_floats()),
                        1e-5);
    }
}

TEST_CASE("a loss that is not finite in one shard changes nothing", "[shards]") {
    const unsigned bad = GENERATE(0u, 1u, 2u);
    ON_EVERY_DEVICE(device) {
        SolverOptions options = sgd(3);
        options.guard_loss = true;
        Net net = make_net(device, TwoLayers::json(4), training());
        Solver solver(net, options);
        for (unsigned shard = 0; shard < 3; ++shard) {
            feed_two_layers(net, shard);
            solver.step();
        }
        const auto before = all_bits(net);
        for (unsigned shard = 0; shard < 3; ++shard) {
            feed_two_layers(net, shard);
            if (shard == bad)
                set_floats(net, "data", Floats(12, std::numeric_limits<float>::quiet_NaN()));
            solver.step();
        }
        CHECK(std::isnan(net.output("loss").to_floats().at(0)));
        CHECK((all_bits(net) == before));
        solver.call_off(1);
        CHECK(solver.steps() == 1);
        for (unsigned shard = 0; shard < 3; ++shard) {
            feed_two_layers(net, shard);
            solver.step();
        }
        CHECK(solver.steps() == 2);
        CHECK((all_bits(net) != before));
    }
}

TEST_CASE("a batch that is given up leaves no trace of its shards", "[shards]") {
    ON_EVERY_DEVICE(device) {
        const auto run = [&](bool gives_up) {
            Net net = make_net(device, small_network, training(2));
            Solver solver(net, sgd(3));
            if (gives_up) {
                feed_small_network(net, 90);
                CHECK(solver.step_if([] { return true; }));
                const auto before = all_bits(net);
                feed_small_network(net, 91);
                CHECK(!solver.step_if([] { return false; }));
                CHECK((all_bits(net) == before));
            } else {
                feed_small_network(net, 90);
                for (int i = 0; i < 3; ++i) net.forward();  // random numbers of a batch
                Net fresh = make_net(device, small_network, training(2));
                copy_params(fresh, net);
            }
            for (unsigned shard = 0; shard < 3; ++shard) {
                feed_small_network(net, shard);
                solver.step();
            }
            CHECK(solver.steps() == 1);
            return all_bits(net);
        };
        CHECK((run(true) == run(false)));
    }
}

TEST_CASE("a checkpoint is of whole batches, and of its number of shards", "[shards]") {
    const Context& device = test_devices().front();
    const Folder folder;
    const std::string path = folder.file("run.h5");
    Net net = make_net(device, TwoLayers::json(4), training());
    Solver solver(net, sgd(2));
    const auto step = [](Net& on, Solver& by, unsigned number) {
        feed_two_layers(on, number);
        by.step();
    };
    step(net, solver, 0);
    check_error(invalid, {"1 of its 2 shards", "between batches"},
                [&] { solver.save_checkpoint(path); });
    step(net, solver, 1);
    solver.save_checkpoint(path);

    Net again = make_net(device, TwoLayers::json(4), training(7));
    Solver goes_on(again, sgd(2));
    step(again, goes_on, 5);  // the beginning of a batch that the checkpoint replaces
    goes_on.load_checkpoint(path);
    for (unsigned shard = 2; shard < 4; ++shard) {
        step(net, solver, shard);
        step(again, goes_on, shard);
    }
    CHECK((all_bits(net) == all_bits(again)));

    Net other = make_net(device, TwoLayers::json(4), training());
    Solver whole(other, sgd(1));
    check_error(invalid, {"run.h5", "shards 2", "shards 1"}, [&] { whole.load_checkpoint(path); });
    whole.save_checkpoint(path);
    check_error(invalid, {"shards 1", "shards 2"}, [&] { goes_on.load_checkpoint(path); });
}

TEST_CASE("options of shards are checked, and their memory is known before", "[shards]") {
    const Context& device = test_devices().front();
    Net net = make_net(device, TwoLayers::json(4), training());
    check_error(invalid, {"shards", "0", "at least 1"}, [&] { Solver(net, sgd(0)); });
    SolverOptions both = sgd(2);
    both.accumulate = 2;
    check_error(invalid, {"shards is 2", "accumulate is 2"}, [&] { Solver(net, both); });
    Net no_training = make_net(device, TwoLayers::json(4), with_mode(Mode::evaluation));
    check_error(invalid, {"training mode"}, [&] { Solver(no_training, sgd(2)); });

    const SolverOptions one = sgd(1), five = sgd(5);
    const MemoryMap without = net.plan_memory(&one), with = net.plan_memory(&five);
    // Four parameters, each in multiples of 64 floats; two sums wait for the others at most.
    CHECK(with.peak_bytes - without.peak_bytes == 2 * 4 * 64 * sizeof(float));
    CHECK(std::any_of(with.entries.begin(), with.entries.end(),
                      [](const MemoryMap::Entry& entry) { return entry.name == "shard sums"; }));
}
