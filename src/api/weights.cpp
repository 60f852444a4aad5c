// SPDX-License-Identifier: MIT
// Net's weights: in HDF5 files, one dataset per parameter, and in host memory.
#include "api/net_impl.hpp"
#include "base/blocks.hpp"
#include "base/text.hpp"
#include "formats/preprocessing.hpp"
#include "graph/operator.hpp"
#include "runtime/context_impl.hpp"

namespace dlprim {

namespace {

std::map<std::string, const Value*> values_of(NetImpl& net) {
    std::map<std::string, const Value*> parameters;
    for (const auto& [name, param] : net.params()) parameters[name] = &param.value;
    return parameters;
}

/// The types of the parameters that are stored in GGUF's blocks, by name.
std::map<std::string, std::string> blocks_of(const Graph& graph) {
    std::map<std::string, std::string> types;
    for (const Node& node : graph.nodes) {
        const Attr* const blocks = node.attrs.find("blocks");
        if (blocks == nullptr || std::get<std::string>(*blocks).empty()) continue;
        ValueId weight = node.inputs.at(1);
        const NodeId made_by = graph.value(weight).producer;
        if (made_by >= 0 &&
            graph.nodes[static_cast<std::size_t>(made_by)].op->type() == "Parameter")
            weight = graph.nodes[static_cast<std::size_t>(made_by)].inputs.at(0);
        if (graph.value(weight).role == Role::parameter)
            types[graph.value(weight).name] = std::get<std::string>(*blocks);
    }
    return types;
}

/// Throws Error(format) if a file says that a parameter has blocks of another type.
void check_blocks(const std::string& path, const std::map<std::string, std::string>& types) {
    if (types.empty()) return;
    const Hdf5Reader file(path);
    for (const auto& [name, type] : types) {
        if (!file.has(name)) continue;
        const std::optional<Attr> said = file.attribute(name, "dtype");
        const auto* const text = said ? std::get_if<std::string>(&*said) : nullptr;
        if (text != nullptr && *text != type)
            fail(ErrorKind::format, "parameter '", name, "' has blocks of ", *text, " in '", path,
                 "', the network expects ", type);
    }
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
    check_blocks(path, blocks_of(impl().base_graph()));
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
    const std::map<std::string, std::string> types = blocks_of(base_);
    std::vector<std::byte> data;
    for (const std::string& name : param_names()) {
        read_param(name, data);
        const TensorSpec& spec = params().at(name).value.spec;
        file.write(name, spec.shape, spec.dtype, data.data());
        const auto blocks = types.find(name);
        if (blocks == types.end()) continue;
        file.attribute(name, "dtype", blocks->second);
        file.attribute(
            name, "shape",
            Ints{spec.shape[0], block_weights(block_type(blocks->second), spec.shape[1])});
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
