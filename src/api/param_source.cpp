// SPDX-License-Identifier: MIT
// Sources of parameters' values.
#include "api/param_source.hpp"

#include "base/text.hpp"
#include "train/initialize.hpp"

#include <sys/stat.h>

namespace dlprim {

void InitialValues::read(const Value& parameter, std::vector<std::byte>& data) {
    const std::vector<float> values = initial_values(parameter, method_, seed_, pool_);
    data.resize(values.size() * size_of(parameter.spec.dtype));
    convert(values.data(), DType::f32, data.data(), parameter.spec.dtype, values.size());
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

WeightsFile::WeightsFile(const std::string& path, std::shared_ptr<ParamSource> missing)
    : file_(std::make_shared<const InputFile>(path)), missing_(std::move(missing)) {
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

void WeightsFile::check(const Value& parameter) {
    const std::string& name = parameter.name;
    const Hdf5Reader& file = reader_.value();
    if (!file.has(name)) {
        if (missing_) {
            lacking_.insert(name);
            return;
        }
        std::vector<std::string> in_file;
        for (const Hdf5Dataset& dataset : file.datasets()) in_file.push_back(dataset.name);
        fail(ErrorKind::not_found, "'", file_->path(), "' has no parameter '", name, "'",
             did_you_mean(name, in_file));
    }
    const Hdf5Dataset& dataset = file.info(name);
    const TensorSpec& want = parameter.spec;
    const bool scalar = want.shape.numel() == 1 && dataset.shape.numel() == 1;
    if (dataset.shape != want.shape && !scalar)
        fail(ErrorKind::format, "parameter '", name, "' has shape ", dataset.shape.str(), " in '",
             file_->path(), "', the network expects ", want.shape.str());
    if (dataset.dtype != want.dtype && !(is_float(dataset.dtype) && is_float(want.dtype)))
        fail(ErrorKind::format, "parameter '", name, "' is ", name_of(dataset.dtype), " in '",
             file_->path(), "', the network expects ", name_of(want.dtype));
    const auto position = dataset.dtype == want.dtype ? file.position(name) : std::nullopt;
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
