// SPDX-License-Identifier: MIT
// ValueMemory: which values of a model are in which memory.
#include "api/model_values.hpp"

#include "base/text.hpp"
#include "runtime/access.hpp"
#include "runtime/context_impl.hpp"

namespace dlprim {

Tensor ValueMemory::of(const Context& context, const onnx::HostValue& value,
                       const TensorSpec& spec) {
    const ContextImpl& device = Access::impl(context);
    Known& known = known_[{&device, value.get(), spec.dtype}];
    // The address may be that of a value that is gone.
    if (known.value.lock() == value)
        if (std::shared_ptr<Buffer> memory = known.memory.lock())
            return Access::tensor(context, std::move(memory), 0, spec.shape, spec.dtype);
    Tensor tensor;
    if (device.is_host() && value->dtype == spec.dtype) {
        // Nets of inference only read it.
        const auto owner = std::const_pointer_cast<HostTensor>(value);
        tensor = Tensor::wrap_host(context, owner->data.data(), spec.shape, spec.dtype, owner);
    } else {
        const auto count = static_cast<std::size_t>(spec.shape.numel());
        std::vector<std::byte> data(count * size_of(spec.dtype));
        convert(value->data.data(), value->dtype, data.data(), spec.dtype, count);
        tensor = Tensor(context, spec.shape, spec.dtype);
        tensor.copy_from_host(data.data(), data.size());
    }
    known = {value, Access::buffer(tensor)};
    return tensor;
}

std::string ValueMemory::identity(const onnx::HostValue& value) {
    Numbered& known = numbers_[value.get()];
    // The address may be that of a value that is gone.
    if (known.value.lock() != value) known = {value, ++last_};
    return cat("value ", known.number);
}

void ValueMemory::forget_unused() {
    std::erase_if(known_, [](const auto& entry) { return entry.second.memory.expired(); });
    std::erase_if(numbers_, [](const auto& entry) { return entry.second.value.expired(); });
}

}  // namespace dlprim
