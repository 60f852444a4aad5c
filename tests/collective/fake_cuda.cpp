// SPDX-License-Identifier: MIT
// A CUDA driver of two devices without any: its memory is that of the host, in anonymous files, and
// a test says which calls fail. The UUID of device i is i + 1, sixteen times. With
// DLPRIM_FAKE_CUDA_OLD it lacks what drivers had not before version 10.2.
#include "collective/fake_cuda.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

using Handle = unsigned long long;
constexpr int invalid_value = 1, memory_is_short = 2;

struct Location {
    int type, id;
};
struct Properties {  // CUmemAllocationProp
    int type, handles;
    Location location;
    void* windows_data;
    struct {
        unsigned char compression, remote;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};

struct State {
    std::mutex mutex;
    std::map<std::string, int> codes;
    std::map<Handle, int> memory;  ///< descriptors
    Handle last = 0;
    int access = 1;
};

State& state() {
    static auto* const one = new State;
    return *one;
}

int code_of(const char* call) {
    const std::lock_guard lock(state().mutex);
    const auto found = state().codes.find(call);
    return found == state().codes.end() ? 0 : found->second;
}

}  // namespace

extern "C" {

void fake_cuda_fail(const char* call, int code) {
    const std::lock_guard lock(state().mutex);
    state().codes[call] = code;
}
void fake_cuda_set_access(int yes) {
    state().access = yes;
}
int fake_cuda_memory() {
    const std::lock_guard lock(state().mutex);
    return static_cast<int>(state().memory.size());
}

int cuInit(unsigned) {
    return code_of("cuInit");
}
int cuGetErrorName(int code, const char** name) {
    if (code > 999) return invalid_value;
    *name = code == memory_is_short ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_A_TEST";
    return 0;
}
int cuDeviceGetCount(int* count) {
    *count = 2;
    return code_of("cuDeviceGetCount");
}
int cuDeviceGet(int* device, int index) {
    *device = index + 10;
    return code_of("cuDeviceGet");
}
int cuDeviceGetUuid_v2(void* uuid, int device) {
    std::memset(uuid, device - 10 + 1, 16);
    return code_of("cuDeviceGetUuid_v2");
}
int cuDeviceCanAccessPeer(int* yes, int device, int other) {
    *yes = device == other ? 0 : state().access;
    return code_of("cuDeviceCanAccessPeer");
}

#ifndef DLPRIM_FAKE_CUDA_OLD
int cuMemGetAllocationGranularity(std::size_t* bytes, const Properties*, int) {
    *bytes = 2 << 20;
    return code_of("cuMemGetAllocationGranularity");
}
int cuMemCreate(Handle* handle, std::size_t bytes, const Properties* properties, Handle flags) {
    if (const int code = code_of("cuMemCreate"); code != 0) return code;
    const Location& location = properties->location;
    if (properties->type != 1 || properties->handles != 1 || location.type != 1 || flags != 0 ||
        location.id < 10 || location.id > 11 || bytes == 0 || bytes % (2 << 20) != 0)
        return invalid_value;
    const int descriptor = memfd_create("fake_cuda", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
        return memory_is_short;
    const std::lock_guard lock(state().mutex);
    *handle = ++state().last;
    state().memory[*handle] = descriptor;
    return 0;
}
int cuMemRelease(Handle handle) {
    const std::lock_guard lock(state().mutex);
    const auto found = state().memory.find(handle);
    if (found == state().memory.end()) return invalid_value;
    close(found->second);
    state().memory.erase(found);
    return 0;
}
int cuMemExportToShareableHandle(void* to, Handle handle, int type, Handle flags) {
    if (const int code = code_of("cuMemExportToShareableHandle"); code != 0) return code;
    const std::lock_guard lock(state().mutex);
    const auto found = state().memory.find(handle);
    if (found == state().memory.end() || type != 1 || flags != 0) return invalid_value;
    const int descriptor = dup(found->second);
    std::memcpy(to, &descriptor, sizeof(descriptor));
    return descriptor < 0 ? invalid_value : 0;
}
#endif
}
