// SPDX-License-Identifier: MIT
// ONNXValue; see dlprim/onnx_value.hpp.
#include <dlprim/onnx_value.hpp>

#include "base/text.hpp"

#include <utility>

namespace dlprim {

ONNXValue::ONNXValue(HostTensor tensor)
    : ONNXValue(std::make_shared<const HostTensor>(std::move(tensor))) {}

ONNXValue::ONNXValue(std::shared_ptr<const HostTensor> tensor)
    : kind_(Kind::tensor), tensor_(std::move(tensor)) {
    require(tensor_ != nullptr, "a tensor is missing");
    const auto bytes = static_cast<std::size_t>(tensor_->shape.numel()) * size_of(tensor_->dtype);
    require(tensor_->data.size() == bytes, "a tensor ", str(), " takes ", bytes, " bytes, got ",
            tensor_->data.size());
}

ONNXValue::ONNXValue(ONNXStrings strings)
    : kind_(Kind::strings), strings_(std::make_shared<const ONNXStrings>(std::move(strings))) {
    require(strings_->values.size() == static_cast<std::size_t>(strings_->shape.numel()),
            "a tensor ", str(), " has ", strings_->shape.numel(), " elements, got ",
            strings_->values.size());
}

ONNXValue::ONNXValue(Sequence sequence)
    : kind_(Kind::sequence), sequence_(std::make_shared<const Sequence>(std::move(sequence))) {}

ONNXValue::ONNXValue(ONNXMaps maps)
    : kind_(Kind::maps), maps_(std::make_shared<const ONNXMaps>(std::move(maps))) {
    const Shape& shape = maps_->values.shape;
    const std::size_t keys = maps_->texts.size() + maps_->numbers.size();
    require(shape.rank() == 2 && shape[1] == static_cast<std::int64_t>(keys) &&
                maps_->values.dtype == DType::f32,
            "the values of maps of ", keys, " keys are ", name_of(maps_->values.dtype), " ",
            shape.str());
}

const HostTensor& ONNXValue::tensor() const {
    return *shared_tensor();
}

const std::shared_ptr<const HostTensor>& ONNXValue::shared_tensor() const {
    require(kind_ == Kind::tensor, "a tensor is needed, the value is ", str());
    return tensor_;
}

const ONNXStrings& ONNXValue::strings() const {
    require(kind_ == Kind::strings, "a tensor of strings is needed, the value is ", str());
    return *strings_;
}

const ONNXValue::Sequence& ONNXValue::sequence() const {
    require(kind_ == Kind::sequence, "a sequence is needed, the value is ", str());
    return *sequence_;
}

const ONNXMaps& ONNXValue::maps() const {
    require(kind_ == Kind::maps, "a sequence of maps is needed, the value is ", str());
    return *maps_;
}

std::string ONNXValue::str() const {
    switch (kind_) {
        case Kind::tensor:
            return cat(name_of(tensor_->dtype), " ", tensor_->shape.str());
        case Kind::strings:
            return cat("string ", strings_->shape.str());
        case Kind::sequence:
            return cat("a sequence of ", sequence_->size());
        case Kind::maps:
            return cat("a sequence of ", maps_->values.shape[0], " maps");
        case Kind::none:
            break;
    }
    return "none";
}

}  // namespace dlprim
