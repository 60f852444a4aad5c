// SPDX-License-Identifier: MIT
// NetCore: the parameters of all stages in HDF5 files, one dataset per parameter, and in host
// memory.
#include "api/net_impl.hpp"
#include "base/blocks.hpp"
#include "base/text.hpp"
#include "formats/preprocessing.hpp"
#include "graph/operator.hpp"
#include "runtime/context_impl.hpp"

#include <algorithm>

namespace dlprim {

std::map<std::string, const Value*> NetCore::values() const {
    std::map<std::string, const Value*> parameters;
    for (const auto& [name, param] : params_) parameters[name] = &param.value;
    return parameters;
}

namespace {

/// Adds the types of the parameters that are stored in GGUF's blocks, by name.
void add_blocks(const Graph& graph, std::map<std::string, std::string>& types) {
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
}

std::map<std::string, std::string> blocks_of(NetCore& net) {
    std::map<std::string, std::string> types;
    for (int i = 0; i < net.stages(); ++i) add_blocks(net.stage(i).base_graph(), types);
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

std::shared_ptr<ParamSource> NetCore::missing_values(bool missing_ok) const {
    if (!missing_ok) return nullptr;
    return std::make_shared<InitialValues>("default", options_.seed,
                                           Access::impl(context()).pool());
}

void NetCore::fill_all_from(const std::shared_ptr<ParamSource>& source) {
    for (int i = 0; i < stages(); ++i)
        if (NetImpl& net = stage(i); !net.params().empty()) net.fill_from(source, true);
    source->close();
}

void NetCore::load_weights(const std::string& path, bool missing_ok) {
    const auto kept = [this](const std::string& name) { return is_kept(name); };
    const std::vector<std::string> names = param_names();
    auto missing = missing_values(missing_ok);
    if (!missing_ok && std::any_of(names.begin(), names.end(), kept)) missing = stage(0).source();
    auto file = std::make_shared<WeightsFile>(path, missing, missing_ok);
    // Everything is checked before anything is written, so that a bad file changes nothing.
    file->check(values());
    check_blocks(path, blocks_of(*this));
    fill_all_from(file);
}

void NetCore::load_weights(std::map<std::string, HostTensor> values, const std::string& source,
                           bool missing_ok) {
    write_params(fitted(std::move(values), this->values(), source, missing_ok), missing_ok);
}

void NetCore::write_params(std::map<std::string, HostTensor> values, bool missing_ok) {
    for (const auto& [name, value] : values) param_spec(name);  // throws if it does not exist
    const auto source =
        std::make_shared<HostValues>(std::move(values), missing_values(missing_ok), lets_go());
    for (const auto& [name, param] : params_) source->check(param.value);
    fill_all_from(source);
}

void NetCore::require_all_params(std::string_view action) {
    for (int i = 0; i < stages(); ++i) stage(i).require_params(action);
}

bool NetCore::is_kept(const std::string& name) {
    const std::shared_ptr<ParamSource>& source = stage(stage_of_param(name)).source();
    return source && source->keeps(params_.at(name).value);
}

HostTensor NetCore::read_param(const std::string& name) {
    const TensorSpec& spec = param_spec(name);
    NetImpl& net = stage(stage_of_param(name));
    net.require_params("read_param()");
    HostTensor values{spec.shape, spec.dtype, {}};
    net.read_values(name, values.data);
    return values;
}

void NetCore::save_weights(const std::string& path, const Preprocessing* how) {
    require_all_params("save_weights()");
    Hdf5Writer file(path);
    const std::map<std::string, std::string> types = blocks_of(*this);
    for (const std::string& name : param_names()) {
        const HostTensor values = read_param(name);
        file.write(name, values.shape, values.dtype, values.data.data());
        const auto blocks = types.find(name);
        if (blocks == types.end()) continue;
        file.attribute(name, "dtype", blocks->second);
        file.attribute(
            name, "shape",
            Ints{values.shape[0], block_weights(block_type(blocks->second), values.shape[1])});
    }
    if (how != nullptr) write_preprocessing(file, *how);
    file.commit();
}

}  // namespace dlprim
