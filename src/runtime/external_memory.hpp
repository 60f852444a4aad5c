// SPDX-License-Identifier: MIT
// Memory that another programming interface has made, as a buffer of an OpenCL context: by a file
// descriptor (cl_khr_external_memory and cl_khr_external_memory_opaque_fd). And the number that
// tells which of its devices this one is (cl_khr_device_uuid).
#pragma once

#include "runtime/context_impl.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace dlprim {

using DeviceUuid = std::array<std::uint8_t, 16>;

/// Nothing where the driver does not tell it.
std::optional<DeviceUuid> uuid_of(const ContextImpl& context);

/// Why the device cannot import memory: a sentence's second half, as "has no cl_khr_...". Empty if
/// it can.
std::string import_trouble(const ContextImpl& context);

/// Imports the `bytes` bytes behind a descriptor, which is the driver's from then on; where that
/// fails it is closed. The buffer keeps the memory. Its contents are what the context's queue finds
/// there when work begins: the host orders the devices. When the buffer goes, the queue releases
/// the memory, and is waited for. Throws Error.
std::shared_ptr<Buffer> import_descriptor(ContextImpl& context, int descriptor,
                                          std::uint64_t bytes);

}  // namespace dlprim
