// SPDX-License-Identifier: MIT
// Net's weights files: HDF5, a dataset a parameter.
#include "api/net_impl.hpp"
#include "base/text.hpp"
#include "formats/hdf5_file.hpp"
#include "runtime/context_impl.hpp"
#include "train/initialize.hpp"

namespace dlprim {

void Net::load_weights(const std::string& path, bool missing_ok) {
    const Hdf5Reader file(path);
    std::vector<std::string> in_file;
    for (const Hdf5Dataset& dataset : file.datasets()) in_file.push_back(dataset.name);
    // Everything is checked before anything is written: a bad file changes nothing.
    for (const auto& [name, param] : impl_->params()) {
        if (!file.has(name)) {
            if (missing_ok) continue;
            fail(ErrorKind::not_found, "'", path, "' has no parameter '", name, "'",
                 did_you_mean(name, in_file));
        }
        const Hdf5Dataset& dataset = file.info(name);
        const TensorSpec& want = param.value.spec;
        const bool scalar = want.shape.numel() == 1 && dataset.shape.numel() == 1;
        if (dataset.shape != want.shape && !scalar)
            fail(ErrorKind::format, "parameter '", name, "' has shape ", dataset.shape.str(),
                 " in '", path, "', the network wants ", want.shape.str());
        if (dataset.dtype != want.dtype && !(is_float(dataset.dtype) && is_float(want.dtype)))
            fail(ErrorKind::format, "parameter '", name, "' is ", name_of(dataset.dtype), " in '",
                 path, "', the network wants ", name_of(want.dtype));
    }
    impl_->mark_filled();
    std::vector<std::byte> data;
    for (const auto& [name, param] : impl_->params()) {
        Tensor tensor = impl_->param(name);
        if (!file.has(name)) {
            tensor.copy_from(initial_values(param.value, "default", impl_->options().seed,
                                            context().impl().pool()));
            continue;
        }
        data.resize(tensor.bytes());
        file.read(name, tensor.dtype(), data.data(), data.size());
        tensor.copy_from_host(data.data(), data.size());
    }
    impl_->params_changed();
}

void Net::save_weights(const std::string& path) {
    Hdf5Writer file(path);
    std::vector<std::byte> data;
    for (const std::string& name : impl_->param_names()) {
        const Tensor tensor = impl_->param(name);
        data.resize(tensor.bytes());
        tensor.copy_to_host(data.data(), data.size());
        file.write(name, tensor.shape(), tensor.dtype(), data.data());
    }
    file.commit();
}

}  // namespace dlprim
