// SPDX-License-Identifier: MIT
// Net: the public interface of NetCore.
#include <dlprim/net.hpp>

#include "api/net_impl.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_net.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace dlprim {

namespace {

template <typename Map>
Tensor find_tensor(const Map& map, const std::string& name, const char* what) {
    if (const auto found = map.find(name); found != map.end()) return found->second;
    std::vector<std::string> names;
    names.reserve(map.size());
    for (const auto& item : map) names.push_back(item.first);
    fail(ErrorKind::not_found, "the network has no ", what, " '", name, "'",
         did_you_mean(name, names),
         names.empty() ? ""
                       : cat("; there ", names.size() == 1 ? "is " : "are ", join(names, ", ")));
}

/// Class numbers must be whole and below the number of classes, or the one that is ignored. Kernels
/// do not check that.
void check_labels(const std::string& name, DType dtype, const void* data, std::int64_t count,
                  const LabelInput& wanted) {
    const auto size = static_cast<std::size_t>(count);
    const auto refuse = [&](const auto& label, std::size_t i) {
        fail(ErrorKind::invalid_argument, "input '", name, "' holds label ", label, " at position ",
             i, "; labels are whole numbers from 0 to ", wanted.classes - 1,
             wanted.ignored ? cat(", or ", *wanted.ignored, ", which is ignored") : "");
    };
    if (!is_float(dtype)) {  // int64 holds every integer type exactly, double does not
        std::vector<std::int64_t> labels(size);
        convert(data, dtype, labels.data(), DType::i64, size);
        for (std::size_t i = 0; i < size; ++i)
            if (!wanted.holds(labels[i])) refuse(labels[i], i);
        return;
    }
    std::vector<double> labels(size);
    convert(data, dtype, labels.data(), DType::f64, size);
    for (std::size_t i = 0; i < size; ++i) {
        const double label = labels[i];
        if (label != std::floor(label) || std::abs(label) >= 1e18) refuse(label, i);
        if (!wanted.holds(static_cast<std::int64_t>(label)))
            refuse(static_cast<std::int64_t>(label), i);
    }
}

/// Attributes each operator's parameters to the first node that computes it. Shared parameters
/// count once.
void count_params(const Graph& graph, std::vector<NodeReport>& reports) {
    std::set<ValueId> seen;
    for (const Node& node : graph.nodes) {
        std::int64_t count = 0;
        for (const ValueId id : node.inputs)
            if (graph.value(id).role == Role::parameter && seen.insert(id).second)
                count += graph.shape(id).numel();
        if (count == 0) continue;
        const auto computes = [&](const NodeReport& report) {
            return report.name == node.name || report.name.starts_with(node.name + "/") ||
                   std::find(report.fused.begin(), report.fused.end(), node.name) !=
                       report.fused.end();
        };
        const auto found = std::find_if(reports.begin(), reports.end(), computes);
        if (found != reports.end()) found->params += count;
    }
}

}  // namespace

Net::Net(std::shared_ptr<NetCore> impl) : impl_(std::move(impl)) {}
Net::Net(const Context& context, const NetOptions& options)
    : impl_(std::make_shared<NetImpl>(context, options)) {}
Net::~Net() = default;
Net::Net(Net&&) noexcept = default;
Net& Net::operator=(Net&&) noexcept = default;

Net Net::from_json_file(const Context& context, const std::string& path,
                        const NetOptions& options) {
    return Net(std::make_shared<NetImpl>(context, parse_net_json(read_file(path), path), options));
}

Net Net::from_json(const Context& context, std::string_view text, const NetOptions& options) {
    return Net(std::make_shared<NetImpl>(context, parse_net_json(text, "network"), options));
}

NetImpl& Net::impl() const {
    NetImpl* const alone = core_of(*this).alone();
    require(alone != nullptr,
            "this call is for a network on one device, and the operators of this one are on "
            "several: it is a PlacedNet, whose calls tell of each device");
    return *alone;
}

std::shared_ptr<NetImpl> one_device(const Net& net) {
    return {Access::shared_impl(net), &Access::impl(net)};
}

const Context& Net::context() const {
    return core_of(*this).context();
}

const NetOptions& Net::options() const {
    return core_of(*this).options();
}

std::vector<std::string> Net::input_names() const {
    const Graph& graph = core_of(*this).base_graph();
    std::vector<std::string> names;
    for (const ValueId id : graph.inputs) names.push_back(graph.value(id).name);
    return names;
}

std::vector<std::string> Net::output_names() const {
    std::vector<std::string> names;
    const bool drops = core_of(*this).drops_losses();
    const Graph& graph = core_of(*this).base_graph();
    for (const auto& output : graph.outputs)
        if (!drops || graph.losses.count(output.first) == 0) names.push_back(output.second);
    return names;
}

std::vector<std::string> Net::loss_names() const {
    std::vector<std::string> names;
    const Graph& graph = core_of(*this).base_graph();
    if (core_of(*this).drops_losses()) return names;
    for (const auto& output : graph.outputs)
        if (graph.losses.count(output.first)) names.push_back(output.second);
    return names;
}

std::vector<std::string> Net::param_names() const {
    return core_of(*this).param_names();
}

bool Net::is_trainable(const std::string& param) const {
    const auto& params = core_of(*this).params();
    const auto found = params.find(param);
    return found != params.end() && found->second.value.trainable;
}

std::map<std::string, double> Net::loss_weights() const {
    std::map<std::string, double> weights;
    if (core_of(*this).drops_losses()) return weights;
    const Graph& graph = core_of(*this).base_graph();
    for (const auto& output : graph.outputs)
        if (const auto loss = graph.losses.find(output.first); loss != graph.losses.end())
            weights[output.second] = loss->second;
    return weights;
}

std::vector<std::string> Net::gradient_names() {
    NetCore& core = core_of(*this);
    const std::vector<std::string> inputs = input_names();
    std::vector<std::string> names;
    for (int i = 0; i < core.stages(); ++i) {
        if (!core.runs(i)) continue;
        for (const auto& [name, tensor] : core.stage(i).built().gradients)
            // Stages also compute gradients for each other.
            if (core.params().count(name) > 0 ||
                std::find(inputs.begin(), inputs.end(), name) != inputs.end())
                names.push_back(name);
    }
    return names;
}

std::vector<std::string> Net::output_gradient_names() {
    std::vector<std::string> names;
    for (const auto& item : impl().built().output_gradients) names.push_back(item.first);
    return names;
}

std::vector<std::string> Net::changed_by_forward() {
    NetCore& core = core_of(*this);
    std::vector<std::string> names;
    for (int i = 0; i < core.stages(); ++i) {
        if (!core.runs(i)) continue;
        const Graph& graph = core.stage(i).built().executor->plan().graph;
        for (const Assignment& assignment : graph.assignments)
            if (graph.value(assignment.target).role == Role::parameter)
                names.push_back(graph.value(assignment.target).name);
    }
    return names;
}

bool Net::has_loss() const {
    return !core_of(*this).base_graph().losses.empty() && !core_of(*this).drops_losses();
}

std::int64_t Net::label_classes(const std::string& input) {
    const std::optional<LabelInput> label = core_of(*this).label_input(input);
    return label ? label->classes : 0;
}

Shape Net::input_shape(const std::string& name) const {
    return core_of(*this).input_spec(name).shape;
}
DType Net::input_dtype(const std::string& name) const {
    return core_of(*this).input_spec(name).dtype;
}

Shape Net::param_shape(const std::string& name) const {
    return core_of(*this).param_spec(name).shape;
}
DType Net::param_dtype(const std::string& name) const {
    return core_of(*this).param_spec(name).dtype;
}

Tensor Net::input(const std::string& name) {
    return core_of(*this).input(name);
}
Tensor Net::output(const std::string& name) {
    Tensor tensor = core_of(*this).output(name);
    core_of(*this).require_outputs(name);
    return tensor;
}
Tensor Net::param(const std::string& name) {
    NetCore& core = core_of(*this);
    return core.stage(core.stage_of_param(name)).param(name);
}
Tensor Net::gradient(const std::string& name) {
    NetCore& core = core_of(*this);
    return find_tensor(core.stage(core.stage_of_gradient(name)).built().gradients, name,
                       "gradient of");
}
Tensor Net::output_gradient(const std::string& name) {
    return find_tensor(impl().built().output_gradients, name, "output gradient of");
}

Tensor NetImpl::input(const std::string& name) {
    Tensor tensor = find_tensor(built().inputs, name, "input");
    built().filled.insert(name);
    return tensor;
}

Tensor NetImpl::output(const std::string& name) {
    return find_tensor(built().outputs, name, "output");
}

void NetImpl::check_input(const std::string& name, const void* data, std::uint64_t bytes) {
    const Built& plan = built();
    const Tensor tensor = find_tensor(plan.inputs, name, "input");
    require(bytes == tensor.bytes(), "input '", name, "' of shape ", tensor.shape().str(),
            " takes ", tensor.bytes(), " bytes, got ", bytes);
    if (bytes == 0) return;
    require(data != nullptr, "the data for input '", name, "' of shape ", tensor.shape().str(),
            " must not be null");
    if (const auto found = plan.classes.find(name); found != plan.classes.end())
        check_labels(name, tensor.dtype(), data, tensor.shape().numel(), found->second);
    if (const auto found = plan.indices.find(name); found != plan.indices.end())
        check_indices(name, found->second, tensor.dtype(), data, tensor.shape().numel());
}

void NetImpl::set_input(const std::string& name, const void* data, std::uint64_t bytes) {
    check_input(name, data, bytes);
    built().filled.insert(name);
    if (bytes > 0) feed(name, data);
}

void Net::set_input(const std::string& name, const void* data, std::uint64_t bytes) {
    core_of(*this).set_input(name, data, bytes);
}

void Net::load_weights(const std::string& path, bool missing_ok) {
    core_of(*this).load_weights(path, missing_ok);
}
void Net::load_weights(std::map<std::string, HostTensor> values, const std::string& source,
                       bool missing_ok) {
    core_of(*this).load_weights(std::move(values), source, missing_ok);
}
void Net::save_weights(const std::string& path) {
    core_of(*this).save_weights(path, nullptr);
}
void Net::save_weights(const std::string& path, const Preprocessing& how) {
    core_of(*this).save_weights(path, &how);
}
HostTensor Net::read_param(const std::string& name) {
    return core_of(*this).read_param(name);
}
void Net::write_params(std::map<std::string, HostTensor> values, bool missing_ok) {
    core_of(*this).write_params(std::move(values), missing_ok);
}
void Net::initialize(std::string_view method) {
    NetCore& core = core_of(*this);
    for (int i = 0; i < core.stages(); ++i) core.stage(i).initialize(method);
}
void Net::params_changed() {
    NetCore& core = core_of(*this);
    for (int i = 0; i < core.stages(); ++i) core.stage(i).params_changed();
}

void Net::prepare() {
    core_of(*this).prepare();
}
void Net::forward() {
    core_of(*this).run_forward("forward()");
}
void Net::backward() {
    core_of(*this).run_backward();
}

void NetImpl::run_forward(std::string_view action) {
    require_params(action);
    require_inputs(action);
    forward();
    Access::impl(context_).queue().flush();
}
void NetImpl::run_backward() {
    backward();
    Access::impl(context_).queue().flush();
}

void Net::reshape(std::int64_t batch) {
    require(batch >= 1, "a batch of ", batch, " is invalid: it must be at least 1");
    core_of(*this).reshape(batch, {});
}
void Net::reshape(const std::map<std::string, Shape>& input_shapes) {
    core_of(*this).reshape(0, input_shapes);
}

std::uint64_t Net::planned_peak_bytes() {
    return core_of(*this).planned_peak_bytes();
}
std::uint64_t NetImpl::planned_peak_bytes() {
    return built().executor->plan().peak_bytes + feed_bytes();
}
std::uint64_t Net::planned_setup_peak_bytes() {
    return impl().built().executor->plan().setup_peak_bytes;
}
std::string Net::memory_report() {
    return impl().built().executor->plan().memory;
}
MemoryMap Net::plan_memory(const SolverOptions* solver) {
    return impl().plan_memory(solver);
}
std::vector<std::string> Net::notes() {
    return core_of(*this).notes();
}
std::vector<std::string> NetImpl::notes() {
    const std::vector<std::string>& planned = built().executor->plan().notes;
    std::vector<std::string> all = remarks;
    all.insert(all.end(), checkpoint_remarks.begin(), checkpoint_remarks.end());
    all.insert(all.end(), planned.begin(), planned.end());
    return all;
}

std::vector<NodeReport> Net::nodes() {
    NetCore& core = core_of(*this);
    std::vector<NodeReport> reports;
    for (int i = 0; i < core.stages(); ++i) {
        if (!core.runs(i)) continue;
        NetImpl& net = core.stage(i);
        for (const Step& step : net.built().executor->plan().steps) {
            NodeReport report;
            report.name = step.name;
            report.type = step.type;
            report.engine = step.engine ? std::string(step.engine->name()) : "";
            report.device = net.context().info().id;
            report.fused = step.fused;
            report.part = name_of(step.part);
            report.gflop = step.flops * 1e-9;
            report.gbytes = step.bytes * 1e-9;
            report.bound_ms = step.bound_seconds * 1e3;
            reports.push_back(std::move(report));
        }
    }
    count_params(core.base_graph(), reports);
    return reports;
}

std::vector<NodeReport> Net::profile(bool whole_step) {
    const std::vector<Executor::Timing> timings = impl().profile(whole_step);
    std::vector<NodeReport> reports = nodes();
    std::uint64_t first = ~std::uint64_t{0};
    for (const auto& timing : timings)
        if (timing.busy_ns > 0) first = std::min(first, timing.start_ns);
    for (std::size_t i = 0; i < reports.size() && i < timings.size(); ++i) {
        if (timings[i].busy_ns == 0) continue;
        reports[i].ms = static_cast<double>(timings[i].busy_ns) * 1e-6;
        reports[i].start_ms = static_cast<double>(timings[i].start_ns - first) * 1e-6;
    }
    return reports;
}

std::string Net::first_nan() {
    return core_of(*this).first_nan();
}

}  // namespace dlprim
