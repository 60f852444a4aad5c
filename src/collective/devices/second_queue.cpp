// SPDX-License-Identifier: MIT
// A second queue of a device.
#include "collective/devices/second_queue.hpp"

#include "runtime/context_impl.hpp"
#include "runtime/devices.hpp"

#include <memory>
#include <utility>

namespace dlprim {

Context beside(const Context& context) {
    const ContextImpl& impl = Access::impl(context);
    if (impl.is_host()) return ContextImpl::context_of(make_host_context());
    const OpenCLObjects given{impl.cl_context_handle(), nullptr};
    for (const OpenCLDevice& device : opencl_devices())
        if (device.device == impl.cl_device_handle())
            return ContextImpl::context_of(make_opencl_context(device, given));
    return ContextImpl::context_of(
        make_opencl_context(opencl_device_of(impl.cl_device_handle()), given));
}

Tensor elements_of(const Context& context, const Tensor& tensor, std::int64_t begin,
                   std::int64_t count) {
    const std::uint64_t offset =
        tensor.byte_offset() + static_cast<std::uint64_t>(begin) * size_of(tensor.dtype());
    std::shared_ptr<Buffer> buffer = Access::buffer(tensor);
    ContextImpl& impl = Access::impl(context);
    if (&impl == &Access::impl(tensor.context()))
        return Access::tensor(context, std::move(buffer), offset, Shape{count}, tensor.dtype());
    void* const memory = impl.is_host() ? buffer->host() : buffer->handle();
    const std::uint64_t before = impl.is_host() ? 0 : buffer->offset();
    return Access::tensor(context, impl.wrap(memory, before + buffer->bytes()), before + offset,
                          Shape{count}, tensor.dtype());
}

Tensor StagingTensors::take(const Context& context, std::int64_t elements, DType dtype) {
    if (taken_ == all_.size()) all_.emplace_back();
    Tensor& memory = all_[taken_++];
    const auto bytes = static_cast<std::int64_t>(size_of(dtype)) * elements;
    if (!memory.defined() || memory.shape().numel() < bytes)
        memory = Tensor(context, Shape{bytes}, DType::u8);
    return Access::tensor(context, Access::buffer(memory), 0, Shape{elements}, dtype);
}

}  // namespace dlprim
