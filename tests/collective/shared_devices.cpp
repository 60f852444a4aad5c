// SPDX-License-Identifier: MIT
#include "collective/shared_devices.hpp"

#include "runtime/cl.hpp"
#include "runtime/context_impl.hpp"
#include "support/catch.hpp"

#include <dlprim/ops.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace dlprim::testing {

void add_tensors(const Tensor& left, const Tensor& right, const std::vector<Tensor>& outs,
                 double factor) {
    std::string code = "y0 = (x0 + x1) * p0";
    for (std::size_t i = 1; i < outs.size(); ++i) code += "; y" + std::to_string(i) + " = y0";
    ops::CallOptions how{.out = outs};
    ops::pointwise(code, {left, right}, {factor}, how);
}

std::shared_ptr<Buffer> buffer_on(ContextImpl& context, void* memory, std::uint64_t bytes,
                                  std::shared_ptr<void> owner) {
    std::shared_ptr<Buffer> wrapped;
    if (context.is_host()) {
        wrapped = context.wrap(memory, bytes);
    } else {
        cl_int code = 0;
        const cl_mem made =
            clCreateBuffer(static_cast<cl_context>(context.cl_context_handle()),
                           CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, memory, &code);
        REQUIRE(code == CL_SUCCESS);
        wrapped = context.wrap(made, bytes);
        clReleaseMemObject(made);
    }
    // The buffer goes before its memory.
    using Both = std::pair<std::shared_ptr<void>, std::shared_ptr<Buffer>>;
    const auto both = std::make_shared<Both>(std::move(owner), std::move(wrapped));
    return {both, both->second.get()};
}

std::shared_ptr<Buffer> import_file(ContextImpl& context, int descriptor, std::uint64_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    REQUIRE(memory != MAP_FAILED);
    return buffer_on(context, memory, bytes,
                     std::shared_ptr<void>(memory, [bytes](void* it) { munmap(it, bytes); }));
}

std::shared_ptr<PeerMemory> FakePeers::make(std::size_t owner, std::uint64_t bytes) {
    if (before_make) before_make();
    ++made;
    const std::uint64_t size = (bytes + 4095) / 4096 * 4096;
    const std::shared_ptr<void> memory(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
        [size](void* it) { munmap(it, size); });
    return std::make_shared<PeerMemory>(
        contexts.size(), [this, owner, size, memory](std::size_t context) {
            auto* place = static_cast<std::byte*>(memory.get());
            if (reroute) place = reroute(owner, context, place, size);
            return buffer_on(Access::impl(contexts[context]), place, size, memory);
        });
}

}  // namespace dlprim::testing
