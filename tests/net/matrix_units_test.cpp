// SPDX-License-Identifier: MIT
// Which engines a device's matrix unit and its local memory let apply, and that what they offer to
// the tuner can be estimated: no device is needed for that.
#include "engine/engine.hpp"
#include "engine/matrix_unit.hpp"
#include "formats/json_net.hpp"
#include "graph/description.hpp"
#include "graph/passes/passes.hpp"
#include "net/support.hpp"
#include "plan/choose.hpp"

#include <cmath>
#include <set>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

const char* const network = R"({
  "inputs": [{"name": "data", "shape": [8, 3, 64, 64]}],
  "outputs": ["loss"],
  "operators": [
    {"name": "first", "type": "Convolution2D", "inputs": ["data"], "outputs": ["a"],
     "options": {"channels_out": 64, "kernel": 7, "stride": 2, "pad": 3}},
    {"name": "second", "type": "Convolution2D", "inputs": ["a"], "outputs": ["b"],
     "options": {"channels_out": 256, "kernel": 3, "pad": 1}},
    {"name": "third", "type": "InnerProduct", "inputs": ["b"], "outputs": ["loss"],
     "options": {"outputs": 64}}
  ]
})";

Traits gpu(bool wgmma, bool mma, std::uint64_t kib) {
    Traits traits = Context("cpu").traits();
    traits.host = traits.wide_vectors = false;
    traits.vector_width = 1;
    traits.max_work_group = 1024;
    traits.compute_units = 100;
    traits.wgmma = wgmma;
    traits.mma = mma;
    traits.mma_local_bytes = kib << 10;
    return traits;
}

/// The names of the engines on matrix units that apply to a training step, whose images are f16
/// where that is the precision.
std::set<std::string> applying(const Traits& device, Precision precision) {
    Graph graph = build_graph(parse_net_json(network, "network"), {}, 0, true, precision);
    expand_composites(graph);
    differentiate(graph);
    lower(graph);
    std::set<std::string> names;
    for (const Node& node : graph.nodes) {
        Problem problem = problem_of(device, graph, node, {});
        if (precision == Precision::fp16) {
            problem.precision = precision;
            problem.inputs[0].dtype = DType::f16;
            if (problem.op == "Convolution2DBackwardFilter") problem.inputs[1].dtype = DType::f16;
        }
        for (const Engine* engine : EngineRegistry::instance().of(problem.op, false)) {
            const std::string name(engine->name());
            if (name.find("mma_") == std::string::npos) continue;
            if (!engine->is_applicable(device, problem)) continue;
            names.insert(name);
            INFO(name << " for " << problem.key(false));
            for (const LayoutChoice& choice : engine->layouts(device, problem)) {
                Problem laid = problem;
                for (std::size_t i = 0; i < choice.inputs.size(); ++i)
                    laid.inputs[i].layout = choice.inputs[i];
                const Tuning standard = engine->default_tuning(device, laid);
                CHECK(std::isfinite(engine->estimate(device, laid, standard)));
                for (const auto& [key, values] : engine->tune_space(device, laid)) {
                    CHECK(!values.empty());
                    for (const std::int64_t value : values) {
                        Tuning tuning = standard;
                        tuning[key] = value;
                        CHECK(std::isfinite(engine->estimate(device, laid, tuning)));
                        engine->workspace_bytes(device, laid, tuning);
                    }
                }
            }
        }
    }
    return names;
}

std::set<std::string> of_unit(const std::set<std::string>& names, std::string_view unit) {
    std::set<std::string> found;
    for (const std::string& name : names) {
        const std::size_t dot = name.find('.') + 1;
        if (name.compare(dot, unit.size() + 1, std::string(unit) + '_') == 0)
            found.insert(name.substr(0, dot) + name.substr(dot + unit.size() + 1));
    }
    return found;
}

}  // namespace

TEST_CASE("a device's matrix unit has the engines of the other", "[matrix_units]") {
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16}) {
        INFO(name_of(precision));
        const auto large = applying(gpu(true, false, 0), precision);
        const auto small = applying(gpu(false, true, 227), precision);
        CHECK(large.size() >= 4);
        CHECK(of_unit(large, "wgmma").size() == large.size());
        auto of_warpgroups = of_unit(large, "wgmma");
        // It reads taps where they lie, which the instructions of a warp are not told to yet.
        of_warpgroups.erase("conv2d.window");
        CHECK((of_unit(small, "mma") == of_warpgroups));
        CHECK(of_unit(small, "wgmma").empty());
        CHECK(
            (of_unit(applying(gpu(false, true, 163), precision), "mma") == of_unit(small, "mma")));
        CHECK(applying(gpu(false, false, 227), precision).empty());
    }
}

TEST_CASE("engines on the unit of warps keep to its local memory", "[matrix_units]") {
    const Traits device = gpu(false, true, 99);
    const auto exact = applying(device, Precision::fp32);
    CHECK(exact.count("conv2d.mma_planes") == 1);
    CHECK(exact.count("conv2d.mma_narrow") == 1);
    CHECK(exact.count("conv2d.mma_split") == 0);
    CHECK(exact.count("conv2d_backward_filter.mma_split") == 0);
    CHECK((applying(device, Precision::tf32) == applying(gpu(false, true, 227), Precision::tf32)));
    CHECK((applying(device, Precision::fp16) == applying(gpu(false, true, 227), Precision::fp16)));
    CHECK(applying(gpu(false, true, 48), Precision::fp32).empty());
    CHECK(applying(gpu(false, true, 0), Precision::fp16).empty());
}
