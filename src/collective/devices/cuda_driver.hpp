// SPDX-License-Identifier: MIT
// CudaDriver: the few functions of CUDA's driver that make memory which other programming
// interfaces import by file descriptors, also on other devices. The driver is loaded when it is
// asked for; the library needs none of its files to be built or to run.
#pragma once

#include "runtime/external_memory.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace dlprim {

class CudaDriver {
  public:
    /// Loads the driver from a shared library. Throws Error(unsupported) where it is not there,
    /// lacks a function, or finds no device.
    explicit CudaDriver(const char* library = "libcuda.so.1");
    ~CudaDriver();
    CudaDriver(const CudaDriver&) = delete;
    CudaDriver& operator=(const CudaDriver&) = delete;

    /// The driver's number for a device. Throws Error(unsupported) if it has none such.
    int device_of(const DeviceUuid& uuid) const;
    /// Whether a device reaches memory of another one. Throws Error(device).
    bool reaches(int device, int memory_of) const;

    /// Memory on a device. What has imported it keeps it.
    class Memory {
      public:
        Memory(std::shared_ptr<const CudaDriver> driver, int device, std::uint64_t bytes);
        ~Memory();
        Memory(const Memory&) = delete;
        Memory& operator=(const Memory&) = delete;
        /// At least what was asked for.
        std::uint64_t bytes() const { return bytes_; }
        /// A descriptor of its own, which the caller closes or hands on. Throws Error(device).
        int export_descriptor() const;

      private:
        std::shared_ptr<const CudaDriver> driver_;
        unsigned long long handle_ = 0;
        std::uint64_t bytes_ = 0;
    };

  private:
    struct Calls;
    void check(int code, const char* call) const;
    std::unique_ptr<Calls> calls_;
};

}  // namespace dlprim
