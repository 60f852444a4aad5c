// SPDX-License-Identifier: MIT
// ONNXModel, and Nets made from it.
#include <dlprim/onnx.hpp>

#include "api/model_values.hpp"
#include "api/net_impl.hpp"
#include "api/onnx_program.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/json_net.hpp"
#include "formats/onnx/import.hpp"
#include "runtime/access.hpp"

#include <algorithm>

namespace dlprim {

namespace {

/// Values that the model makes of its inputs' shapes may be parameters, because they are large. A
/// net keeps its parameters, so it cannot take shapes for which those have other values.
void check_params_stay(const std::map<std::string, onnx::HostValue>& before,
                       const std::map<std::string, onnx::HostValue>& now) {
    for (const auto& [name, value] : before) {
        const auto found = now.find(name);
        if (found == now.end() || found->second == value) continue;
        require(found->second->shape != value->shape || found->second->data == value->data,
                "with inputs of these shapes the model makes another constant '", name,
                "'; make another net for them, with the option input_shapes");
    }
}

std::shared_ptr<NetImpl> make_net(const Context& context,
                                  const std::shared_ptr<const onnx::Model>& model,
                                  const NetOptions& options) {
    onnx::ImportedNet net = onnx::import_model(*model, options.input_shapes, options.batch);
    auto impl = std::make_shared<NetImpl>(context, std::move(net.description), options);
    // Sizes that the model computes are other ones for other inputs.
    impl->describe_by([model, before = net.values](const NetOptions& now) {
        onnx::ImportedNet other = onnx::import_model(*model, now.input_shapes, now.batch);
        check_params_stay(before, other.values);
        return std::move(other.description);
    });
    impl->set_source(std::make_shared<ModelValues>(std::move(net.values)));
    return impl;
}

/// ONNXInput::dtype.
std::string type_of(const onnx::ValueInfo& info) {
    if (info.optional) return "an optional";
    if (info.kind == onnx::ValueInfo::Kind::sequence) return "a sequence";
    return info.dtype ? std::string(name_of(*info.dtype)) : info.type;
}

std::vector<ONNXInput> declared(const std::vector<onnx::ValueInfo>& values) {
    std::vector<ONNXInput> result;
    for (const onnx::ValueInfo& info : values) {
        ONNXInput one{info.name, type_of(info), {}};
        if (info.shape)
            for (const onnx::Dimension& dim : *info.shape)
                one.dims.push_back(dim.size.value_or(-1));
        result.push_back(std::move(one));
    }
    return result;
}

}  // namespace

void ONNXModel::load(const std::string& path) {
    impl_ = std::make_shared<const onnx::Model>(onnx::read_model(path));
}

void ONNXModel::parse(std::string_view bytes, const std::string& name) {
    impl_ = std::make_shared<const onnx::Model>(onnx::parse_model(bytes, name));
}

const onnx::Model& ONNXModel::impl() const {
    require(impl_ != nullptr, "this ONNXModel holds no model: load() one");
    return *impl_;
}

std::vector<ONNXInput> declared_inputs(const onnx::Model& model) {
    return declared(onnx::fed_inputs(model));
}

std::vector<ONNXInput> ONNXModel::outputs() const {
    return declared(impl().graph.outputs);
}

std::vector<ONNXInput> ONNXModel::inputs() const {
    return declared_inputs(impl());
}

std::vector<std::string> ONNXModel::output_names() const {
    std::vector<std::string> names;
    for (const onnx::ValueInfo& info : impl().graph.outputs) names.push_back(info.name);
    return names;
}

std::vector<std::string> ONNXModel::node_types() const {
    std::vector<std::string> types;
    for (const onnx::Node& node : impl().graph.nodes)
        types.push_back(node.domain.empty() ? node.type : cat(node.domain, ".", node.type));
    return types;
}

std::int64_t ONNXModel::opset() const {
    const auto found = impl().opsets.find("");
    return found == impl().opsets.end() ? 0 : found->second;
}

namespace {

/// Whether a value of this shape can be the input: as many dimensions, of the sizes that are known.
bool fits(const Shape& shape, const onnx::ValueInfo& input) {
    if (!input.shape) return true;
    if (shape.rank() != std::ssize(*input.shape)) return false;
    for (int i = 0; i < shape.rank(); ++i) {
        const std::optional<std::int64_t>& size = (*input.shape)[static_cast<std::size_t>(i)].size;
        if (size && *size != shape[i]) return false;
    }
    return true;
}

}  // namespace

std::int64_t ONNXModel::newest_opset() {
    return onnx::newest_opset;
}

ONNXModel ONNXModel::fixed(const std::map<std::string, HostTensor>& values) const {
    auto model = std::make_shared<onnx::Model>(impl());
    for (const auto& fixed_at : values) {
        const std::string& name = fixed_at.first;
        const HostTensor& value = fixed_at.second;
        const std::vector<onnx::ValueInfo> inputs = onnx::fed_inputs(*model);
        const auto input = std::find_if(inputs.begin(), inputs.end(),
                                        [&](const auto& one) { return one.name == name; });
        if (input == inputs.end())
            fail(ErrorKind::not_found, "'", model->source, "': the model has no input '", name,
                 "' to be fixed at a value");
        require(input->dtype == value.dtype, "'", model->source, "': input '", name,
                "' is of type ", input->type, ", it cannot be fixed at a value of type ",
                name_of(value.dtype));
        require(fits(value.shape, *input), "'", model->source, "': input '", name,
                "' is declared as ", input->str(), ", it cannot be fixed at a value of shape ",
                value.shape.str());
        model->graph.initializers[name] = {name, ONNXValue(value).shared_tensor(), {}};
    }
    ONNXModel result;
    result.impl_ = std::move(model);
    return result;
}

void ONNXModel::convert(const std::string& net_path, const std::string& weights_path,
                        const NetOptions& options) const {
    const onnx::ImportedNet net = onnx::import_model(impl(), options.input_shapes, options.batch);
    Hdf5Writer weights(weights_path);
    for (const auto& [name, value] : net.values)
        weights.write(name, value->shape, value->dtype, value->data.data());
    write_file_atomically(net_path, write_net_json(net.description));
    weights.commit();
}

Net Net::from_onnx_file(const Context& context, const std::string& path,
                        const NetOptions& options) {
    Net net(context, options);
    net.load_model(ONNXModel(path));
    return net;
}

void Net::load_model(const ONNXModel& model) {
    Access::impl(model);  // throws where it holds none
    impl_ = make_net(context(), Access::shared_impl(model), options());
}

}  // namespace dlprim
