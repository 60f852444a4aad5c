// SPDX-License-Identifier: MIT
// Defaults of the engine contract, the registry of engines and the shared cost model.
#include "engine/engine.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace dlprim {

namespace {

/// The names of the layouts in order, each once.
std::string names_of(const std::vector<Layout>& layouts, const std::string& variant) {
    std::vector<std::string> names;
    for (const Layout& layout : layouts) {
        std::string name = layout.str();
        if (layout.kind == Layout::Kind::packed)
            name = variant.empty() ? "packed" : cat("packed ", variant);
        if (std::find(names.begin(), names.end(), name) == names.end())
            names.push_back(std::move(name));
    }
    std::string all;
    for (const std::string& name : names) all += all.empty() ? name : ", " + name;
    return all;
}

/// The tuning, with the values that `part` sets.
Tuning changed(Tuning tuning, const Tuning& part) {
    for (const auto& [name, value] : part) tuning[name] = value;
    return tuning;
}

/// Every combination of one of `all` with one of `parts`, or `all` if there are no parts.
std::vector<Tuning> crossed(const std::vector<Tuning>& all, const std::vector<Tuning>& parts) {
    std::vector<Tuning> more;
    for (const Tuning& tuning : all)
        for (const Tuning& part : parts) {
            Tuning next = changed(tuning, part);
            if (std::find(more.begin(), more.end(), next) == more.end())
                more.push_back(std::move(next));
        }
    return more.empty() ? all : more;
}

}  // namespace

std::string LayoutChoice::name() const {
    return cat(names_of(inputs, variant), " -> ", names_of(outputs, variant));
}

std::vector<LayoutChoice> Engine::layouts(const Traits&, const Problem& problem) const {
    return {LayoutChoice::all(problem)};
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
    fail(ErrorKind::unsupported, "engine ", name(), " cannot pack input ", index);
}

void check_tuning_count(const Engine& engine, std::size_t count, const Problem& problem) {
    if (count > most_tunings)
        fail(ErrorKind::unsupported, "engine ", engine.name(), " offers ", count,
             " tunings of one problem, and at most ", most_tunings,
             " are allowed: ", problem.key());
}

std::vector<Tuning> tunings_of(const Engine& engine, const Traits& device, const Problem& laid) {
    const Tuning standard = engine.default_tuning(device, laid);
    const TuneSpace space = engine.tune_space(device, laid);
    std::vector<Tuning> all{standard};
    for (const auto& [name, values] : space.values) {
        std::vector<Tuning> parts;
        for (const std::int64_t value : values) parts.push_back({{name, value}});
        all = crossed(all, parts);
    }
    all = crossed(all, space.tiles);
    std::erase(all, standard);
    all.insert(all.begin(), standard);
    check_tuning_count(engine, all.size(), laid);
    return all;
}

Verdict offers(const Engine& engine, const Traits& device, const Problem& laid,
               const Tuning& tuning) {
    const auto has = [&](const Traits& traits) {
        const std::vector<Tuning> all = tunings_of(engine, traits, laid);
        return std::find(all.begin(), all.end(), tuning) != all.end();
    };
    if (has(device)) return Verdict::yes();
    Traits roomy = device;
    roomy.item_registers = 0;
    if (device.item_registers != 0 && has(roomy))
        return Verdict::no(cat("its tile {", text_of(tuning), "} needs more than the ",
                               device.item_registers,
                               " registers that a work-item has on this device, and would spill"));
    return Verdict::no(cat("it has no tuning {", text_of(tuning), "} for this problem"));
}

std::string text_of(const Tuning& tuning) {
    std::string text;
    for (const auto& [name, value] : tuning) text += cat(text.empty() ? "" : " ", name, '=', value);
    return text;
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
    const Engine& added = *engine;
    engines_.push_back(std::move(engine));
    by_name_.try_emplace(added.name(), &added);
    index(added.op(), added.on_host());
}

void EngineRegistry::add_first(std::unique_ptr<Engine> engine) {
    const Engine& added = *engine;
    engines_.insert(engines_.begin(), std::move(engine));
    by_name_[added.name()] = &added;
    index(added.op(), added.on_host());
}

void EngineRegistry::index(std::string_view op, bool on_host) {
    std::vector<const Engine*>& found = by_op_[op][on_host ? 1 : 0];
    found.clear();
    for (const auto& engine : engines_)
        if (engine->op() == op && engine->on_host() == on_host) found.push_back(engine.get());
    // The folder of another operator may register engines of this one (inner_product.*_planes).
    std::stable_partition(found.begin(), found.end(),
                          [](const Engine* engine) { return !is_reference(*engine); });
}

const std::vector<const Engine*>& EngineRegistry::of(std::string_view op, bool on_host) const {
    static const std::vector<const Engine*> none;
    const auto found = by_op_.find(op);
    return found == by_op_.end() ? none : found->second[on_host ? 1 : 0];
}

const Engine* EngineRegistry::find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
}

std::vector<std::string> EngineRegistry::names() const {
    std::vector<std::string> all;
    for (const auto& engine : engines_) all.emplace_back(engine->name());
    return all;
}

}  // namespace dlprim
