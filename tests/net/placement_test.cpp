// SPDX-License-Identifier: MIT
// The networks of examples/nets and tests/nets are planned for each device with engines of that
// device only: in inference, in evaluation with gradients, and as a training step.
#include "base/env.hpp"
#include "formats/json_net.hpp"
#include "graph/description.hpp"
#include "graph/passes/passes.hpp"
#include "net/support.hpp"
#include "plan/make_plan.hpp"
#include "train/update.hpp"

#include <filesystem>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// A plan without kernels, because compiling those of one network takes seconds to minutes.
std::unique_ptr<Plan> plan_of(const Context& device, const NetDescription& network, Mode mode) {
    Graph graph = build_graph(network, {}, 2, mode == Mode::training);
    expand_composites(graph);
    if (mode != Mode::inference) differentiate(graph);
    if (mode == Mode::training) add_update(graph, {});
    PlanOptions options{.build = false};
    return make_plan(device, graph, options);
}

std::vector<std::filesystem::path> networks() {
    std::vector<std::filesystem::path> paths;
    for (const char* folder : {DLPRIM_NETS, DLPRIM_NETS "/../../tests/nets"})
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.path().extension() == ".json") paths.push_back(entry.path());
    return paths;
}

}  // namespace

TEST_CASE("every node of every network runs on the device", "[placement]") {
    const std::vector<std::filesystem::path> paths = networks();
    REQUIRE(paths.size() >= 19);
    ON_EVERY_DEVICE(device) {
        for (const std::filesystem::path& path : paths) {
            const NetDescription network = parse_net_json(read_file(path), path.string());
            for (const Mode mode : {Mode::inference, Mode::evaluation, Mode::training}) {
                INFO(path.stem().string() << ", mode " << static_cast<int>(mode));
                const std::unique_ptr<Plan> plan = plan_of(device, network, mode);
                CHECK(plan->steps.size() > 10);
                // In such small networks a reference engine may be as fast as any other, which
                // causes a note.
                if (!path.stem().string().starts_with("tiny_")) CHECK(plan->notes.empty());
                CHECK(plan->peak_bytes > 0);
                std::size_t updates = 0, backward = 0;
                for (const auto* steps : {&plan->setup, &plan->steps}) {
                    for (const Step& step : *steps) {
                        updates += step.part == Part::update;
                        backward += step.part == Part::backward;
                        if (step.engine == nullptr) {
                            CHECK(step.type == "Copy");
                            continue;
                        }
                        INFO(step.type << " '" << step.name << "' by " << step.engine->name());
                        CHECK(step.engine->on_host() == (device.info().id == "cpu"));
                    }
                }
                CHECK(updates == (mode == Mode::training ? 1 : 0));
                CHECK((backward > 10) == (mode != Mode::inference));
            }
        }
    }
}
