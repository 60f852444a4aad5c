// SPDX-License-Identifier: MIT
// Enumerates OpenCL devices and their traits. Corrects traits where drivers are known to report
// wrong or incomplete ones.
#include "runtime/cl.hpp"
#include "runtime/devices.hpp"
#include "runtime/pocl_cache.hpp"

#include <dlprim/log.hpp>

#include <algorithm>
#include <array>

namespace dlprim {
namespace {

template <typename T>
T device_value(cl_device_id device, cl_device_info what, T otherwise = {}) {
    T value{};
    if (clGetDeviceInfo(device, what, sizeof(value), &value, nullptr) != CL_SUCCESS)
        return otherwise;
    return value;
}

template <typename Id, typename What, typename Get>
std::string text_info(Get get, Id id, What what) {
    std::size_t size = 0;
    if (get(id, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
    std::string text(size, '\0');
    if (get(id, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
    text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
}

std::vector<std::size_t> subgroup_sizes(cl_device_id device) {
    constexpr cl_device_info sub_group_sizes_intel = 0x4108;
    std::array<std::size_t, 16> sizes{};
    std::size_t bytes = 0;
    if (clGetDeviceInfo(device, sub_group_sizes_intel, sizeof(sizes), sizes.data(), &bytes) !=
        CL_SUCCESS)
        return {};
    return {sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(bytes / sizeof(sizes[0]))};
}

// Traits::item_registers. Drivers do not tell how many registers there are, but two kinds of
// devices show themselves by an extension. databases/devices/README.md has the numbers.
int item_registers(cl_device_id device, const Traits& traits, const std::string& extensions) {
    if (traits.subgroup_size != 0) return 1024 / traits.subgroup_size;  // 4 KiB each, Intel's GPUs
    if (extensions.find("cl_amd_device_attribute_query") == std::string::npos) return 0;
    const cl_uint wavefront = device_value<cl_uint>(device, 0x4043);  // WAVEFRONT_WIDTH_AMD
    return wavefront == 64 ? 64 : wavefront == 32 ? 128 : 0;
}

Traits traits_of(cl_device_id device, DeviceKind kind, const std::string& platform,
                 const std::string& extensions) {
    Traits traits;
    traits.wide_vectors = kind == DeviceKind::cpu;
    traits.compute_units = std::max<int>(
        1, static_cast<int>(device_value<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS, 1)));
    traits.max_work_group = std::max<std::uint64_t>(
        1, device_value<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, 1));
    traits.local_bytes = device_value<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
    traits.max_alloc_bytes = device_value<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    traits.global_bytes = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
    traits.cache_bytes = device_value<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    traits.base_align_bytes = std::max<std::uint64_t>(
        64, device_value<cl_uint>(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8);
    traits.fp64 = extensions.find("cl_khr_fp64") != std::string::npos;
    traits.fp16 = extensions.find("cl_khr_fp16") != std::string::npos;
    traits.subgroup_size = subgroup_size_of(extensions, subgroup_sizes(device));
    traits.unified_memory = kind == DeviceKind::cpu ||
                            device_value<cl_bool>(device, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_TRUE;
    // In GHz. Intel's runtime reports 0 for processors of other vendors.
    double ghz = device_value<cl_uint>(device, CL_DEVICE_MAX_CLOCK_FREQUENCY) / 1000.0;
    if (kind == DeviceKind::cpu) {
        // The width that drivers report is arbitrary (PoCL may report 8 or even 1). Kernels run on
        // the same processor as this code, so the processor's own width is used.
        const Traits host = host_traits();
        if (ghz < 0.1) ghz = host.gflops / host.compute_units / host.vector_width / 4;
        const int told =
            static_cast<int>(device_value<cl_uint>(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 1));
        traits.vector_width = std::max(host.vector_width, std::min(told, 16));
        traits.vector_registers = host.vector_registers;
        // Intel's compiler does not use all of 32 registers: with 28 sums and their operands it
        // spills to memory (docs/engines/blocked_cpu.md).
        if (platform == "Intel(R) OpenCL")
            traits.vector_registers = std::min(traits.vector_registers, 24);
        traits.gflops = traits.compute_units * ghz * traits.vector_width * 4;
        traits.gbytes_per_s = 20;
        traits.launch_us = 4;
    } else {
        if (ghz < 0.1) ghz = 1;
        traits.vector_width = 1;
        traits.gflops = traits.compute_units * 128.0 * 2 * ghz;
        traits.gbytes_per_s =
            traits.unified_memory ? 50 : std::clamp(traits.compute_units * 30.0, 100.0, 4000.0);
        traits.launch_us = 5;
        traits.item_registers = item_registers(device, traits, extensions);
        // CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV of cl_nv_device_attribute_query.
        if (extensions.find("cl_nv_device_attribute_query") != std::string::npos) {
            const cl_uint capability = device_value<cl_uint>(device, 0x4000);
            traits.wgmma = capability == 9;
            traits.mma = capability >= 8;
            traits.matrix_fp16 = traits.matrix_bf16 = traits.mma;
            if (traits.mma) traits.mma_local_bytes = 227 << 10;  // more than any device has
        }
    }
    return traits;
}

DeviceKind kind_of(cl_device_type type) {
    if (type & CL_DEVICE_TYPE_GPU) return DeviceKind::gpu;
    if (type & CL_DEVICE_TYPE_CPU) return DeviceKind::cpu;
    return DeviceKind::accelerator;
}

// A platform's number and name, for messages.
std::string named(std::size_t p, cl_platform_id platform) {
    return cat("OpenCL platform ", p, " (",
               text_info(clGetPlatformInfo, platform, CL_PLATFORM_NAME), ")");
}

// Why a platform has no device. PoCL reports CL_DEVICE_NOT_FOUND if it cannot make its cache.
std::string platform_trouble(std::size_t p, cl_platform_id platform, cl_int code) {
    std::string why = cl_error_name(code);
    if (is_pocl(text_info(clGetPlatformInfo, platform, CL_PLATFORM_VERSION)))
        if (const std::string trouble = pocl_cache_trouble(); !trouble.empty()) why = trouble;
    return cat(named(p, platform), " has no usable device: ", why);
}

OpenCLDevice describe(cl_platform_id platform, cl_device_id device, std::string id) {
    OpenCLDevice entry;
    entry.platform = platform;
    entry.device = device;
    entry.platform_version = text_info(clGetPlatformInfo, platform, CL_PLATFORM_VERSION);
    entry.info.id = std::move(id);
    entry.info.name = text_info(clGetDeviceInfo, device, CL_DEVICE_NAME);
    entry.info.platform = text_info(clGetPlatformInfo, platform, CL_PLATFORM_NAME);
    entry.info.vendor = text_info(clGetDeviceInfo, device, CL_DEVICE_VENDOR);
    entry.info.driver = text_info(clGetDeviceInfo, device, CL_DRIVER_VERSION);
    entry.info.kind = kind_of(device_value<cl_device_type>(device, CL_DEVICE_TYPE));
    entry.traits = traits_of(device, entry.info.kind, entry.info.platform,
                             text_info(clGetDeviceInfo, device, CL_DEVICE_EXTENSIONS));
    entry.info.memory_mib = static_cast<std::uint32_t>(entry.traits.global_bytes >> 20);
    return entry;
}

struct Found {
    std::vector<OpenCLDevice> devices;
    std::vector<std::string> troubles;
};

void add_devices(Found& found, std::size_t p, cl_platform_id platform) {
    cl_uint count = 0;
    cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
    std::vector<cl_device_id> devices(code == CL_SUCCESS ? count : 0);
    if (!devices.empty())
        code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr);
    if (code != CL_SUCCESS) {
        found.troubles.push_back(platform_trouble(p, platform, code));
        return;
    }
    for (std::size_t d = 0; d < devices.size(); ++d) {
        OpenCLDevice entry = describe(platform, devices[d], cat(p, ":", d));
        if (device_value<cl_bool>(devices[d], CL_DEVICE_AVAILABLE, CL_TRUE) == CL_FALSE)
            found.troubles.push_back(
                cat("device ", entry.info.str(), " says that it is not available"));
        else if (device_value<cl_bool>(devices[d], CL_DEVICE_COMPILER_AVAILABLE, CL_TRUE) ==
                 CL_FALSE)
            found.troubles.push_back(
                cat("device ", entry.info.str(), " has no compiler for OpenCL C"));
        else
            found.devices.push_back(std::move(entry));
    }
}

Found enumerate() {
    Found found;
    cl_uint count = 0;
    // Without any platform the loader returns CL_PLATFORM_NOT_FOUND_KHR, which means an empty list
    // and is not an error.
    if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) return found;
    std::vector<cl_platform_id> platforms(count);
    if (clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return found;
    for (std::size_t p = 0; p < platforms.size(); ++p) add_devices(found, p, platforms[p]);
    for (const std::string& trouble : found.troubles) log(LogLevel::info, trouble);
    return found;
}

const Found& found() {
    static const Found* once = new Found(enumerate());
    return *once;
}

}  // namespace

// With sub-groups of 16, a work-item has as many registers as a tile of sums needs on Intel's GPUs.
int subgroup_size_of(const std::string& extensions, const std::vector<std::size_t>& sizes) {
    for (const char* extension : {"cl_intel_subgroups", "cl_intel_required_subgroup_size"})
        if ((' ' + extensions + ' ').find(cat(' ', extension, ' ')) == std::string::npos) return 0;
    for (const int size : {16, 8})
        if (std::find(sizes.begin(), sizes.end(), static_cast<std::size_t>(size)) != sizes.end())
            return size;
    return 0;
}

const std::vector<OpenCLDevice>& opencl_devices() {
    return found().devices;
}

OpenCLDevice opencl_device_of(void* device) {
    for (const OpenCLDevice& known : opencl_devices())
        if (known.device == device) return known;
    const auto id = static_cast<cl_device_id>(device);
    return describe(device_value<cl_platform_id>(id, CL_DEVICE_PLATFORM), id, "given");
}

const std::vector<std::string>& opencl_troubles() {
    return found().troubles;
}

}  // namespace dlprim
