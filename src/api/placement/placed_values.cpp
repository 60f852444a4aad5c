// SPDX-License-Identifier: MIT
// PlacedNetImpl: which part has a value by its name, and parameters in files.
#include "api/net_impl.hpp"
#include "api/placement/placed_net_impl.hpp"
#include "base/text.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/preprocessing.hpp"
#include "runtime/access.hpp"

#include <algorithm>
#include <utility>

namespace dlprim {

namespace {

int find_part(const std::map<std::string, int>& parts, const std::string& name, const char* what) {
    if (const auto found = parts.find(name); found != parts.end()) return found->second;
    std::vector<std::string> names;
    names.reserve(parts.size());
    for (const auto& [other, part] : parts) names.push_back(other);
    fail(ErrorKind::not_found, "the network has no ", what, " '", name, "'",
         did_you_mean(name, names));
}

}  // namespace

const std::vector<int>& PlacedNetImpl::readers(const std::string& input) const {
    input_spec(input);  // throws if it does not exist
    const auto found =
        std::find_if(cut_.crossings.begin(), cut_.crossings.end(), [&](const Crossing& crossing) {
            return crossing.maker == Crossing::caller && crossing.name == input;
        });
    return found->readers;
}

int PlacedNetImpl::output_part(const std::string& name) const {
    return find_part(cut_.output_parts, name, "output");
}

int PlacedNetImpl::param_part(const std::string& name) const {
    return find_part(cut_.param_parts, name, "parameter");
}

const TensorSpec& PlacedNetImpl::input_spec(const std::string& name) const {
    std::vector<std::string> names;
    for (const ValueId id : whole_.inputs) {
        if (whole_.value(id).name == name) return whole_.spec(id);
        names.push_back(whole_.value(id).name);
    }
    fail(ErrorKind::not_found, "the network has no input '", name, "'", did_you_mean(name, names));
}

std::vector<std::string> PlacedNetImpl::param_names() const {
    std::vector<std::string> names;
    for (const Value& value : whole_.values)
        if (value.role == Role::parameter) names.push_back(value.name);
    return names;
}

void PlacedNetImpl::load_weights(const std::string& path, bool missing_ok) {
    load_values(load_tensors(path), path, missing_ok);
}

void PlacedNetImpl::load_values(std::map<std::string, HostTensor> values, const std::string& source,
                                bool missing_ok) {
    std::map<std::string, const Value*> parameters;
    for (const Value& value : whole_.values)
        if (value.role == Role::parameter) parameters[value.name] = &value;
    write_params(fitted(std::move(values), parameters, source, missing_ok), missing_ok);
}

void PlacedNetImpl::write_params(std::map<std::string, HostTensor> values, bool missing_ok) {
    std::vector<std::map<std::string, HostTensor>> by_part(nets_.size());
    for (auto& value : values)
        by_part[static_cast<std::size_t>(param_part(value.first))].emplace(value.first,
                                                                           std::move(value.second));
    for (std::size_t i = 0; i < nets_.size(); ++i)
        if (!nets_[i].param_names().empty())
            part(static_cast<int>(i)).write_params(std::move(by_part[i]), missing_ok);
}

void PlacedNetImpl::save_weights(const std::string& path, const Preprocessing* how) {
    for (const Net& net : nets_) Access::impl(net).require_params("save_weights()");
    Hdf5Writer file(path);
    for (const std::string& name : param_names()) {
        const HostTensor values = part(param_part(name)).read_param(name);
        file.write(name, values.shape, values.dtype, values.data.data());
    }
    if (how != nullptr) write_preprocessing(file, *how);
    file.commit();
}

}  // namespace dlprim
