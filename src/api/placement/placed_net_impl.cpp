// SPDX-License-Identifier: MIT
// PlacedNetImpl: where operators run, and the steps of the parts.
#include "api/placement/placed_net_impl.hpp"

#include "api/net_impl.hpp"
#include "api/placement/pipeline_order.hpp"
#include "base/text.hpp"
#include "graph/operator.hpp"
#include "plan/engine_failed.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

namespace {

/// With NetOptions::without_losses.
void drop_losses(NetDescription& description, const Graph& graph) {
    if (graph.losses.size() == graph.outputs.size()) return;
    std::set<std::string> losses;
    for (const auto& [id, name] : graph.outputs)
        if (graph.losses.count(id) > 0) losses.insert(name);
    std::erase_if(description.outputs,
                  [&](const auto& output) { return losses.count(output.name) > 0; });
}

/// Whether an engine that is asked for by this name or type may be for a node of the part.
bool may_concern(const CutPart& part, const std::string& what) {
    if (OperatorRegistry::instance().find(what) != nullptr) return true;
    return !operator_of(part, what).empty();
}

void check_devices(const std::vector<NamedDevice>& devices) {
    require(!devices.empty(), "a placed network needs a device: none is bound");
    std::set<std::string> names;
    for (const NamedDevice& device : devices) {
        require(!device.name.empty(), "a device of a placed network needs a name");
        require(names.insert(device.name).second, "the device name '", device.name,
                "' is bound twice");
    }
}

[[noreturn]] void fail_unbound(const NetDescription::Op& op,
                               const std::vector<std::string>& names) {
    const std::string meant = did_you_mean(op.device, names);
    fail(ErrorKind::invalid_argument, "[", op.type, " '", op.name, "'] is to run on device '",
         op.device, "', a name that nobody has bound", meant, meant.empty() ? ". " : " ",
         names.size() == 1 ? "The name that is bound is " : "The names that are bound are ",
         join(names, ", "));
}

void check_options(const NetOptions& options) {
    require(!options.output_gradients,
            "backward of a placed network starts from its losses: output_gradients is not for it");
    require(options.memory_limit == 0,
            "a placed network has no memory_limit: its devices have a limit each, which "
            "memory_limits sets, or the command's device-memory NAME=SIZE");
}

int find_part(const std::map<std::string, int>& parts, const std::string& name, const char* what) {
    if (const auto found = parts.find(name); found != parts.end()) return found->second;
    std::vector<std::string> names;
    names.reserve(parts.size());
    for (const auto& [other, part] : parts) names.push_back(other);
    fail(ErrorKind::not_found, "the network has no ", what, " '", name, "'",
         did_you_mean(name, names));
}

}  // namespace

PlacedNetImpl::PlacedNetImpl(std::vector<NamedDevice> devices, NetDescription description,
                             const NetOptions& options, const PlacementOptions& placement)
    : NetCore(options, std::move(description)),
      devices_(std::move(devices)),
      placement_(placement) {
    check_devices(devices_);
    check_options(options_);
    check_limits();
    const NetDescription as_read = placement.automatic ? description_ : NetDescription{};
    notes_ = apply_options(description_, options_);
    set_graph(build_graph(description_, options_));
    if (options_.without_losses) {
        drop_losses(description_, base_);
        set_graph(build_graph(description_, options_));
    }
    if (placement.automatic)
        place_automatically(as_read);
    else
        place(find_devices());
    note_unused_devices();
}

std::map<std::string, std::size_t> PlacedNetImpl::find_devices() {
    std::vector<std::string> names;
    for (const NamedDevice& device : devices_) names.push_back(device.name);
    std::map<std::string, std::size_t> device_of;
    for (const NetDescription::Op& op : description_.operators) {
        const auto found =
            op.device.empty() ? names.begin() : std::find(names.begin(), names.end(), op.device);
        if (found == names.end()) fail_unbound(op, names);
        device_of[op.name] = static_cast<std::size_t>(found - names.begin());
    }
    return device_of;
}

void PlacedNetImpl::place(std::map<std::string, std::size_t> device_of) {
    how_.gradients = options_.mode != Mode::inference && options_.backward;
    how_.input_gradients = options_.input_gradients;
    for (;;) {
        how_.devices = device_of;
        cut_ = cut_net(description_, base_, how_);
        open_parts();
        const std::optional<Stuck> stuck = operator_without_engine();
        if (!stuck) return;
        const std::string before = devices_[device_of.at(stuck->name)].name;
        device_of.at(stuck->name) = host();
        notes_.push_back(cat("operator '", stuck->name, "' runs on the host, as device '",
                             devices_[host()].name, "', and not on device '", before,
                             "': ", stuck->why));
    }
}

void PlacedNetImpl::open_parts() {
    nets_.clear();
    WholeNet whole;
    whole.has_more = cut_.parts.size() > 1;
    whole.has_fp16 = std::any_of(base_.nodes.begin(), base_.nodes.end(), [](const Node& node) {
        return node.precision == Precision::fp16;
    });
    for (CutPart& part : cut_.parts) {
        part.border.whole = whole;
        const Context& context = devices_[part.device].context;
        auto impl = std::make_shared<NetImpl>(context, part.description, options_of(part));
        impl->set_border(part.border);
        impl->describe_by(
            [this, i = nets_.size()](const NetOptions&) { return cut_.parts[i].description; });
        nets_.push_back(std::move(impl));
    }
    open_borders();
    chain_.clear();
    for (std::size_t i = 0; i < cut_.parts.size(); ++i)
        if (cut_.parts[i].runs) chain_.push_back(static_cast<int>(i));
}

void PlacedNetImpl::open_borders() {
    std::vector<Context> contexts;
    for (const auto& net : nets_) contexts.push_back(net->context());
    borders_ = BorderMemory(cut_, std::move(contexts));
    allocated_ = fits_ = false;
}

void PlacedNetImpl::reshape(std::int64_t batch, const std::map<std::string, Shape>& shapes) {
    require(!solver_, "a placed network with a solver keeps its shapes: open another one");
    const NetOptions before = take_shapes(batch, shapes);
    try {
        Graph graph = build_graph(description_, options_);
        check_params_stay(graph);
        cut_ = cut_net(description_, graph, how_);
        set_graph(std::move(graph));
    } catch (...) {
        options_ = before;
        throw;
    }
    for (const auto& net : nets_) net->reshape(0, {});
    open_borders();
}

NetOptions PlacedNetImpl::options_of(const CutPart& part) const {
    NetOptions options = options_;
    options.batch = 0;  // the part's inputs have the shapes of the whole network
    options.input_shapes.clear();
    options.extra_outputs.clear();
    options.precisions.clear();
    options.input_gradients = options.without_losses = false;
    options.backward = part.backward;
    std::erase_if(options.engines,
                  [&](const auto& engine) { return !may_concern(part, engine.first); });
    return options;
}

std::optional<PlacedNetImpl::Stuck> PlacedNetImpl::operator_without_engine() const {
    for (std::size_t i = 0; i < nets_.size(); ++i) {
        if (nets_[i]->context().traits().host) continue;
        try {
            nets_[i]->plan_memory(nullptr);
        } catch (const NoEngine& missing) {
            const std::string name = operator_of(cut_.parts[i], missing.node);
            if (name.empty()) throw;
            return Stuck{name, missing.what()};
        }
    }
    return std::nullopt;
}

std::size_t PlacedNetImpl::host() {
    for (std::size_t i = 0; i < devices_.size(); ++i)
        if (devices_[i].context.traits().host) return i;
    std::string name = "host";
    const auto taken = [&](const NamedDevice& device) { return device.name == name; };
    while (std::any_of(devices_.begin(), devices_.end(), taken)) name += "_";
    devices_.push_back({name, Context("host")});
    return devices_.size() - 1;
}

int PlacedNetImpl::sets(int part, int shards) const {
    const auto found = std::find(chain_.begin(), chain_.end(), part);
    if (found == chain_.end()) return 1;
    return shards_in_flight(static_cast<int>(found - chain_.begin()),
                            static_cast<int>(chain_.size()), shards);
}

std::size_t PlacedNetImpl::copies(int shards) const {
    return chain_.empty() ? 1 : static_cast<std::size_t>(sets(chain_.front(), shards));
}

void PlacedNetImpl::allocate() {
    borders_.allocate(copies(shards()));
    for (std::size_t i = 0; i < nets_.size(); ++i)
        nets_[i]->use_set(0, borders_.memory_of(static_cast<int>(i), 0));
    allocated_ = true;
    inputs_.forget_targets();
    filled_.clear();
    if (shards() == 1) return;
    for (const Crossing& crossing : cut_.crossings)
        for (std::size_t copy = 0; crossing.maker == Crossing::caller && copy < borders_.copies();
             ++copy)
            for (const int reader : crossing.readers)
                inputs_.add_target(borders_.memory_of(reader, copy).inputs.at(crossing.name));
}

const std::shared_ptr<NetImpl>& PlacedNetImpl::shared_stage(int index) {
    if (!allocated_) allocate();
    return nets_[static_cast<std::size_t>(index)];
}

void PlacedNetImpl::train_with(const SolverOptions& options) {
    check_memory(&options);
    const bool same = options.shards == shards();
    solver_ = options;
    if (!same) allocate();
}

NetImpl& PlacedNetImpl::select(int index, int shard) {
    NetImpl& net = stage(index);
    net.use_set(shard % sets(index, shards()),
                borders_.memory_of(index, static_cast<std::size_t>(shard) % borders_.copies()));
    return net;
}

void PlacedNetImpl::feed(int index, int shard, const ShardInputs::Shard& inputs) {
    const std::size_t copy = static_cast<std::size_t>(shard) % borders_.copies();
    TracePhases phases(trace_.recorder(), static_cast<std::size_t>(index), TraceRow::host);
    for (const auto& [name, tensor] : borders_.memory_of(index, copy).inputs) {
        if (inputs.count(name) == 0) continue;
        phases.next(TraceKind::move, "upload input");
        inputs_.write(inputs, name, tensor);
    }
}

const std::vector<int>& PlacedNetImpl::readers(const std::string& input) const {
    input_spec(input);  // throws if it does not exist
    const auto found =
        std::find_if(cut_.crossings.begin(), cut_.crossings.end(), [&](const Crossing& crossing) {
            return crossing.maker == Crossing::caller && crossing.name == input;
        });
    return found->readers;
}

int PlacedNetImpl::stage_of_output(const std::string& name) const {
    return find_part(cut_.output_parts, name, "output");
}

int PlacedNetImpl::stage_of_param(const std::string& name) const {
    return find_part(cut_.param_parts, name, "parameter");
}

int PlacedNetImpl::stage_of_gradient(const std::string& name) const {
    const auto param = cut_.param_parts.find(name);
    return param != cut_.param_parts.end() ? param->second : readers(name).front();
}

std::map<std::string, std::string> PlacedNetImpl::devices_of_operators() const {
    std::map<std::string, std::string> devices;
    for (const CutPart& part : cut_.parts)
        for (const NetDescription::Op& op : part.description.operators)
            devices[op.name] = devices_[part.device].name;
    return devices;
}

void PlacedNetImpl::prepare() {
    check_memory(nullptr);
    for (std::size_t i = 0; i < nets_.size(); ++i)
        if (cut_.parts[i].runs) stage(static_cast<int>(i)).prepare();
}

Tensor PlacedNetImpl::input(const std::string& name) {
    filled_.insert(name);
    return stage(readers(name).front()).input(name);
}

Tensor PlacedNetImpl::output(const std::string& name) {
    return stage(stage_of_output(name)).output(name);
}

void PlacedNetImpl::require_inputs(std::string_view action) {
    stage(0);  // what allocates also forgets what was set
    std::vector<std::string> missing;
    for (const Crossing& crossing : cut_.crossings)
        if (crossing.maker == Crossing::caller && !crossing.readers.empty() &&
            crossing.spec.shape.numel() > 0 && filled_.count(crossing.name) == 0)
            missing.push_back(cat("'", crossing.name, "'"));
    if (!missing.empty())
        fail_unset(missing, action, options_.mode != Mode::training && !base_.losses.empty());
}

void PlacedNetImpl::set_input(const std::string& name, const void* data, std::uint64_t bytes) {
    const std::vector<int>& all = readers(name);
    for (const int reader : all) stage(reader).check_input(name, data, bytes);
    filled_.insert(name);
    if (bytes == 0) return;
    if (shards() > 1)
        inputs_.set(name, data, bytes);
    else
        stage(all.front()).feed(name, data);
}

void PlacedNetImpl::take_inputs(int index) {
    if (shards() == 1) return;
    select(index, 0);
    feed(index, 0, inputs_.next());
}

void PlacedNetImpl::run_forward(std::string_view action) {
    require_inputs(action);
    check_memory_once();
    stage(0);
    if (shards() == 1) borders_.move_inputs(trace_);
    for (const int index : chain_) {
        take_inputs(index);
        trace_.mark(index, TraceKind::wait, waits_for_values);
        stage(index).run_forward(action);
        trace_.mark(index, TraceKind::compute, "forward");
        borders_.move_after(index, false, trace_);
    }
}

void PlacedNetImpl::run_backward() {
    require(options_.mode != Mode::inference && options_.backward,
            "backward() needs a net in evaluation or training mode, with the option backward");
    require(!base_.losses.empty(),
            "backward() of a placed network starts from its losses, and "
            "the network has none");
    check_memory_once();
    for (std::size_t i = nets_.size(); i-- > 0;) {
        if (!cut_.parts[i].backward) continue;
        const int index = static_cast<int>(i);
        trace_.mark(index, TraceKind::wait, waits_for_values);
        nets_[i]->run_backward();
        trace_.mark(index, TraceKind::compute, "backward");
        borders_.move_after(index, true, trace_);
    }
}

std::string PlacedNetImpl::first_nan() {
    stage(0);
    if (shards() == 1) borders_.move_inputs(trace_);
    for (const int index : chain_) {
        take_inputs(index);
        std::string origin = stage(index).first_nan();
        if (!origin.empty()) return origin;
        borders_.move_after(index, false, trace_);
    }
    return {};
}

std::vector<std::string> PlacedNetImpl::notes() {
    std::vector<std::string> all = notes_;
    for (std::size_t i = 0; i < nets_.size(); ++i)
        for (const std::string& note : stage(static_cast<int>(i)).notes())
            all.push_back(cat("device '", device_name(static_cast<int>(i)), "': ", note));
    return all;
}

}  // namespace dlprim
