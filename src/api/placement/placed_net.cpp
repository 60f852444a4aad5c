// SPDX-License-Identifier: MIT
// PlacedNet: the public interface of PlacedNetImpl.
#include <dlprim/placed_net.hpp>

#include "api/placement/placed_net_impl.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_net.hpp"
#include "runtime/access.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

PlacedNet::PlacedNet(std::shared_ptr<PlacedNetImpl> impl) : impl_(std::move(impl)) {}
PlacedNet::~PlacedNet() = default;
PlacedNet::PlacedNet(PlacedNet&&) noexcept = default;
PlacedNet& PlacedNet::operator=(PlacedNet&&) noexcept = default;

PlacedNet PlacedNet::from_json_file(const std::vector<NamedDevice>& devices,
                                    const std::string& path, const NetOptions& options,
                                    const PlacementOptions& placement) {
    return PlacedNet(std::make_shared<PlacedNetImpl>(devices, parse_net_json(read_file(path), path),
                                                     options, placement));
}

PlacedNet PlacedNet::from_json(const std::vector<NamedDevice>& devices, std::string_view text,
                               const NetOptions& options, const PlacementOptions& placement) {
    return PlacedNet(std::make_shared<PlacedNetImpl>(devices, parse_net_json(text, "network"),
                                                     options, placement));
}

PlacedNetImpl& PlacedNet::impl() const {
    require(impl_ != nullptr,
            "this PlacedNet was moved from and has no network: use the one that it was moved to");
    return *impl_;
}

std::vector<PlacedNet::Part> PlacedNet::parts() const {
    std::vector<Part> parts;
    const std::vector<PartEstimate>& estimates = impl().estimates();
    for (const CutPart& cut : impl().cut().parts) {
        Part part;
        part.device = impl().devices()[cut.device].name;
        if (!estimates.empty()) {
            part.estimated_ms = estimates.at(parts.size()).seconds * 1e3;
            part.estimated_bytes = estimates.at(parts.size()).bytes;
        }
        for (const auto& op : cut.description.operators) part.operators.push_back(op.name);
        parts.push_back(std::move(part));
    }
    return parts;
}

std::vector<std::string> PlacedNet::device_names() const {
    std::vector<std::string> names;
    for (const NamedDevice& device : impl().devices()) names.push_back(device.name);
    return names;
}

const Context& PlacedNet::device(const std::string& name) const {
    const std::vector<NamedDevice>& devices = impl().devices();
    const auto found = std::find_if(devices.begin(), devices.end(),
                                    [&](const NamedDevice& each) { return each.name == name; });
    if (found == devices.end())
        fail(ErrorKind::not_found, "the network has no device '", name, "'",
             did_you_mean(name, device_names()));
    return found->context;
}

std::vector<PlacedNet::Move> PlacedNet::moves() const {
    std::vector<Move> all;
    for (const BorderMove& move : impl().borders().moves()) {
        const Crossing& crossing = impl().cut().crossings[move.crossing];
        const auto elements = static_cast<std::uint64_t>(crossing.spec.shape.numel());
        all.push_back({crossing.name, move.gradient, impl().device_name(move.from),
                       impl().device_name(move.to), elements * size_of(crossing.spec.dtype),
                       move.times});
    }
    return all;
}

std::vector<std::string> PlacedNet::input_names() const {
    std::vector<std::string> names;
    for (const ValueId id : impl().graph().inputs) names.push_back(impl().graph().value(id).name);
    return names;
}

std::vector<std::string> PlacedNet::output_names() const {
    std::vector<std::string> names;
    for (const auto& output : impl().graph().outputs) names.push_back(output.second);
    return names;
}

std::vector<std::string> PlacedNet::loss_names() const {
    std::vector<std::string> names;
    for (const auto& [id, name] : impl().graph().outputs)
        if (impl().graph().losses.count(id) > 0) names.push_back(name);
    return names;
}

std::vector<std::string> PlacedNet::param_names() const {
    return impl().param_names();
}

bool PlacedNet::is_trainable(const std::string& param) const {
    for (const Value& value : impl().graph().values)
        if (value.role == Role::parameter && value.name == param) return value.trainable;
    return false;
}

Shape PlacedNet::input_shape(const std::string& name) const {
    return impl().input_spec(name).shape;
}

DType PlacedNet::input_dtype(const std::string& name) const {
    return impl().input_spec(name).dtype;
}

std::int64_t PlacedNet::label_classes(const std::string& input) {
    std::int64_t classes = 0;
    for (const int reader : impl().readers(input))
        classes = std::max(classes, impl().part(reader).label_classes(input));
    return classes;
}

Tensor PlacedNet::input(const std::string& name) {
    return impl().input(name);
}

Tensor PlacedNet::output(const std::string& name) {
    return impl().part(impl().output_part(name)).output(name);
}

Tensor PlacedNet::param(const std::string& name) {
    return impl().part(impl().param_part(name)).param(name);
}

Tensor PlacedNet::gradient(const std::string& name) {
    const auto& params = impl().cut().param_parts;
    const auto found = params.find(name);
    const int part = found != params.end() ? found->second : impl().readers(name).front();
    return impl().part(part).gradient(name);
}

void PlacedNet::set_input(const std::string& name, const void* data, std::uint64_t bytes) {
    impl().set_input(name, data, bytes);
}

void PlacedNet::initialize(std::string_view method) {
    for (std::size_t i = 0; i < impl().cut().parts.size(); ++i)
        impl().part(static_cast<int>(i)).initialize(method);
}

void PlacedNet::load_weights(const std::string& path, bool missing_ok) {
    impl().load_weights(path, missing_ok);
}

void PlacedNet::save_weights(const std::string& path) {
    impl().save_weights(path);
}

HostTensor PlacedNet::read_param(const std::string& name) {
    return impl().part(impl().param_part(name)).read_param(name);
}

void PlacedNet::write_params(std::map<std::string, HostTensor> values, bool missing_ok) {
    impl().write_params(std::move(values), missing_ok);
}

void PlacedNet::params_changed() {
    for (std::size_t i = 0; i < impl().cut().parts.size(); ++i)
        impl().part(static_cast<int>(i)).params_changed();
}

void PlacedNet::prepare() {
    impl().prepare();
}

void PlacedNet::forward() {
    impl().require_inputs("forward()");
    impl().forward();
}

void PlacedNet::backward() {
    impl().backward();
}

std::string PlacedNet::first_nan() {
    return impl().first_nan();
}

std::map<std::string, std::uint64_t> PlacedNet::planned_peak_bytes(const SolverOptions* solver) {
    return impl().planned_peak_bytes(solver);
}

std::vector<PlacedNet::DeviceMemory> PlacedNet::plan_memory(const SolverOptions* solver) {
    return impl().plan_memory(solver);
}

std::vector<std::string> PlacedNet::notes() {
    return impl().notes();
}

}  // namespace dlprim
