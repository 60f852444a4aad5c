// SPDX-License-Identifier: MIT
// Sources of parameters' values.
#include "api/param_source.hpp"

#include "api/training/listed.hpp"
#include "base/text.hpp"
#include "train/initialize.hpp"

#include <dlprim/log.hpp>

#include <sys/stat.h>
#include <algorithm>

namespace dlprim {

namespace {

constexpr std::size_t most_names = 24;  ///< of each list in a message

std::vector<std::string> names_of(const std::map<std::string, const Value*>& parameters) {
    std::vector<std::string> names;
    names.reserve(parameters.size());
    for (const auto& item : parameters) names.push_back(item.first);
    return names;
}

/// Throws Error(format) if values of that shape and type are none of the parameter.
void check_kind(const Value& parameter, const Shape& shape, DType dtype,
                const std::string& source) {
    const TensorSpec& want = parameter.spec;
    const bool scalar = want.shape.numel() == 1 && shape.numel() == 1;
    if (shape != want.shape && !scalar)
        fail(ErrorKind::format, "parameter '", parameter.name, "' has shape ", shape.str(), " in '",
             source, "', the network expects ", want.shape.str());
    if (dtype != want.dtype && !(is_float(dtype) && is_float(want.dtype)))
        fail(ErrorKind::format, "parameter '", parameter.name, "' is ", name_of(dtype), " in '",
             source, "', the network expects ", name_of(want.dtype));
}

}  // namespace

bool is_checkpoint_state(std::string_view name) {
    return name.starts_with("solver/") || name.starts_with("run/");
}

void compare_names(const std::vector<std::string>& wanted, const std::vector<std::string>& given,
                   const std::string& source, bool missing_ok) {
    const std::set<std::string> all(wanted.begin(), wanted.end());
    const std::set<std::string> there(given.begin(), given.end());
    std::vector<std::string> missing, unused;
    for (const std::string& name : all)
        if (!there.count(name)) missing.push_back(name);
    for (const std::string& name : there)
        if (!all.count(name) && !is_checkpoint_state(name)) unused.push_back(name);
    if (!missing.empty() && !missing_ok) {
        const bool one = missing.size() == 1;
        const std::string hint = one ? did_you_mean(missing.front(), unused) : "";
        const bool both = !unused.empty() && (hint.empty() || unused.size() > 1);
        fail(
            ErrorKind::not_found, "'", source, "' has no ", one ? "parameter '" : "parameters ",
            listed(missing, most_names), one ? "'" : "", hint,
            both ? cat("; the network does not have the file's ", listed(unused, most_names)) : "");
    }
    if (!unused.empty())
        log(LogLevel::warning, cat("'", source, "' holds what the network does not have: ",
                                   listed(unused, most_names)));
}

std::map<std::string, HostTensor> fitted(std::map<std::string, HostTensor> values,
                                         const std::map<std::string, const Value*>& parameters,
                                         const std::string& source, bool missing_ok) {
    std::vector<std::string> given;
    given.reserve(values.size());
    for (const auto& item : values) given.push_back(item.first);
    compare_names(names_of(parameters), given, source, missing_ok);
    std::map<std::string, HostTensor> taken;
    for (const auto& [name, parameter] : parameters) {
        const auto found = values.find(name);
        if (found == values.end()) continue;
        check_kind(*parameter, found->second.shape, found->second.dtype, source);
        HostTensor& value = taken[name] = std::move(found->second);
        value.shape = parameter->spec.shape;
    }
    return taken;
}

void InitialValues::read(const Value& parameter, std::vector<std::byte>& data) {
    const auto count = static_cast<std::size_t>(parameter.spec.shape.numel());
    const DType dtype = parameter.spec.dtype;
    data.resize(count * size_of(dtype));
    // Floats are made in place, which saves the memory and time of a copy.
    if (dtype == DType::f32)
        return initial_values(parameter, method_, seed_, pool_,
                              {reinterpret_cast<float*>(data.data()), count});
    std::vector<float> values(count);
    initial_values(parameter, method_, seed_, pool_, values);
    convert(values.data(), DType::f32, data.data(), dtype, count);
}

void HostValues::check(const Value& parameter) const {
    const auto found = values_.find(parameter.name);
    if (found == values_.end()) {
        if (missing_) return;
        std::vector<std::string> names;
        for (const auto& item : values_) names.push_back(item.first);
        fail(ErrorKind::not_found, "there are no values for parameter '", parameter.name, "'",
             did_you_mean(parameter.name, names));
    }
    const HostTensor& given = found->second;
    const TensorSpec& want = parameter.spec;
    require(given.shape == want.shape, "the values for parameter '", parameter.name,
            "' have shape ", given.shape.str(), ", the network expects ", want.shape.str());
    require(given.dtype == want.dtype || (is_float(given.dtype) && is_float(want.dtype)),
            "the values for parameter '", parameter.name, "' are ", name_of(given.dtype),
            ", the network expects ", name_of(want.dtype));
    const auto bytes = static_cast<std::size_t>(given.shape.numel()) * size_of(given.dtype);
    require(given.data.size() == bytes, "the values for parameter '", parameter.name, "' take ",
            bytes, " bytes, got ", given.data.size());
}

void HostValues::read(const Value& parameter, std::vector<std::byte>& data) {
    const auto found = values_.find(parameter.name);
    if (found == values_.end()) return missing_->read(parameter, data);
    const TensorSpec& spec = parameter.spec;
    const auto count = static_cast<std::size_t>(spec.shape.numel());
    data.resize(count * size_of(spec.dtype));
    convert(found->second.data.data(), found->second.dtype, data.data(), spec.dtype, count);
}

WeightsFile::WeightsFile(const std::string& path, std::shared_ptr<ParamSource> missing,
                         bool missing_ok)
    : file_(std::make_shared<const InputFile>(path)),
      missing_(std::move(missing)),
      missing_ok_(missing_ok) {
    reader_.emplace(file_);
}

Hdf5Reader* WeightsFile::reader() {
    struct stat now {};
    if (!reader_ && ::stat(file_->path().c_str(), &now) == 0 &&
        now.st_dev == file_->status().st_dev && now.st_ino == file_->status().st_ino &&
        file_->is_unchanged())
        reader_.emplace(file_);
    return reader_ ? &*reader_ : nullptr;
}

void WeightsFile::check(const std::map<std::string, const Value*>& parameters) {
    std::vector<std::string> given;
    for (const Hdf5Dataset& dataset : reader_.value().datasets()) given.push_back(dataset.name);
    // A link that is not followed has a name, too, and info() says why it is refused.
    for (const auto& item : parameters)
        if (reader_->has(item.first) &&
            std::find(given.begin(), given.end(), item.first) == given.end())
            given.push_back(item.first);
    std::vector<std::string> wanted;
    for (const auto& [name, parameter] : parameters)
        if (!missing_ || !missing_->keeps(*parameter) || reader_->has(name)) wanted.push_back(name);
    compare_names(wanted, given, file_->path(), missing_ok_);
    for (const auto& item : parameters) check(*item.second);
}

void WeightsFile::check(const Value& parameter) {
    const std::string& name = parameter.name;
    const Hdf5Reader& file = reader_.value();
    if (!file.has(name)) {
        lacking_.insert(name);
        return;
    }
    const Hdf5Dataset& dataset = file.info(name);
    check_kind(parameter, dataset.shape, dataset.dtype, file_->path());
    const auto position =
        dataset.dtype == parameter.spec.dtype ? file.position(name) : std::nullopt;
    if (position) positions_[name] = *position;
}

void WeightsFile::read(const Value& parameter, std::vector<std::byte>& data) {
    const TensorSpec& spec = parameter.spec;
    const auto bytes = static_cast<std::size_t>(spec.shape.numel()) * size_of(spec.dtype);
    if (lacking_.count(parameter.name)) return missing_->read(parameter, data);
    if (const Hdf5Reader* file = reader()) {
        data.resize(bytes);
        return file->read(parameter.name, spec.dtype, data.data(), bytes);
    }
    const auto position = positions_.find(parameter.name);
    data.resize(bytes);
    if (position == positions_.end() || !file_->is_unchanged() ||
        file_->read(position->second, data.data(), bytes) != bytes || !file_->is_unchanged())
        fail(ErrorKind::io, "'", file_->path(),
             "' has changed since the network loaded its weights from "
             "it, and parameter '",
             parameter.name,
             "' is needed again: load them anew, or have the network keep them (keep_parameters)");
}

}  // namespace dlprim
