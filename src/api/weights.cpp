// SPDX-License-Identifier: MIT
// Net's weights files: HDF5, a dataset a parameter.
#include "api/net_impl.hpp"
#include "runtime/context_impl.hpp"

namespace dlprim {

void Net::load_weights(const std::string& path, bool missing_ok) {
    std::shared_ptr<ParamSource> missing;
    if (missing_ok)
        missing = std::make_shared<InitialValues>("default", impl().options().seed,
                                                  context().impl().pool());
    auto file = std::make_shared<WeightsFile>(path, std::move(missing));
    // Everything is checked before anything is written: a bad file changes nothing.
    for (const auto& [name, param] : impl().params()) file->check(param.value);
    impl().fill_from(std::move(file), true);
}

void Net::save_weights(const std::string& path) {
    impl().require_params("save_weights()");
    Hdf5Writer file(path);
    std::vector<std::byte> data;
    for (const std::string& name : impl().param_names()) {
        impl().read_param(name, data);
        const TensorSpec& spec = impl().params().at(name).value.spec;
        file.write(name, spec.shape, spec.dtype, data.data());
    }
    file.commit();
}

}  // namespace dlprim
