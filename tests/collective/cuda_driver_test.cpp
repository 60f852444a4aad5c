// SPDX-License-Identifier: MIT
// CUDA's driver, loaded at run time: each call that fails is told by its name, and nothing is left.
#include "collective/devices/cuda_driver.hpp"
#include "collective/devices/peer_memory.hpp"
#include "collective/fake_cuda.hpp"
#include "collective/shared_devices.hpp"
#include "net/support.hpp"
#include "runtime/context_impl.hpp"

#include <dlfcn.h>
#include <fcntl.h>

#include <string>

using namespace dlprim;
using namespace dlprim::testing;

namespace {

/// The fake driver as this process has it.
struct Fake {
    void* library = dlopen(DLPRIM_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    ~Fake() {
        set_access(1);
        dlclose(library);
    }
    template <typename Function>
    Function* find(const char* name) const {
        return reinterpret_cast<Function*>(dlsym(library, name));
    }
    void fail(const char* call, int code) const {
        find<decltype(fake_cuda_fail)>("fake_cuda_fail")(call, code);
    }
    void set_access(int yes) const {
        find<decltype(fake_cuda_set_access)>("fake_cuda_set_access")(yes);
    }
    int memory() const { return find<decltype(fake_cuda_memory)>("fake_cuda_memory")(); }
};

DeviceUuid uuid(std::uint8_t number) {
    DeviceUuid all;
    all.fill(number);
    return all;
}

int open_descriptors() {
    int count = 0;
    for (int i = 0; i < 1024; ++i) count += fcntl(i, F_GETFD) >= 0 ? 1 : 0;
    return count;
}

/// Why peers of the fake driver do not serve two contexts; empty if they do.
std::string trouble(const std::vector<Context>& contexts) {
    try {
        const auto driver = std::make_shared<const CudaDriver>(DLPRIM_FAKE_CUDA);
        const std::vector<int> devices{driver->device_of(uuid(1)), driver->device_of(uuid(2))};
        const auto source = cuda_peers(contexts, driver, devices, import_file);
        return trouble_of(source, contexts, add_tensors, std::chrono::duration<double>(60));
    } catch (const Error& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("a driver that is not there or too old is told so", "[peer]") {
    check_error(ErrorKind::unsupported, {"CUDA's driver cannot be loaded", "libnowhere.so"},
                [] { CudaDriver("libnowhere.so"); });
    check_error(ErrorKind::unsupported, {"no cuMemGetAllocationGranularity", "too old"},
                [] { CudaDriver(DLPRIM_FAKE_CUDA_OLD); });
}

TEST_CASE("memory of the driver is imported by every device, and all of it is freed", "[peer]") {
    const Fake fake;
    const int before = open_descriptors();
    ON_EVERY_DEVICE(device) {
        if (device.info().kind == DeviceKind::gpu) return;
        CHECK(trouble(contexts_like(device, 2)).empty());
    }
    CHECK(fake.memory() == 0);
    CHECK(open_descriptors() == before);
}

TEST_CASE("a call of the driver that fails is named, and leaves nothing", "[peer]") {
    const Fake fake;
    const std::vector<Context> contexts{Context("cpu"), Context("cpu")};
    const int before = open_descriptors();
    for (const char* call : {"cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetUuid_v2",
                             "cuDeviceCanAccessPeer", "cuMemGetAllocationGranularity",
                             "cuMemCreate", "cuMemExportToShareableHandle"}) {
        INFO(call << " fails");
        for (const int code : {2, 999, 1000}) {
            fake.fail(call, code);
            const std::string found = trouble(contexts);
            fake.fail(call, 0);
            INFO("the message: " << found);
            CHECK(found.find(std::string(call).substr(0, 15)) != std::string::npos);
            CHECK(found.find("(" + std::to_string(code) + ")") != std::string::npos);
        }
        CHECK(fake.memory() == 0);
        CHECK(open_descriptors() == before);
    }
    CHECK(trouble(contexts).empty());
}

TEST_CASE("devices that the driver does not know, or that do not reach each other", "[peer]") {
    const Fake fake;
    const auto driver = std::make_shared<const CudaDriver>(DLPRIM_FAKE_CUDA);
    CHECK(driver->device_of(uuid(2)) == 11);
    check_error(ErrorKind::unsupported, {"none of the 2 devices", "UUID"},
                [&] { driver->device_of(uuid(7)); });
    fake.set_access(0);
    const std::vector<Context> contexts{Context("cpu"), Context("cpu")};
    CHECK(trouble(contexts).find("does not reach the memory of cpu") != std::string::npos);
    // Two contexts on one device need no access.
    CHECK_NOTHROW(cuda_peers(contexts, driver, {10, 10}, import_file));
}
