// SPDX-License-Identifier: MIT
// Context: an opened device, with its queue, allocator and compiled kernels.
//
// Ownership: a Context is a cheap handle. Copies share the opened device, and every tensor and net
// holds such a copy. When the last one is gone, the device is closed and the memory that eager
// calls have cached on it is freed.
//
// Threads: several threads may make eager calls (dlprim/ops.hpp) and copy tensors on one context at
// the same time. A Net and its Solver may be used by one thread at a time, and so may all nets of
// one context together. Other threads may make eager calls meanwhile, except while Net::profile()
// runs or engines are tuned. Different contexts share nothing.
//
// Waiting: on an OpenCL device calls enqueue work and return. On the host the work is done when a
// call returns.
#pragma once

#include <dlprim/error.hpp>
#include <dlprim/namespace.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlprim {

enum class DeviceKind { host, cpu, gpu, accelerator };

/// A device's names.
struct DeviceInfo {
    /// What opens it, as Context(id): "cpu" for the host, "P:D" (numbers of platform and device)
    /// for OpenCL.
    std::string id;
    std::string name;      ///< the driver's name for it
    std::string platform;  ///< platform name; "host" for the host
    std::string vendor;
    std::string driver;  ///< driver version
    DeviceKind kind = DeviceKind::host;
    std::uint32_t memory_mib = 0;  ///< global memory in MiB

    /// "0:0 (AMD EPYC, Portable Computing Language)": for messages and reports. Several devices of
    /// a machine may have one name.
    std::string str() const;
};

/// "host", "cpu", "gpu" or "accelerator".
std::string_view name_of(DeviceKind kind);

/// Facts about a device that decide which engines apply. The environment variable DLPRIM_TRAITS
/// lowers some of them, to try a smaller device on a larger one, for example
/// DLPRIM_TRAITS="max_work_group=64,local_kib=16,max_alloc_mib=64,vector_width=8",
/// "wgmma=0,mma=0", "matrix_bf16=0" or "subgroup_size=8".
struct Traits {
    bool host = false;  ///< the host itself, no OpenCL
    bool wide_vectors =
        false;  ///< a CPU: one work-item with wide vectors beats a work-group with barriers
    int vector_width = 1;  ///< native float lanes (16 on AVX-512, 8 on AVX2, 4 on NEON; 1 on GPUs)
    int vector_registers = 16;  ///< vector registers a kernel may count on (CPUs)
    int compute_units = 1;
    bool own_cores = false;  ///< a CPU whose threads are bound to a core each
    std::uint64_t max_work_group = 1;
    std::uint64_t local_bytes = 0;
    std::uint64_t max_alloc_bytes = 0;
    std::uint64_t global_bytes = 0;
    std::uint64_t cache_bytes = 0;         ///< last-level cache, 0 when unknown
    std::uint64_t base_align_bytes = 128;  ///< alignment that offsets inside a slab keep
    bool fp64 = false;
    bool fp16 = false;      ///< half arithmetic
    int subgroup_size = 0;  ///< lanes of the sub-groups that kernels may ask for, which then share
                            ///< values and read in blocks without local memory; 0: none
    bool wgmma = false;  ///< NVIDIA's warpgroup matrix instructions run here (tried when the device
                         ///< is opened)
    bool mma = false;    ///< NVIDIA's matrix instructions of a warp run here, and none of a
                         ///< warpgroup (tried likewise)
    std::uint64_t mma_local_bytes = 0;  ///< what a work-group of such kernels may have of local
                                        ///< memory, which drivers understate (tried likewise)
    bool matrix_fp16 = false;           ///< wgmma's or mma's instructions on halves run here
    bool matrix_bf16 = false;           ///< those on bfloat16 do (each type is tried by itself)
    bool unified_memory = false;        ///< host and device share memory
    double gflops = 0;                  ///< estimated fp32 peak in 10^9 a second, for cost models
    double gbytes_per_s = 0;            ///< estimated memory bandwidth in 10^9 a second
    double launch_us = 5;               ///< estimated cost of one kernel launch
};

/// Counts since the context was opened. The difference of two readings is what happened between.
struct Counters {
    std::uint64_t launches = 0;         ///< kernels enqueued
    std::uint64_t waits = 0;            ///< times that the host waited for the device
    std::uint64_t allocations = 0;      ///< device buffers created
    std::uint64_t compiles = 0;         ///< programs compiled from source
    std::uint64_t cache_hits = 0;       ///< programs loaded from the on-disk cache
    std::uint64_t allocated_bytes = 0;  ///< bytes of live device buffers
    std::uint64_t flushes = 0;          ///< times that enqueued work was handed to the device
};

class ContextImpl;

class Context {
  public:
    /// Opens a device: "cpu" (the host), "P:D", "gpu" (the best GPU), "opencl" (the best OpenCL
    /// device), or a part of a device's or platform's name. An empty text means what the
    /// environment variable DLPRIM_DEVICE names, else the best OpenCL device, else the host. Throws
    /// Error(not_found) that lists the devices, and says how to install an OpenCL platform where
    /// there is none. If the best OpenCL device does not open, the next one is taken, or the host,
    /// and the log gets a warning that says why (dlprim/log.hpp).
    explicit Context(std::string_view device = {});

    /// Every device of this machine, the host last. OpenCL is asked once per process.
    static std::vector<DeviceInfo> devices();
    /// The device that Context(device) would open, without opening it; for the empty text the one
    /// that it would try first. Throws Error(not_found) as Context(device) does.
    static DeviceInfo find(std::string_view device = {});
    /// Reasons why OpenCL devices are missing or will not open, as far as they are known without
    /// opening one. Each is a sentence that says what would help. Empty where all is well.
    static std::vector<std::string> troubles();

    const DeviceInfo& info() const;
    const Traits& traits() const;
    Counters counters() const;
    /// Waits until all work enqueued on the context is done.
    void finish() const;

    bool operator==(const Context& other) const { return impl_ == other.impl_; }
    /// The library's own view of the context.
    ContextImpl& impl() const { return *impl_; }

  private:
    friend class ContextImpl;
    explicit Context(std::shared_ptr<ContextImpl> impl) : impl_(std::move(impl)) {}
    std::shared_ptr<ContextImpl> impl_;
};

}  // namespace dlprim
