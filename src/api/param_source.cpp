// SPDX-License-Identifier: MIT
// Sources of parameters' values.
#include "api/param_source.hpp"

#include "base/text.hpp"
#include "train/initialize.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

namespace dlprim {

namespace {

/// Whether they are of one file, to which nobody has written in between.
bool alike(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
           a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

/// Whether the file gave so many bytes.
bool read_all(int descriptor, std::uint64_t position, std::vector<std::byte>& data) {
    for (std::size_t done = 0; done < data.size();) {
        const ssize_t got = pread(descriptor, data.data() + done, data.size() - done,
                                  static_cast<off_t>(position + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += static_cast<std::size_t>(got);
    }
    return true;
}

}  // namespace

void InitialValues::read(const Value& parameter, std::vector<std::byte>& data) {
    const std::vector<float> values = initial_values(parameter, method_, seed_, pool_);
    data.resize(values.size() * size_of(parameter.spec.dtype));
    convert(values.data(), DType::f32, data.data(), parameter.spec.dtype, values.size());
}

WeightsFile::WeightsFile(const std::string& path, std::shared_ptr<ParamSource> missing)
    : path_(path), missing_(std::move(missing)) {
    reader_.emplace(path);  // who says what is wrong with it
    descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0 || fstat(descriptor_, &as_opened_) != 0)
        fail(ErrorKind::io, "'", path, "' cannot be opened");
}

WeightsFile::~WeightsFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

Hdf5Reader* WeightsFile::reader() {
    struct stat now {};
    if (!reader_ && stat(path_.c_str(), &now) == 0 && alike(now, as_opened_))
        reader_.emplace(path_);
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
        fail(ErrorKind::not_found, "'", path_, "' has no parameter '", name, "'",
             did_you_mean(name, in_file));
    }
    const Hdf5Dataset& dataset = file.info(name);
    const TensorSpec& want = parameter.spec;
    const bool scalar = want.shape.numel() == 1 && dataset.shape.numel() == 1;
    if (dataset.shape != want.shape && !scalar)
        fail(ErrorKind::format, "parameter '", name, "' has shape ", dataset.shape.str(), " in '",
             path_, "', the network wants ", want.shape.str());
    if (dataset.dtype != want.dtype && !(is_float(dataset.dtype) && is_float(want.dtype)))
        fail(ErrorKind::format, "parameter '", name, "' is ", name_of(dataset.dtype), " in '",
             path_, "', the network wants ", name_of(want.dtype));
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
    struct stat now {};
    const auto position = positions_.find(parameter.name);
    data.resize(bytes);
    if (position == positions_.end() || fstat(descriptor_, &now) != 0 || !alike(now, as_opened_) ||
        !read_all(descriptor_, position->second, data))
        fail(ErrorKind::io, "'", path_,
             "' is not as it was when the network got its weights from "
             "it, and parameter '",
             parameter.name,
             "' is needed again: load them anew, or have the network keep them (keep_parameters)");
}

}  // namespace dlprim
