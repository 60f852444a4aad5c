// SPDX-License-Identifier: MIT
// How many programs a training step needs on a CPU, where each takes a tenth of a second to compile
// and a hundredth to find in PoCL's cache. Nothing is compiled here.
#include "net/support.hpp"

#include <dlprim/programs.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

std::vector<PlannedProgram> programs_of(const Context& device, const std::string& name) {
    const Net net =
        Net::from_json_file(device, std::string(DLPRIM_NETS_DIR "/") + name + ".json", training());
    const SolverOptions adam;
    return planned_programs(net, &adam);
}

/// The programs that compute a node.
std::vector<const PlannedProgram*> of_node(const std::vector<PlannedProgram>& all,
                                           const std::string& node) {
    std::vector<const PlannedProgram*> found;
    for (const PlannedProgram& program : all)
        if (std::any_of(program.kernels.begin(), program.kernels.end(),
                        [&](const PlannedKernel& kernel) { return kernel.node == node; }))
            found.push_back(&program);
    return found;
}

}  // namespace

TEST_CASE("a training step of resnet50 has few programs on a CPU", "[plan]") {
    for (const Context& device : test_devices()) {
        if (device.traits().host || !device.traits().wide_vectors) continue;
        const std::vector<PlannedProgram> all = programs_of(device, "resnet50");
        std::string names;
        for (const PlannedProgram& program : all)
            names += program.kernels.front().node + " (" + program.name + ")\n";
        INFO(names);
        CHECK(all.size() <= 30);

        // Pooling and its gradient share a program, and so do convolutions and their packing.
        const auto pool = of_node(all, "maxpool"), gradient = of_node(all, "maxpool/backward");
        REQUIRE(pool.size() == 1);
        CHECK(pool == gradient);
        for (const PlannedProgram& program : all)
            CHECK_FALSE(program.name == "conv2d/blocked_winograd_pack.cl");

        // The last block, behind which is no other, has the programs of the others.
        for (const char* node : {"layer4.2.relu_3", "layer4.2.bn3/backward", "avgpool"}) {
            INFO(node);
            const auto its = of_node(all, node);
            REQUIRE(its.size() == 1);
            CHECK(its[0]->kernels.size() > 10);
        }
    }
}
