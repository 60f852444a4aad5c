// SPDX-License-Identifier: MIT
// The five networks of examples/nets are planned for each device with engines of that device
// throughout, in inference and in training.
#include "base/env.hpp"
#include "formats/json_net.hpp"
#include "graph/description.hpp"
#include "graph/passes/passes.hpp"
#include "net/support.hpp"
#include "plan/plan.hpp"
#include "train/update.hpp"

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// A plan without kernels: compiling those of five networks takes minutes.
std::unique_ptr<Plan> plan_of(const Context& device, const std::string& network, bool train) {
    const std::string path = std::string(DLPRIM_NETS) + "/" + network + ".json";
    const NetDescription description = parse_net_json(read_file(path), path);
    Graph graph = build_graph(description, {}, 2, train);
    expand_composites(graph);
    if (train) {
        differentiate(graph);
        add_update(graph, {});
    }
    PlanOptions options;
    options.build = false;
    return make_plan(device, std::move(graph), options);
}

}  // namespace

TEST_CASE("every node of the example networks runs on the device", "[placement]") {
    const std::string network =
        GENERATE("alexnet", "vgg16", "resnet18", "resnet50", "mobilenet_v2");
    ON_EVERY_DEVICE(device) {
        for (const bool train : {false, true}) {
            INFO(network << (train ? ", training" : ", inference"));
            const std::unique_ptr<Plan> plan = plan_of(device, network, train);
            CHECK(plan->steps.size() > 10);
            CHECK(plan->notes.empty());
            CHECK(plan->peak_bytes > 0);
            std::size_t updates = 0;
            for (const auto* steps : {&plan->setup, &plan->steps}) {
                for (const Step& step : *steps) {
                    updates += step.part == Part::update;
                    if (step.engine == nullptr) {
                        CHECK(step.type == "Copy");
                        continue;
                    }
                    INFO(step.type << " '" << step.name << "' by " << step.engine->name());
                    CHECK(step.engine->on_host() == (device.info().id == "cpu"));
                }
            }
            CHECK(updates == (train ? 1 : 0));
        }
    }
}
