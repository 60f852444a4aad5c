// SPDX-License-Identifier: MIT
// CopyLaunches: strided copies by kernels or by the host's threads (engine/strided_copy.hpp).
#include "exec/copy_launches.hpp"

#include <array>
#include <span>
#include <utility>

namespace dlprim {

namespace {

std::shared_ptr<Launch> make_copy(ContextImpl& context, const StridedCopy& copy) {
    if (context.is_host())
        return std::make_shared<HostLaunch>(
            [copy](HostPool& pool, std::span<const BufferRef> operands) {
                host_copy(pool, copy, operands[0].host(), operands[1].host());
            });
    auto launch = std::make_shared<KernelLaunch>();
    add_copy(*launch, context, copy, 0, 1);
    return launch;
}

}  // namespace

void CopyLaunches::copy(ContextImpl& context, const Shape& shape, std::size_t element_bytes,
                        const StridedPlace& from, const StridedPlace& to) {
    if (shape.empty()) return;
    key_.assign(1, static_cast<char>(element_bytes));
    const auto append = [&](std::span<const std::int64_t> numbers) {
        key_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    };
    append(shape.dims());
    append(from.strides);
    append(to.strides);
    const auto* found = launches_.find(key_);
    if (found == nullptr) {
        const StridedCopy copy{shape.to_vector(), from.strides, to.strides, 0, 0, element_bytes};
        found = &launches_.insert(key_, make_copy(context, copy));
    }
    const std::array operands{BufferRef{from.buffer.get(), from.byte_offset},
                              BufferRef{to.buffer.get(), to.byte_offset}};
    to.buffer->touch();
    (*found)->enqueue(context.queue(), operands);
}

}  // namespace dlprim
