// SPDX-License-Identifier: MIT
// Memory that a driver learns of by a buffer around it, which stays mapped so that the host may use
// the memory at any time. Other processes may write to it while it is mapped. NVIDIA's driver
// copies memory to the device and back where the mapping is to be read, and so undoes what they
// write meanwhile. CL_MAP_WRITE_INVALIDATE_REGION asks for nothing to come back.
#include "runtime/pin_memory.hpp"

#include "base/text.hpp"
#include "runtime/cl.hpp"
#include "runtime/opencl_program.hpp"

namespace dlprim {

namespace {

struct Pinned {
    std::shared_ptr<ContextImpl> context;
    cl_mem memory = nullptr;
    void* mapped = nullptr;

    ~Pinned() {
        if (memory == nullptr || opencl_gone()) return;
        if (mapped != nullptr)
            clEnqueueUnmapMemObject(static_cast<cl_command_queue>(context->cl_queue_handle()),
                                    memory, mapped, 0, nullptr, nullptr);
        clReleaseMemObject(memory);
    }
};

}  // namespace

std::shared_ptr<void> pin_memory(const std::shared_ptr<ContextImpl>& context, std::byte* data,
                                 std::uint64_t bytes) {
    const auto pinned = std::make_shared<Pinned>();
    pinned->context = context;
    if (context->is_host()) return pinned;
    const std::string what =
        cat("making ", bytes, " bytes of shared memory known to ", context->info().str());
    cl_int code = CL_SUCCESS;
    pinned->memory = clCreateBuffer(static_cast<cl_context>(context->cl_context_handle()),
                                    CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, data, &code);
    cl_check(code, what);
    pinned->mapped = clEnqueueMapBuffer(static_cast<cl_command_queue>(context->cl_queue_handle()),
                                        pinned->memory, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                        bytes, 0, nullptr, nullptr, &code);
    cl_check(code, what);
    return pinned;
}

}  // namespace dlprim
