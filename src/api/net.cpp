// SPDX-License-Identifier: MIT
// Net: the public face of NetImpl.
#include <dlprim/net.hpp>

#include "api/net_impl.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/json_net.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace dlprim {

namespace {

template <typename Map>
Tensor find_tensor(const Map& map, const std::string& name, const char* what) {
    if (const auto found = map.find(name); found != map.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& item : map) names.push_back(item.first);
    fail(ErrorKind::not_found, "the network has no ", what, " '", name, "'", did_you_mean(name, names),
         names.empty() ? "" : cat("; there ", names.size() == 1 ? "is " : "are ", join(names, ", ")));
}

/// Class numbers must be whole and below the number of classes; kernels do not check.
void check_labels(const std::string& name, DType dtype, const void* data, std::int64_t count, std::int64_t classes) {
    std::vector<double> labels(static_cast<std::size_t>(count));
    convert(data, dtype, labels.data(), DType::f64, static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const double label = labels[i];
        require(label >= 0 && label < static_cast<double>(classes) && label == std::floor(label), "input '", name,
                "' holds label ", label, " at position ", i, "; labels are whole numbers from 0 to ", classes - 1);
    }
}

}  // namespace

Net::Net(std::unique_ptr<NetImpl> impl) : impl_(std::move(impl)) {}
Net::~Net() = default;
Net::Net(Net&&) noexcept = default;
Net& Net::operator=(Net&&) noexcept = default;

Net Net::from_json_file(const Context& context, const std::string& path, const NetOptions& options) {
    return Net(std::make_unique<NetImpl>(context, parse_net_json(read_file(path), path), options));
}

Net Net::from_json(const Context& context, std::string_view text, const NetOptions& options) {
    return Net(std::make_unique<NetImpl>(context, parse_net_json(text, "network"), options));
}

const Context& Net::context() const { return impl_->context(); }

std::vector<std::string> Net::input_names() const {
    std::vector<std::string> names;
    for (ValueId id : impl_->base_graph().inputs) names.push_back(impl_->base_graph().value(id).name);
    return names;
}

std::vector<std::string> Net::output_names() const {
    std::vector<std::string> names;
    for (const auto& output : impl_->base_graph().outputs) names.push_back(output.second);
    return names;
}

std::vector<std::string> Net::loss_names() const {
    std::vector<std::string> names;
    for (const auto& output : impl_->base_graph().outputs)
        if (impl_->base_graph().losses.count(output.first)) names.push_back(output.second);
    return names;
}

std::vector<std::string> Net::param_names() const { return impl_->param_names(); }

bool Net::is_trainable(const std::string& param) const {
    const auto found = impl_->params().find(param);
    return found != impl_->params().end() && found->second.value.trainable;
}

Tensor Net::input(const std::string& name) { return find_tensor(impl_->built().inputs, name, "input"); }
Tensor Net::output(const std::string& name) { return find_tensor(impl_->built().outputs, name, "output"); }
Tensor Net::param(const std::string& name) { return impl_->param(name); }
Tensor Net::gradient(const std::string& name) { return find_tensor(impl_->built().gradients, name, "gradient of"); }
Tensor Net::output_gradient(const std::string& name) {
    return find_tensor(impl_->built().output_gradients, name, "output gradient of");
}

void Net::set_input(const std::string& name, const void* data, std::uint64_t bytes) {
    Tensor tensor = input(name);
    require(bytes == tensor.bytes(), "input '", name, "' of shape ", tensor.shape().str(), " takes ", tensor.bytes(),
            " bytes, got ", bytes);
    const auto& classes = impl_->built().classes;
    if (const auto found = classes.find(name); found != classes.end())
        check_labels(name, tensor.dtype(), data, tensor.shape().numel(), found->second);
    tensor.copy_from_host(data, bytes);
}

void Net::initialize(std::string_view method) { impl_->initialize(method); }
void Net::params_changed() { impl_->params_changed(); }
void Net::prepare() { impl_->built(); }
void Net::forward() { impl_->forward(); }
void Net::backward() { impl_->backward(); }
void Net::reshape(std::int64_t batch) { impl_->reshape(batch, {}); }
void Net::reshape(const std::map<std::string, Shape>& input_shapes) { impl_->reshape(0, input_shapes); }

std::uint64_t Net::planned_peak_bytes() { return impl_->built().executor->plan().peak_bytes; }
std::string Net::memory_report() { return impl_->built().executor->plan().memory; }
std::vector<std::string> Net::notes() { return impl_->built().executor->plan().notes; }

std::vector<NodeReport> Net::nodes() {
    std::vector<NodeReport> reports;
    for (const Step& step : impl_->built().executor->plan().steps) {
        NodeReport report;
        report.name = step.name;
        report.type = step.type;
        report.engine = step.engine ? std::string(step.engine->name()) : "";
        report.device = context().info().id;
        report.fused = step.fused;
        report.gflop = step.flops * 1e-9;
        report.gbytes = step.bytes * 1e-9;
        report.bound_ms = step.bound_seconds * 1e3;
        reports.push_back(std::move(report));
    }
    return reports;
}

std::vector<NodeReport> Net::profile(bool whole_step) {
    Executor& executor = *impl_->built().executor;
    std::vector<double> ms;
    executor.run_profiled(Part::forward, ms);
    if (whole_step)
        for (Part part : {Part::backward, Part::accumulate, Part::update}) executor.run_profiled(part, ms);
    std::vector<NodeReport> reports = nodes();
    for (std::size_t i = 0; i < reports.size() && i < ms.size(); ++i) reports[i].ms = ms[i];
    return reports;
}

std::string Net::first_nan() {
    Executor& executor = *impl_->built().executor;
    std::string found;
    std::vector<float> host;
    executor.run_stepwise(Part::forward, [&](const Step& step) {
        if (step.written_dtype != DType::f32) return true;
        for (const auto& [place, bytes] : step.written) {
            host.resize(bytes / sizeof(float));
            executor.read(place, host.data(), host.size() * sizeof(float));
            if (std::all_of(host.begin(), host.end(), [](float v) { return std::isfinite(v); })) continue;
            found = step.name;
            return false;
        }
        return true;
    });
    return found;
}

}  // namespace dlprim
