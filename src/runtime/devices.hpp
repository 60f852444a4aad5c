// SPDX-License-Identifier: MIT
// Devices: lists the devices of this machine, chooses one by text, and opens contexts.
#pragma once

#include "runtime/context_impl.hpp"
#include "runtime/device_file.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// An OpenCL device, as enumerated once per process.
struct OpenCLDevice {
    void* platform = nullptr;  ///< cl_platform_id
    void* device = nullptr;    ///< cl_device_id
    std::string platform_version;
    DeviceInfo info;
    Traits traits;  ///< before DLPRIM_TRAITS
};

/// All OpenCL devices that respond. Platforms that fail are left out, and errors of drivers are not
/// thrown.
const std::vector<OpenCLDevice>& opencl_devices();
/// Why platforms and devices were left out: one sentence each, with advice if there is any.
const std::vector<std::string>& opencl_troubles();

/// The description of a cl_device_id, which need not be in opencl_devices() (a sub-device is not).
OpenCLDevice opencl_device_of(void* device);

DeviceInfo host_info();
/// The host's traits before DLPRIM_TRAITS.
Traits host_traits();
/// The host's memory: the smaller of the machine's and its control group's limit.
std::uint64_t host_memory();
/// Lowers `traits` as DLPRIM_TRAITS says. Throws Error(invalid_argument) on an unknown key.
void lower_traits(Traits& traits);
/// Lowers a launch_limit() likewise, of which 0 is none. lower_traits() has checked the variable.
double lower_launch_limit(double seconds);

/// The thread pool that all contexts of the process share.
HostPool& shared_pool();

/// The sub-group size of an engine's kernels, of `sizes` that they can require: 16 if available,
/// else 8, else 0. `extensions` is the device's list, separated by spaces.
int subgroup_size_of(const std::string& extensions, const std::vector<std::size_t>& sizes);

std::shared_ptr<ContextImpl> make_host_context();
/// A device that is described by a file (runtime/device_file.hpp).
std::shared_ptr<ContextImpl> make_described_context(const DescribedDevice& device);
/// OpenCL objects of the caller that a context uses instead of its own. The context retains them.
struct OpenCLObjects {
    void* context = nullptr;  ///< cl_context
    void* queue = nullptr;    ///< cl_command_queue, in order
};
std::shared_ptr<ContextImpl> make_opencl_context(const OpenCLDevice& device,
                                                 const OpenCLObjects& given = {});

}  // namespace dlprim
