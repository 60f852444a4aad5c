// SPDX-License-Identifier: MIT
// What programs see of the steps of a placed network: outputs of all shards, losses that are not
// finite, and what the memory of each device is for.
#include "net/placed_support.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

SolverOptions adam_in(int shards) {
    return {.shards = shards};
}

template <typename AnyNet>
void feed_poison(AnyNet& net) {
    feed(net, 50);
    std::vector<float> data = random_floats(4 * 3 * 8 * 8, 150);
    data[77] = std::numeric_limits<float>::infinity();
    net.set_input("data", data.data(), data.size() * sizeof(float));
}

/// Steps of whole batches; in the second shard of a bad one, or the only one, the loss is not
/// finite.
template <typename AnyNet, typename AnySolver>
void train_batches(AnyNet& net, AnySolver& solver, int shards, const std::vector<unsigned>& batches,
                   bool bad = false) {
    for (const unsigned batch : batches)
        for (int shard = 0; shard < shards; ++shard) {
            if (bad && shard == shards / 2)
                feed_poison(net);
            else
                feed(net, 10 * batch + static_cast<unsigned>(shard));
            solver.step();
        }
}

}  // namespace

TEST_CASE("outputs of all shards are kept", "[placed_steps]") {
    const int shards = GENERATE(1, 2, 5);
    ON_EVERY_DEVICE(device) {
        const std::string json = placed(residual, {{"conv2", "b"}, {"bn", "b"}});
        Net one = make_net(device, residual, training());
        PlacedNet two = PlacedNet::from_json(two_like(device), json, training());
        two.initialize();
        Solver solver(one, adam_in(shards));
        PlacedSolver placed_solver(two, adam_in(shards));
        const Tensor scores = placed_solver.output_of_batch("scores");
        const Tensor of_one_device = solver.output_of_batch("scores");
        const Tensor loss = placed_solver.output_of_batch("loss");
        CHECK(scores.shape() == Shape{4 * shards, 5});
        check_error(ErrorKind::not_found, {"scores", "score"},
                    [&] { placed_solver.output_of_batch("score"); });
        for (unsigned step = 0; step < 3; ++step) {
            std::vector<float> of_shards;
            for (unsigned shard = 0; shard < static_cast<unsigned>(shards); ++shard) {
                feed(one, 10 * step + shard);
                feed(two, 10 * step + shard);
                solver.step();
                placed_solver.step();
                const std::vector<float> own = one.output("scores").to_floats();
                of_shards.insert(of_shards.end(), own.begin(), own.end());
            }
            CHECK(scores.to_floats() == of_shards);
            CHECK(of_one_device.to_floats() == of_shards);
            CHECK(scores.context() == two.output("scores").context());
            CHECK(loss.shape() == one.output("loss").shape());
            CHECK(bits(loss) == bits(one.output("loss")));
        }
    }
}

TEST_CASE("a batch whose loss is not finite changes no part", "[placed_steps]") {
    const int shards = GENERATE(1, 4);
    const int accumulate = GENERATE(1, 2);
    NetOptions options = training();
    options.precision = GENERATE(Precision::fp32, Precision::fp16);  // with a loss scale
    if (shards > 1 && accumulate > 1) return;
    ON_EVERY_DEVICE(device) {
        INFO(shards << " shards, " << accumulate << " batches an update");
        const std::string json = placed(small_network, {{"hidden", "b"}, {"drop", "b"}});
        SolverOptions how = adam_in(shards);
        how.accumulate = accumulate;
        how.clip_norm = 1;
        how.guard_loss = true;
        how.loss_scale_steps = 2;
        Net one = make_net(device, small_network, options);
        PlacedNet two = PlacedNet::from_json(two_like(device), json, options);
        two.initialize();
        Solver solver(one, how);
        PlacedSolver placed_solver(two, how);
        train_batches(one, solver, shards, {0, 1, 2});
        train_batches(two, placed_solver, shards, {0, 1, 2});
        const auto before = bits_of_params(two);
        check_same(before, bits_of_params(one));
        check_error(invalid, {"call_off()", "are 0", "not 1"}, [&] { placed_solver.call_off(1); });

        train_batches(one, solver, shards, {3}, true);
        train_batches(two, placed_solver, shards, {3}, true);
        check_same(before, bits_of_params(two));  // with running statistics
        CHECK_FALSE(std::isfinite(two.output("loss").to_floats().at(0)));
        train_batches(one, solver, shards, {4});
        train_batches(two, placed_solver, shards, {4});
        check_same(before, bits_of_params(two));
        check_error(invalid, {"call_off()", "are 2", "not 1"}, [&] { placed_solver.call_off(1); });
        solver.call_off(2);
        placed_solver.call_off(2);
        CHECK(placed_solver.steps() == solver.steps());
        feed_poison(one);
        feed_poison(two);
        CHECK(two.first_nan() == one.first_nan());
        CHECK(two.first_nan() == "conv");
        feed(two, 3U);
        CHECK(two.first_nan().empty());

        // Dropout goes on with the random numbers of the batch after the bad one.
        train_batches(one, solver, shards, {4, 5, 6});
        train_batches(two, placed_solver, shards, {4, 5, 6});
        check_same(bits_of_params(one), bits_of_params(two));
        CHECK(placed_solver.steps() == solver.steps());
    }
    PlacedNet net = PlacedNet::from_json(two_like(Context("host")), small_network, training());
    net.initialize();
    PlacedSolver unguarded(net, adam_in(shards));
    check_error(invalid, {"guard_loss"}, [&] { unguarded.call_off(1); });
}

TEST_CASE("the first operator that makes no number may be in any part", "[placed_steps]") {
    ON_EVERY_DEVICE(device) {
        PlacedNet net = PlacedNet::from_json(
            two_like(device), placed(residual, {{"conv2", "b"}, {"bn", "b"}}), training());
        net.initialize();
        for (const char* const parameter : {"scores.1", "bn.3", "conv2.0", "conv1.0"}) {
            HostTensor values = net.read_param(parameter);
            reinterpret_cast<float*>(values.data.data())[0] =
                std::numeric_limits<float>::quiet_NaN();
            net.write_params({{parameter, values}}, true);
            feed(net, 1U);
            net.forward();
            const std::string name = parameter;
            CHECK(net.first_nan() == name.substr(0, name.find('.')));
        }
    }
}

TEST_CASE("memory is told by device and part", "[placed_steps]") {
    const int shards = GENERATE(1, 4);
    ON_EVERY_DEVICE(device) {
        const std::vector<NamedDevice> devices = two_like(device);
        PlacementOptions placement;
        placement.memory_limits["b"] = 123 << 20;
        PlacedNet net = PlacedNet::from_json(
            devices, placed(residual, {{"conv2", "b"}, {"bn", "b"}}), training(), placement);
        const SolverOptions how = adam_in(shards);
        const auto planned = net.planned_peak_bytes(&how);
        const std::vector<PlacedNet::DeviceMemory> all = net.plan_memory(&how);
        REQUIRE(all.size() == 2);
        CHECK(all[0].parts.size() == 2);  // conv1 and relu, and what follows the batch norm
        CHECK(all[1].parts.size() == 1);
        CHECK(all[1].limit_bytes == 123 << 20);
        for (const PlacedNet::DeviceMemory& each : all) {
            CHECK(each.peak_bytes == planned.at(each.name));
            CHECK(each.border_bytes > 0);
            std::uint64_t sum = each.border_bytes;
            for (const PlacedNet::PartMemory& part : each.parts) {
                CHECK(net.parts().at(part.part).device == each.name);
                CHECK(part.map.peak_bytes > 0);
                // Two, one and no parts follow.
                const int in_flight = 2 * (2 - static_cast<int>(part.part)) + 1;
                CHECK(part.working_sets == std::min(in_flight, shards));
                sum += part.bytes;
            }
            CHECK(sum == each.peak_bytes);
        }
        for (const NamedDevice& each : devices) CHECK(each.context.memory().live == 0);
    }
}
