// SPDX-License-Identifier: MIT
// Defaults of the engine contract, the registry of engines and the shared cost model.
#include "engine/engine.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim {

std::vector<LayoutChoice> Engine::layouts(const Traits&, const Problem& problem) const {
    return {
        {std::vector<Layout>(problem.inputs.size()), std::vector<Layout>(problem.outputs.size())}};
}

std::uint64_t Engine::workspace_bytes(const Traits&, const Problem&, const Tuning&) const {
    return 0;
}

TuneSpace Engine::tune_space(const Traits&, const Problem&) const {
    return {};
}

Tuning Engine::default_tuning(const Traits&, const Problem&) const {
    return {};
}

std::unique_ptr<Launch> Engine::build_packing(ContextImpl&, const Problem&, const Tuning&,
                                              int index) const {
    fail(ErrorKind::unsupported, "engine ", name(), " packs no input ", index);
}

double roofline_seconds(const Traits& device, const Problem& problem, double flops,
                        double share_of_peak, double share_of_bandwidth) {
    double bytes = 0;
    for (const Operand& operand : problem.inputs)
        bytes += static_cast<double>(storage_bytes(operand.shape, operand.dtype, operand.layout));
    for (const Operand& operand : problem.outputs)
        bytes += static_cast<double>(storage_bytes(operand.shape, operand.dtype, operand.layout));
    const double compute = flops / (std::max(1.0, device.gflops) * 1e9 * share_of_peak);
    const double memory = bytes / (std::max(1.0, device.gbytes_per_s) * 1e9 * share_of_bandwidth);
    return std::max(compute, memory) + device.launch_us * 1e-6;
}

double serial_loop_seconds(const Traits& device, double steps) {
    return steps * (device.host || device.wide_vectors ? 2e-9 : 0.5e-6);
}

bool is_reference(const Engine& engine) {
    return engine.name().ends_with(".reference");
}

EngineRegistry& EngineRegistry::instance() {
    static EngineRegistry* registry =
        new EngineRegistry;  // never destroyed: launches point into it
    return *registry;
}

void EngineRegistry::add(std::unique_ptr<Engine> engine) {
    engines_.push_back(std::move(engine));
}

std::vector<const Engine*> EngineRegistry::of(std::string_view op, bool on_host) const {
    std::vector<const Engine*> found;
    for (const auto& engine : engines_)
        if (engine->op() == op && engine->on_host() == on_host) found.push_back(engine.get());
    // Another operator's folder may register engines of this one (inner_product.*_planes).
    std::stable_partition(found.begin(), found.end(),
                          [](const Engine* engine) { return !is_reference(*engine); });
    return found;
}

const Engine* EngineRegistry::find(std::string_view name) const {
    for (const auto& engine : engines_)
        if (engine->name() == name) return engine.get();
    return nullptr;
}

std::vector<std::string> EngineRegistry::names() const {
    std::vector<std::string> all;
    for (const auto& engine : engines_) all.emplace_back(engine->name());
    return all;
}

}  // namespace dlprim
