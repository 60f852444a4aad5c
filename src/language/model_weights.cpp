// SPDX-License-Identifier: MIT
// ModelWeights.
#include "language/model_weights.hpp"

#include "api/net_impl.hpp"
#include "base/blocks.hpp"
#include "base/text.hpp"
#include "language/network.hpp"

namespace dlprim::language {

namespace {

bool is_table(const Value& parameter) {
    return parameter.name == cosines || parameter.name == sines;
}

}  // namespace

void ModelWeights::check(const Value& parameter) const {
    if (is_table(parameter)) return;
    const Shape shape = file_->shape(parameter.name).value();
    const std::string blocks = file_->blocks(parameter.name);
    Shape wanted = parameter.spec.shape;
    if (!blocks.empty()) wanted = Shape{wanted[0], block_weights(block_type(blocks), wanted[1])};
    if (shape != wanted)
        fail(ErrorKind::format, "tensor '", parameter.name, "' of '", file_->path(), "' has shape ",
             shape.str(), ", by the model's sizes it has ", wanted.str());
}

void ModelWeights::read(const Value& parameter, std::vector<std::byte>& data) {
    const auto count = static_cast<std::size_t>(parameter.spec.shape.numel());
    data.resize(count * size_of(parameter.spec.dtype));
    if (parameter.spec.dtype == DType::u8)
        return file_->read_blocks(parameter.name, data.data(), data.size());
    auto* values = reinterpret_cast<float*>(data.data());
    if (is_table(parameter))
        fill_rotary_table(sizes_, parameter.name == sines, parameter.spec.shape[0], values);
    else
        file_->read(parameter.name, values);
}

void supply(NetImpl& net, const std::shared_ptr<ModelWeights>& weights) {
    for (const auto& [name, parameter] : net.params()) weights->check(parameter.value);
    net.set_source(weights);
}

}  // namespace dlprim::language
