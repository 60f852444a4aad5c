// SPDX-License-Identifier: MIT
// ModelValues: the values that an ONNX model holds, as the source of a net's parameters. They are
// shared with the model, and their memory on devices by all nets of a session.
#pragma once

#include "api/param_source.hpp"
#include "formats/onnx/builder.hpp"
#include "runtime/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace dlprim {

/// The memory of a model's values on devices: one tensor for each value, type and device, as long
/// as a net reads it. The host reads a value of the right type where the model has it.
class ValueMemory {
  public:
    Tensor of(const Context& context, const onnx::HostValue& value, const TensorSpec& spec);
    /// A text for a value that no other one has had or will have.
    std::string identity(const onnx::HostValue& value);
    /// Forgets the values that no net reads any more.
    void forget_unused();

  private:
    struct Known {
        std::weak_ptr<const HostTensor> value;
        std::weak_ptr<Buffer> memory;
    };
    std::map<std::tuple<const ContextImpl*, const HostTensor*, DType>, Known> known_;
    struct Numbered {
        std::weak_ptr<const HostTensor> value;
        std::uint64_t number = 0;
    };
    std::map<const HostTensor*, Numbered> numbers_;
    std::uint64_t last_ = 0;
};

class ModelValues : public ParamSource {
  public:
    /// `memory` outlives the nets. Null: a net has memory of its own.
    explicit ModelValues(std::map<std::string, onnx::HostValue> values,
                         ValueMemory* memory = nullptr)
        : values_(std::move(values)), memory_(memory) {}
    std::string identity(const Value& parameter) override {
        if (memory_ == nullptr) return parameter.name;
        return memory_->identity(values_.at(parameter.name));
    }
    Tensor shared(const Context& context, const Value& parameter) override {
        if (memory_ == nullptr) return {};
        return memory_->of(context, values_.at(parameter.name), parameter.spec);
    }
    void read(const Value& parameter, std::vector<std::byte>& data) override {
        const HostTensor& value = *values_.at(parameter.name);
        const TensorSpec& spec = parameter.spec;
        const auto count = static_cast<std::size_t>(spec.shape.numel());
        data.resize(count * size_of(spec.dtype));
        convert(value.data.data(), value.dtype, data.data(), spec.dtype, count);
    }

  private:
    std::map<std::string, onnx::HostValue> values_;
    ValueMemory* memory_;
};

}  // namespace dlprim
