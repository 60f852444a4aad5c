// SPDX-License-Identifier: MIT
// ModelValues: the values that an ONNX model holds, as the source of a net's parameters. They are
// shared with the model.
#pragma once

#include "api/param_source.hpp"
#include "formats/onnx/builder.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

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

}  // namespace dlprim
