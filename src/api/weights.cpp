// SPDX-License-Identifier: MIT
// Net's weights: in HDF5 files, one dataset per parameter, and in host memory.
#include "api/net_impl.hpp"
#include "base/text.hpp"
#include "formats/preprocessing.hpp"
#include "runtime/context_impl.hpp"

namespace dlprim {

namespace {

std::map<std::string, const Value*> values_of(NetImpl& net) {
    std::map<std::string, const Value*> parameters;
    for (const auto& [name, param] : net.params()) parameters[name] = &param.value;
    return parameters;
}

}  // namespace

void Net::load_weights(const std::string& path, bool missing_ok) {
    std::shared_ptr<ParamSource> missing;
    if (missing_ok)
        missing = std::make_shared<InitialValues>("default", impl().options().seed,
                                                  Access::impl(context()).pool());
    auto file = std::make_shared<WeightsFile>(path, std::move(missing));
    // Everything is checked before anything is written, so that a bad file changes nothing.
    file->check(values_of(impl()));
    impl().fill_from(std::move(file), true);
}

void Net::load_weights(std::map<std::string, HostTensor> values, const std::string& source,
                       bool missing_ok) {
    write_params(fitted(std::move(values), values_of(impl()), source, missing_ok), missing_ok);
}

void Net::save_weights(const std::string& path) {
    impl().save(path, nullptr);
}

void Net::save_weights(const std::string& path, const Preprocessing& how) {
    impl().save(path, &how);
}

void NetImpl::save(const std::string& path, const Preprocessing* how) {
    require_params("save_weights()");
    Hdf5Writer file(path);
    std::vector<std::byte> data;
    for (const std::string& name : param_names()) {
        read_param(name, data);
        const TensorSpec& spec = params().at(name).value.spec;
        file.write(name, spec.shape, spec.dtype, data.data());
    }
    if (how != nullptr) write_preprocessing(file, *how);
    file.commit();
}

HostTensor Net::read_param(const std::string& name) {
    const TensorSpec& spec = impl().param_spec(name);
    impl().require_params("read_param()");
    HostTensor values{spec.shape, spec.dtype, {}};
    impl().read_param(name, values.data);
    return values;
}

void Net::write_params(std::map<std::string, HostTensor> values, bool missing_ok) {
    for (const auto& [name, value] : values)
        impl().param_spec(name);  // throws if it does not exist
    std::shared_ptr<ParamSource> missing;
    if (missing_ok)
        missing = std::make_shared<InitialValues>("default", impl().options().seed,
                                                  Access::impl(context()).pool());
    auto source =
        std::make_shared<HostValues>(std::move(values), std::move(missing), impl().lets_go());
    for (const auto& [name, param] : impl().params()) source->check(param.value);
    impl().fill_from(std::move(source), true);
}

}  // namespace dlprim
