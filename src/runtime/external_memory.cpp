// SPDX-License-Identifier: MIT
// Memory by a file descriptor.
#include "runtime/external_memory.hpp"

#include "base/text.hpp"
#include "runtime/cl.hpp"
#include "runtime/opencl_program.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <utility>

namespace dlprim {

namespace {

// Of extensions whose header older systems lack.
constexpr cl_device_info device_uuid_info = 0x106A;
constexpr cl_ulong opaque_descriptor = 0x2060;
using Properties = cl_ulong;
using CreateBuffer = cl_mem(CL_API_CALL*)(cl_context, const Properties*, cl_mem_flags, std::size_t,
                                          void*, cl_int*);
using EnqueueExternal = cl_int(CL_API_CALL*)(cl_command_queue, cl_uint, const cl_mem*, cl_uint,
                                             const cl_event*, cl_event*);

cl_device_id device_of(const ContextImpl& context) {
    return static_cast<cl_device_id>(context.cl_device_handle());
}

bool has_extension(cl_device_id device, const std::string& wanted) {
    std::size_t bytes = 0;
    if (clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, nullptr, &bytes) != CL_SUCCESS)
        return false;
    std::string text(bytes, '\0');
    if (clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, bytes, text.data(), nullptr) != CL_SUCCESS)
        return false;
    for (const std::string& word : split(text.c_str(), ' '))  // up to the terminating zero
        if (word == wanted) return true;
    return false;
}

/// A function of OpenCL 3.0, which the loader that the library was linked with may lack.
CreateBuffer create_buffer() {
    return reinterpret_cast<CreateBuffer>(dlsym(RTLD_DEFAULT, "clCreateBufferWithProperties"));
}

/// One of the two functions by which a queue acquires such memory and releases it.
EnqueueExternal enqueue_external(cl_device_id device, const char* name) {
    cl_platform_id platform = nullptr;
    constexpr std::size_t bytes = sizeof(cl_platform_id);  // NOLINT(bugprone-sizeof-expression)
    if (clGetDeviceInfo(device, CL_DEVICE_PLATFORM, bytes, &platform, nullptr) != CL_SUCCESS)
        return nullptr;
    return reinterpret_cast<EnqueueExternal>(
        clGetExtensionFunctionAddressForPlatform(platform, name));
}

constexpr const char* acquire_name = "clEnqueueAcquireExternalMemObjectsKHR";
constexpr const char* release_name = "clEnqueueReleaseExternalMemObjectsKHR";

/// Releases a cl_mem that a Buffer has retained, or that is of no use.
struct Release {
    cl_mem memory;
    ~Release() { clReleaseMemObject(memory); }
};

/// A buffer that a queue has acquired. It is released before it goes: NVIDIA's driver 580 does not
/// return from clReleaseContext otherwise.
class Imported {
  public:
    Imported(std::shared_ptr<Buffer> buffer, cl_command_queue queue, EnqueueExternal release)
        : buffer_(std::move(buffer)), queue_(queue), release_(release) {
        clRetainCommandQueue(queue_);
    }
    ~Imported() {
        if (opencl_gone()) return;
        // What fails here has failed for those who use the queue, and they are told.
        const auto memory = static_cast<cl_mem>(buffer_->handle());
        release_(queue_, 1, &memory, 0, nullptr, nullptr);
        clFinish(queue_);
        clReleaseCommandQueue(queue_);
    }
    Imported(const Imported&) = delete;
    Imported& operator=(const Imported&) = delete;
    Buffer* buffer() const { return buffer_.get(); }

  private:
    std::shared_ptr<Buffer> buffer_;
    cl_command_queue queue_;
    EnqueueExternal release_;
};

}  // namespace

std::optional<DeviceUuid> uuid_of(const ContextImpl& context) {
    DeviceUuid uuid{};
    if (context.is_host() || clGetDeviceInfo(device_of(context), device_uuid_info, uuid.size(),
                                             uuid.data(), nullptr) != CL_SUCCESS)
        return std::nullopt;
    return uuid;
}

std::string import_trouble(const ContextImpl& context) {
    if (context.is_host()) return "is the host";
    for (const char* name : {"cl_khr_external_memory", "cl_khr_external_memory_opaque_fd"})
        if (!has_extension(device_of(context), name)) return cat("has no ", name);
    if (create_buffer() == nullptr)
        return "is reached by an OpenCL loader without clCreateBufferWithProperties";
    for (const char* name : {acquire_name, release_name})
        if (enqueue_external(device_of(context), name) == nullptr) return cat("has no ", name);
    return "";
}

std::shared_ptr<Buffer> import_descriptor(ContextImpl& context, int descriptor,
                                          std::uint64_t bytes) {
    const std::string what = cat("importing ", bytes, " bytes of memory to ", context.info().str());
    const CreateBuffer create = create_buffer();
    const EnqueueExternal acquire = enqueue_external(device_of(context), acquire_name);
    const EnqueueExternal let_go = enqueue_external(device_of(context), release_name);
    if (create == nullptr || acquire == nullptr || let_go == nullptr) {
        ::close(descriptor);
        fail(ErrorKind::unsupported, what, ": the device ", import_trouble(context));
    }
    const Properties properties[] = {opaque_descriptor, static_cast<Properties>(descriptor), 0};
    cl_int code = CL_SUCCESS;
    const cl_mem memory = create(static_cast<cl_context>(context.cl_context_handle()), properties,
                                 CL_MEM_READ_WRITE, bytes, nullptr, &code);
    if (code != CL_SUCCESS || memory == nullptr) {
        ::close(descriptor);
        cl_check(code == CL_SUCCESS ? CL_INVALID_MEM_OBJECT : code, what);
    }
    const Release release{memory};
    std::shared_ptr<Buffer> buffer = context.wrap(memory, bytes);
    auto* const queue = static_cast<cl_command_queue>(context.cl_queue_handle());
    cl_check(acquire(queue, 1, &memory, 0, nullptr, nullptr), what);
    const auto imported = std::make_shared<Imported>(std::move(buffer), queue, let_go);
    return {imported, imported->buffer()};
}

}  // namespace dlprim
