// SPDX-License-Identifier: MIT
// ONNXModel, and Nets made from it.
#include <dlprim/onnx.hpp>

#include "api/net_impl.hpp"
#include "base/env.hpp"
#include "base/text.hpp"
#include "formats/hdf5_file.hpp"
#include "formats/json_net.hpp"
#include "formats/onnx/import.hpp"
#include "runtime/access.hpp"

namespace dlprim {

namespace {

/// The values that a model holds, shared with it.
class ModelValues : public ParamSource {
  public:
    explicit ModelValues(std::map<std::string, onnx::HostValue> values)
        : values_(std::move(values)) {}
    void read(const Value& parameter, std::vector<std::byte>& data) override {
        const HostTensor& value = *values_.at(parameter.name);
        const TensorSpec& spec = parameter.spec;
        const auto count = static_cast<std::size_t>(spec.shape.numel());
        data.resize(count * size_of(spec.dtype));
        convert(value.data.data(), value.dtype, data.data(), spec.dtype, count);
    }

  private:
    std::map<std::string, onnx::HostValue> values_;
};

std::shared_ptr<NetImpl> make_net(const Context& context, std::shared_ptr<const onnx::Model> model,
                                  const NetOptions& options) {
    onnx::ImportedNet net = onnx::import_model(*model, options.input_shapes, options.batch);
    auto impl = std::make_shared<NetImpl>(context, std::move(net.description), options);
    // Sizes that the model computes are other ones for other inputs.
    impl->describe_by([model](const NetOptions& now) {
        return onnx::import_model(*model, now.input_shapes, now.batch).description;
    });
    impl->set_source(std::make_shared<ModelValues>(std::move(net.values)));
    return impl;
}

}  // namespace

void ONNXModel::load(const std::string& path) {
    impl_ = std::make_shared<const onnx::Model>(onnx::read_model(path));
}

const onnx::Model& ONNXModel::impl() const {
    require(impl_ != nullptr, "this ONNXModel holds no model: load() one");
    return *impl_;
}

std::vector<ONNXInput> ONNXModel::inputs() const {
    std::vector<ONNXInput> result;
    for (const onnx::ValueInfo& info : onnx::fed_inputs(impl())) {
        ONNXInput input{info.name, info.dtype ? std::string(name_of(*info.dtype)) : info.type, {}};
        if (info.shape)
            for (const onnx::Dimension& dim : *info.shape)
                input.dims.push_back(dim.size.value_or(-1));
        result.push_back(std::move(input));
    }
    return result;
}

std::vector<std::string> ONNXModel::output_names() const {
    std::vector<std::string> names;
    for (const onnx::ValueInfo& info : impl().graph.outputs) names.push_back(info.name);
    return names;
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
