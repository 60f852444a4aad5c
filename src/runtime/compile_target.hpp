// SPDX-License-Identifier: MIT
// CompileTarget: a device of this process, as processes that compile for it must know it.
#pragma once

#include "runtime/binary_cache.hpp"

#include <dlprim/context.hpp>

#include <cstdint>
#include <string>

namespace dlprim {

class BackgroundCompiles;

class CompileTarget {
  public:
    virtual ~CompileTarget() = default;
    virtual const DeviceInfo& device() const noexcept = 0;
    /// The names of device, driver and platform. Devices with equal keys can load the same
    /// binaries.
    virtual const std::string& device_key() const noexcept = 0;
    /// Where the binaries go.
    virtual const BinaryCache& disk() const noexcept = 0;
    virtual std::uint64_t device_memory() const noexcept = 0;  ///< bytes
    /// Whether the driver compiles most of a kernel when it is first launched, one kernel at a time
    /// in each process, and keeps the result on the disk for other processes, as PoCL does.
    virtual bool compiles_at_launch() const noexcept { return false; }
    /// The processes that compile for the device and stay, if it has such.
    virtual BackgroundCompiles* background() const { return nullptr; }
};

}  // namespace dlprim
