// SPDX-License-Identifier: MIT
// Calls of a plugin's engine. Its answers are checked: a wrong one rules the engine out.
#include "engine/plugin/plugin_engine.hpp"

#include "base/text.hpp"
#include "engine/plugin/plugin_problem.hpp"

#include <cmath>
#include <utility>

namespace dlprim {

namespace {

/// The most layouts of a problem that are asked for.
constexpr int most_layouts = 16;
/// The estimate of an engine that gives none.
constexpr double last_seconds = 1e6;

class PluginLaunch : public Launch {
  public:
    PluginLaunch(const dlprim_engine& engine, void* launch) : engine_(engine), launch_(launch) {}
    ~PluginLaunch() override { engine_.release(launch_); }
    PluginLaunch(const PluginLaunch&) = delete;
    PluginLaunch& operator=(const PluginLaunch&) = delete;

    void enqueue(Queue& queue, std::span<const BufferRef> operands) override {
        memory_.clear();
        if (engine_.host != 0) {
            for (const BufferRef& operand : operands) memory_.push_back({operand.host(), 0});
            queue.run([&](HostPool& pool) {
                run({static_cast<std::uint32_t>(pool.threads()), nullptr});
            });
        } else {
            for (const BufferRef& operand : operands)
                memory_.push_back({operand.buffer->handle(), operand.handle_offset()});
            queue.enqueue_otherwise([&](void* cl_queue) { run({0, cl_queue}); });
        }
    }

    void set_owner(const std::string& who) override { owner_ = who; }

  private:
    void run(const dlprim_engine_run& how) {
        PluginMessage message;
        if (engine_.run(launch_, &how, memory_.data(), memory_.size(), message.room()) != 0)
            fail(ErrorKind::device, owner_, "engine ", engine_.name, " fails: ", message.text());
    }

    const dlprim_engine& engine_;
    void* const launch_;
    std::vector<dlprim_engine_memory> memory_;
    std::string owner_;
};

dlprim_engine_device device_of(const ContextImpl& context) {
    dlprim_engine_device device = plugin_device(context.traits());
    device.name = context.info().name.c_str();
    device.vendor = context.info().vendor.c_str();
    device.driver = context.info().driver.c_str();
    device.cl_context = context.cl_context_handle();
    device.cl_device = context.cl_device_handle();
    return device;
}

}  // namespace

PluginEngine::PluginEngine(const dlprim_engine& given, std::string library)
    : Engine(given.name == nullptr ? "" : given.name, given.op == nullptr ? "" : given.op,
             given.host != 0),
      given_(given),
      library_(std::move(library)) {
    if (given.name == nullptr || given.op == nullptr || given.applies == nullptr ||
        given.estimate == nullptr || given.build == nullptr || given.run == nullptr ||
        given.release == nullptr)
        fail(ErrorKind::unsupported, "an engine of it lacks its name, operator or a function");
}

bool PluginEngine::computes_in(Precision precision) const {
    if (given_.precisions == nullptr) return precision == Precision::fp32;
    return cat(' ', given_.precisions, ' ').find(cat(' ', name_of(precision), ' ')) !=
           std::string::npos;
}

Verdict PluginEngine::is_applicable(const Traits& device, const Problem& problem) const {
    const PluginProblem seen(problem);
    const dlprim_engine_device where = plugin_device(device);
    PluginMessage reason;
    if (given_.applies(&given_, &where, seen.view(), reason.room()) == 0)
        return Verdict::no(reason.text());
    try {
        layouts(device, problem);
    } catch (const Error& error) {
        return Verdict::no(error.what());
    }
    return Verdict::yes();
}

std::vector<LayoutChoice> PluginEngine::layouts(const Traits& device,
                                                const Problem& problem) const {
    if (given_.layouts == nullptr) return {LayoutChoice::all(problem)};
    const PluginProblem seen(problem);
    const dlprim_engine_device where = plugin_device(device);
    std::vector<LayoutChoice> choices;
    for (int choice = 0, count = 1; choice < count; ++choice) {
        std::vector<dlprim_engine_layout> inputs(problem.inputs.size()),
            outputs(problem.outputs.size());
        count = given_.layouts(&given_, &where, seen.view(), choice, inputs.data(), outputs.data());
        if (count < 1 || count > most_layouts)
            fail(ErrorKind::unsupported, "it offers ", count, " layouts; 1 to ", most_layouts,
                 " are possible");
        LayoutChoice made;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            made.inputs.push_back(layout_of(inputs[i], problem.inputs[i].shape, true));
        for (std::size_t i = 0; i < outputs.size(); ++i)
            made.outputs.push_back(layout_of(outputs[i], problem.outputs[i].shape, false));
        made.variant = count > 1 ? cat(choice) : "";
        choices.push_back(std::move(made));
    }
    return choices;
}

std::uint64_t PluginEngine::workspace_bytes(const Traits& device, const Problem& problem,
                                            const Tuning&) const {
    if (given_.workspace == nullptr) return 0;
    const dlprim_engine_device where = plugin_device(device);
    return given_.workspace(&given_, &where, PluginProblem(problem).view());
}

double PluginEngine::estimate(const Traits& device, const Problem& problem, const Tuning&) const {
    const dlprim_engine_device where = plugin_device(device);
    const double seconds = given_.estimate(&given_, &where, PluginProblem(problem).view());
    return std::isfinite(seconds) && seconds >= 0 ? seconds : last_seconds;
}

std::unique_ptr<Launch> PluginEngine::build(ContextImpl& context, const Problem& problem,
                                            const Tuning&) const {
    const dlprim_engine_device where = device_of(context);
    PluginMessage message;
    void* const launch =
        given_.build(&given_, &where, PluginProblem(problem).view(), message.room());
    if (launch == nullptr)
        fail(ErrorKind::build, "engine ", given_.name, " cannot be built: ", message.text());
    return std::make_unique<PluginLaunch>(given_, launch);
}

std::unique_ptr<Launch> PluginEngine::build_packing(ContextImpl& context, const Problem& problem,
                                                    const Tuning&, int index) const {
    const dlprim_engine_device where = device_of(context);
    PluginMessage message;
    void* const launch =
        given_.build_packing == nullptr
            ? nullptr
            : given_.build_packing(&given_, &where, PluginProblem(problem).view(),
                                   static_cast<std::size_t>(index), message.room());
    if (launch == nullptr)
        fail(ErrorKind::build, "engine ", given_.name, " cannot pack input ", index, ": ",
             message.text());
    return std::make_unique<PluginLaunch>(given_, launch);
}

}  // namespace dlprim
