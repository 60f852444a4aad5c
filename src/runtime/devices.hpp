// SPDX-License-Identifier: MIT
// Devices: what there is on this machine, how it is chosen by text, and the making of contexts.
#pragma once

#include "runtime/context_impl.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dlprim {

/// An OpenCL device as enumerated once a process.
struct OpenCLDevice {
    void* platform = nullptr;  ///< cl_platform_id
    void* device = nullptr;    ///< cl_device_id
    std::string platform_version;
    DeviceInfo info;
    Traits traits;  ///< before DLPRIM_TRAITS
};

/// All OpenCL devices that answer; platforms that fail are left out. Never throws for a driver's
/// sake.
const std::vector<OpenCLDevice>& opencl_devices();
/// Why platforms and devices were left out: a sentence each, with what would help where that is
/// known.
const std::vector<std::string>& opencl_troubles();

/// A device by its cl_device_id, which may be none of opencl_devices(), a sub-device say.
OpenCLDevice opencl_device_of(void* device);

DeviceInfo host_info();
/// The host's traits before DLPRIM_TRAITS.
Traits host_traits();
/// The host's memory, the smaller of the machine's and its control group's.
std::uint64_t host_memory();
/// Lowers `traits` by what DLPRIM_TRAITS says. Throws Error(invalid_argument) on an unknown key.
void lower_traits(Traits& traits);

/// The threads that all contexts of the process share.
HostPool& shared_pool();

std::shared_ptr<ContextImpl> make_host_context();
/// OpenCL objects that a context is to use in place of its own; it retains them.
struct OpenCLObjects {
    void* context = nullptr;  ///< cl_context
    void* queue = nullptr;    ///< cl_command_queue, in order
};
std::shared_ptr<ContextImpl> make_opencl_context(const OpenCLDevice& device,
                                                 const OpenCLObjects& given = {});

}  // namespace dlprim
