// SPDX-License-Identifier: MIT
// CudaDriver. Types and numbers are those of CUDA's cuda.h, version 10.2 and later.
#include "collective/devices/cuda_driver.hpp"

#include "base/text.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <string>
#include <utility>

namespace dlprim {

namespace {

constexpr int descriptor_handle = 1;
constexpr int out_of_memory = 2;

}  // namespace

struct CudaDriver::Calls {
    using Handle = unsigned long long;
    /// CUmemAllocationProp.
    struct Properties {
        int type = 1;           // CU_MEM_ALLOCATION_TYPE_PINNED
        int handles = 1;        // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        int location_type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
        int device = 0;
        void* windows_data = nullptr;
        unsigned char flags[8] = {};
    };

    void* library = nullptr;
    int (*init)(unsigned) = nullptr;
    int (*count)(int*) = nullptr;
    int (*get)(int*, int) = nullptr;
    int (*uuid)(void*, int) = nullptr;
    int (*can_access)(int*, int, int) = nullptr;
    int (*granularity)(std::size_t*, const Properties*, int) = nullptr;
    int (*create)(Handle*, std::size_t, const Properties*, unsigned long long) = nullptr;
    int (*release)(Handle) = nullptr;
    int (*export_handle)(void*, Handle, int, unsigned long long) = nullptr;
    int (*error_name)(int, const char**) = nullptr;

    ~Calls() {
        if (library != nullptr) dlclose(library);
    }
    template <typename Function>
    void find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(dlsym(library, name));
        if (function == nullptr)
            fail(ErrorKind::unsupported, "CUDA's driver has no ", name, ": it is too old");
    }
};

CudaDriver::CudaDriver(const char* library) : calls_(std::make_unique<Calls>()) {
    Calls& calls = *calls_;
    calls.library = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (calls.library == nullptr) {
        const char* const reason = dlerror();
        fail(ErrorKind::unsupported,
             "CUDA's driver cannot be loaded: ", reason == nullptr ? library : reason);
    }
    calls.find(calls.error_name, "cuGetErrorName");
    calls.find(calls.init, "cuInit");
    calls.find(calls.count, "cuDeviceGetCount");
    calls.find(calls.get, "cuDeviceGet");
    calls.find(calls.can_access, "cuDeviceCanAccessPeer");
    calls.find(calls.granularity, "cuMemGetAllocationGranularity");
    calls.find(calls.create, "cuMemCreate");
    calls.find(calls.release, "cuMemRelease");
    calls.find(calls.export_handle, "cuMemExportToShareableHandle");
    // The second version tells apart the parts of a device that is cut.
    calls.uuid = reinterpret_cast<int (*)(void*, int)>(dlsym(calls.library, "cuDeviceGetUuid_v2"));
    if (calls.uuid == nullptr) calls.find(calls.uuid, "cuDeviceGetUuid");
    check(calls.init(0), "cuInit");
}

CudaDriver::~CudaDriver() = default;

void CudaDriver::check(int code, const char* call) const {
    if (code == 0) return;
    const char* name = nullptr;
    if (calls_->error_name(code, &name) != 0 || name == nullptr) name = "an unknown error";
    fail(code == out_of_memory ? ErrorKind::out_of_memory : ErrorKind::device, call, ": ", name,
         " (", code, ")");
}

int CudaDriver::device_of(const DeviceUuid& uuid) const {
    int count = 0;
    check(calls_->count(&count), "cuDeviceGetCount");
    for (int i = 0; i < count; ++i) {
        int device = 0;
        DeviceUuid its{};
        check(calls_->get(&device, i), "cuDeviceGet");
        check(calls_->uuid(its.data(), device), "cuDeviceGetUuid");
        if (its == uuid) return device;
    }
    fail(ErrorKind::unsupported, "none of the ", count, " devices of CUDA's driver has its UUID");
}

bool CudaDriver::reaches(int device, int memory_of) const {
    if (device == memory_of) return true;
    int yes = 0;
    check(calls_->can_access(&yes, device, memory_of), "cuDeviceCanAccessPeer");
    return yes != 0;
}

CudaDriver::Memory::Memory(std::shared_ptr<const CudaDriver> driver, int device,
                           std::uint64_t bytes)
    : driver_(std::move(driver)) {
    const Calls& calls = *driver_->calls_;
    Calls::Properties properties;
    properties.device = device;
    std::size_t grain = 0;
    driver_->check(calls.granularity(&grain, &properties, 0), "cuMemGetAllocationGranularity");
    if (grain == 0) grain = 1;
    bytes_ = (bytes + grain - 1) / grain * grain;
    driver_->check(calls.create(&handle_, bytes_, &properties, 0),
                   cat("cuMemCreate of ", bytes_, " bytes").c_str());
}

CudaDriver::Memory::~Memory() {
    driver_->calls_->release(handle_);
}

int CudaDriver::Memory::export_descriptor() const {
    int descriptor = -1;
    driver_->check(driver_->calls_->export_handle(&descriptor, handle_, descriptor_handle, 0),
                   "cuMemExportToShareableHandle");
    return descriptor;
}

}  // namespace dlprim
