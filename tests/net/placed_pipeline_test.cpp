// SPDX-License-Identifier: MIT
// Networks on several devices whose parts work at once on the shards of a batch: they train to the
// bits of one device, whatever the shards and the cuts, and stop when a device fails.
#include "net/placed_support.hpp"

#include "api/placement/pipeline_order.hpp"

#include <algorithm>
#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

SolverOptions adam(int shards) {
    SolverOptions options;
    options.weight_decay = 0.01;
    options.shards = shards;
    return options;
}

/// Trains the network on one device and on several, and compares what both have made.
void check_training(Net& one, PlacedNet& placed_net, const SolverOptions& how, unsigned steps) {
    Solver solver(one, how);
    PlacedSolver placed_solver(placed_net, how);
    for (unsigned step = 0; step < steps; ++step) {
        solver.set_learning_rate(1e-2 / (step + 1));
        placed_solver.set_learning_rate(1e-2 / (step + 1));
        for (unsigned shard = 0; shard < static_cast<unsigned>(how.shards); ++shard) {
            feed(one, 100 * step + shard);
            feed(placed_net, 100 * step + shard);
            solver.step();
            placed_solver.step();
        }
        INFO("step " << step);
        for (const std::string& loss : one.loss_names())
            CHECK((bits(one.output(loss)) == bits(placed_net.output(loss))));
        for (const std::string& name : one.param_names())
            if (one.is_trainable(name))
                CHECK((bits(one.gradient(name)) == bits(placed_net.gradient(name))));
    }
    CHECK(placed_solver.steps() == solver.steps());
    check_same(bits_of_params(one), bits_of_params(placed_net));
}

}  // namespace

TEST_CASE("parts that work at once train to the bits of one device", "[placed_pipeline]") {
    const int shards = GENERATE(1, 2, 3, 4, 8);
    ON_EVERY_DEVICE(device) {
        for (const Example& example : examples()) {
            const std::string json = placed(example.json, example.device_of);
            INFO(shards << " shards, " << json);
            Net one = make_net(device, example.json, training());
            PlacedNet two = PlacedNet::from_json(two_like(device), json, training());
            two.initialize();
            check_training(one, two, adam(shards), 3);
        }
    }
}

TEST_CASE("orders of tasks end, and keep to the shards in flight", "[placed_pipeline]") {
    const std::vector<std::vector<std::size_t>> chains{
        {0}, {0, 1}, {0, 1, 2, 3}, {0, 1, 0}, {0, 1, 0, 1, 0}, {0, 1, 2, 0, 2, 1}};
    for (const std::vector<std::size_t>& device_of : chains) {
        for (const int shards : {1, 2, 3, 8, 17}) {
            const int parts = static_cast<int>(device_of.size());
            INFO(parts << " parts, " << shards << " shards");
            std::vector<std::vector<PipelineTask>> left = pipeline_order(device_of, shards);
            // Devices run their tasks as soon as they can.
            std::vector<int> forwards(device_of.size()), backwards = forwards;
            for (bool any = true; any;) {
                any = false;
                for (std::size_t device = 0; device < left.size(); ++device) {
                    std::vector<PipelineTask>& tasks = left[device];
                    if (tasks.empty()) continue;
                    const PipelineTask task = tasks.front();
                    const auto part = static_cast<std::size_t>(task.part);
                    REQUIRE(device_of[part] == device);
                    const bool is_first = task.backward ? task.part + 1 == parts : part == 0;
                    const std::vector<int>& before = task.backward ? backwards : forwards;
                    if (!is_first && before[task.backward ? part + 1 : part - 1] <= task.shard)
                        continue;
                    CHECK(task.shard == (task.backward ? backwards : forwards)[part]++);
                    CHECK(backwards[part] <= forwards[part]);
                    CHECK(forwards[part] - backwards[part] <=
                          shards_in_flight(task.part, parts, shards));
                    tasks.erase(tasks.begin());
                    any = true;
                }
            }
            for (const auto& tasks : left) CHECK(tasks.empty());
            for (std::size_t part = 0; part < device_of.size(); ++part)
                CHECK(backwards[part] == shards);
        }
    }
}

TEST_CASE("two parts take turns after the first shards", "[placed_pipeline]") {
    const auto orders = pipeline_order({0, 1}, 4);
    REQUIRE(orders.size() == 2);
    const auto text = [](const std::vector<PipelineTask>& tasks) {
        std::string all;
        for (const PipelineTask& task : tasks)
            all += (task.backward ? "B" : "F") + std::to_string(task.shard);
        return all;
    };
    CHECK(text(orders[0]) == "F0F1F2B0F3B1B2B3");
    CHECK(text(orders[1]) == "F0B0F1B1F2B2F3B3");
}
