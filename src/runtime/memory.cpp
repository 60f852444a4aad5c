// SPDX-License-Identifier: MIT
// Allocation, which checks limits first, and the pool for eager calls.
#include "runtime/memory.hpp"

#include "base/text.hpp"
#include "runtime/counting.hpp"
#include "runtime/devices.hpp"

#include <algorithm>

namespace dlprim {
namespace {

std::string mib(std::uint64_t bytes) {
    const std::uint64_t tenths = (bytes * 10 + (1u << 19)) >> 20;
    return bytes < (1u << 20) ? cat(bytes, " bytes") : cat(tenths / 10, ".", tenths % 10, " MiB");
}

}  // namespace

std::unique_ptr<Buffer> PooledContext::checked(std::uint64_t bytes) {
    const auto refuse = [&](const char* why) {
        fail(ErrorKind::out_of_memory, "device ", info().str(), " cannot allocate ", mib(bytes),
             ": ", why, "; its largest single allocation is ", mib(traits().max_alloc_bytes),
             ", its memory ", mib(traits().global_bytes), ", of which ",
             mib(counted(counters_.allocated_bytes)), " are in use by this context");
    };
    if (bytes > traits().max_alloc_bytes) refuse("a single allocation cannot be so large");
    // Drivers often promise memory that they do not have and fail at its first use. So the sum is
    // checked here.
    const auto full = [&] {
        return counted(counters_.allocated_bytes) + bytes > traits().global_bytes;
    };
    if (full()) kept_.clear();
    if (full()) refuse("not enough memory is left");
    std::unique_ptr<Buffer> buffer = make_buffer(bytes);
    if (!buffer && kept_.clear()) buffer = make_buffer(bytes);
    if (!buffer) refuse("the driver refuses the allocation");
    count(counters_.allocations);
    return buffer;
}

std::shared_ptr<Buffer> PooledContext::allocate(std::uint64_t bytes) {
    std::unique_ptr<Buffer> buffer = checked(std::max(bytes, traits().base_align_bytes));
    // The deleter holds the context, so that memory never outlives its device.
    return {buffer.release(), [self = shared_from_this()](Buffer* freed) { delete freed; }};
}

std::shared_ptr<Buffer> PooledContext::allocate_cached(std::uint64_t bytes) {
    std::uint64_t wanted = size_class(std::max(bytes, traits().base_align_bytes));
    if (wanted > traits().max_alloc_bytes) wanted = bytes;
    std::unique_ptr<Buffer> buffer = kept_.take(wanted);
    if (!buffer) buffer = checked(wanted);
    return {buffer.release(), [self = shared_from_this()](Buffer* freed) {
                self->kept_.keep(std::unique_ptr<Buffer>(freed));
            }};
}

void PooledContext::trim() {
    kept_.clear();
}

HostPool& PooledContext::pool() {
    return shared_pool();
}

}  // namespace dlprim
