// SPDX-License-Identifier: MIT
// Context: an opened device, with its queue, allocator and compiled kernels.
//
// Ownership: a Context is a cheap handle. Copies share the opened device, and every tensor and net
// holds such a copy. When the last one is gone, the device is closed and the memory that eager
// calls have cached on it is freed.
//
// Threads: several threads may make eager calls (dlprim/ops.hpp) and copy tensors on one context at
// the same time. All nets and solvers of one context together may be used by one thread at a time.
// Other threads may make eager calls meanwhile, except while Net::profile() runs or engines are
// tuned. Different threads may use different contexts at the same time without any of these rules.
//
// Waiting: on an OpenCL device calls enqueue work and return. On the host the work is done when a
// call returns.
//
// Errors: opening a device throws Error(not_found) for a name that means none, Error(io) where its
// driver lacks a folder to write to, Error(invalid_argument) for an environment variable that makes
// no sense, and Error(device) with what OpenCL reports.
#pragma once

#include <dlprim/error.hpp>
#include <dlprim/internal.hpp>
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
    /// The text with which Context(id) opens it: "cpu" for the host, "P:D" (the numbers of platform
    /// and device, from 0) for OpenCL.
    std::string id;
    std::string name;      ///< the driver's name for it
    std::string platform;  ///< platform name; "host" for the host
    std::string vendor;
    std::string driver;  ///< driver version
    DeviceKind kind = DeviceKind::host;
    std::uint32_t memory_mib = 0;  ///< global memory in MiB

    /// For messages and reports: "0:0 (AMD EPYC, Portable Computing Language)". It has the id
    /// because several devices of a machine may have the same name.
    std::string str() const;
};

/// "host", "cpu", "gpu" or "accelerator".
std::string_view name_of(DeviceKind kind);

/// Facts about a device that decide which engines apply. The environment variable DLPRIM_TRAITS
/// lowers some of them, to try a smaller device on a larger one (docs/environment.md).
struct Traits {
    bool host = false;  ///< the host itself, without OpenCL
    /// A CPU: one work-item with wide vectors is faster than a work-group with barriers.
    bool wide_vectors = false;
    int vector_width = 1;  ///< native float lanes: 16 on AVX-512, 8 on AVX2, 4 on NEON, 1 on GPUs
    int vector_registers = 16;  ///< of a CPU: vector registers that a kernel may count on
    int compute_units = 1;
    bool own_cores = false;  ///< a CPU whose OpenCL threads are bound to a core each

    std::uint64_t max_work_group = 1;      ///< most work-items of a work-group
    std::uint64_t local_bytes = 0;         ///< most local memory of a work-group
    std::uint64_t max_alloc_bytes = 0;     ///< largest single allocation
    std::uint64_t global_bytes = 0;        ///< global memory of the device
    std::uint64_t cache_bytes = 0;         ///< last-level cache; 0: unknown
    std::uint64_t base_align_bytes = 128;  ///< alignment of tensors that share an allocation
    bool unified_memory = false;           ///< host and device share memory

    bool fp64 = false;  ///< double arithmetic
    bool fp16 = false;  ///< half arithmetic
    /// Lanes of the sub-groups that kernels may require. A sub-group exchanges values and reads
    /// blocks without local memory. 0: the device has none.
    int subgroup_size = 0;
    /// Of a GPU: how many 32-bit registers a work-item may use such that nothing spills and enough
    /// work-items share a compute unit to hide the latency of memory. 0: unknown, without a limit.
    int item_registers = 0;
    // NVIDIA's matrix instructions. Each of these is found by a trial when the device is opened.
    bool wgmma = false;  ///< the device runs those of a warpgroup (wgmma)
    bool mma = false;    ///< the device runs those of a warp (mma.sync), and has no wgmma
    /// Local memory that a work-group of a kernel with mma may use. Drivers report less than that.
    std::uint64_t mma_local_bytes = 0;
    bool matrix_fp16 = false;  ///< the matrix instructions multiply half
    bool matrix_bf16 = false;  ///< the matrix instructions multiply bfloat16

    // Estimates, for cost models.
    double gflops = 0;        ///< fp32 peak, in 10^9 operations per second
    double gbytes_per_s = 0;  ///< memory bandwidth, in 10^9 bytes per second
    double launch_us = 5;     ///< cost of one kernel launch, in microseconds
};

/// Counts since the context was opened. The difference of two readings is what happened between.
struct Counters {
    std::uint64_t launches = 0;         ///< kernels enqueued
    std::uint64_t waits = 0;            ///< times that the host waited for the device
    std::uint64_t allocations = 0;      ///< allocations that the driver made
    std::uint64_t compiles = 0;         ///< programs compiled from source
    std::uint64_t cache_hits = 0;       ///< programs loaded from the on-disk cache
    std::uint64_t allocated_bytes = 0;  ///< bytes of live tensors and nets (MemoryUse::live)
    std::uint64_t flushes = 0;          ///< times that enqueued work was handed to the device
};

/// Device memory of a context, in bytes. Tensors and eager calls take theirs from a pool: large
/// allocations (segments) that are split into blocks and merged again. Memory that is no longer
/// used stays in the pool, for later calls to use without asking the driver.
struct MemoryUse {
    std::uint64_t live = 0;       ///< in use by tensors, eager calls and nets, as they asked for it
    std::uint64_t cached = 0;     ///< in blocks of the pool that nobody uses
    std::uint64_t reserved = 0;   ///< allocated by the driver: live, cached and what rounding costs
    std::uint64_t peak_live = 0;  ///< the largest `live` since the peaks were reset
    std::uint64_t peak_reserved = 0;       ///< the largest `reserved` since then
    std::uint64_t largest_allocation = 0;  ///< limit of the device on one tensor
    std::uint64_t total = 0;               ///< limit of the device on `reserved`
};

class Context {
  public:
    /// Opens a device: "cpu" or "host" (the host), "P:D" (DeviceInfo::id), "gpu" (the best GPU),
    /// "opencl" (the best OpenCL device), or a part of a device's or platform's name.
    ///
    /// "file:PATH" opens a device that is described by a file (databases/devices/README.md) and
    /// need not be here. Networks are planned for it as for a device with these traits, its memory
    /// is the host's, and its programs are recorded and not compiled (dlprim/programs.hpp).
    /// Whatever would run a kernel on it throws Error(unsupported). A file that describes no device
    /// throws Error(not_found), Error(io) or Error(format), which names the file and the field.
    ///
    /// An empty text means the device that the environment variable DLPRIM_DEVICE names. Without
    /// that variable it means the best OpenCL device that opens, else the host; where it is not the
    /// best one, the log gets a warning that says why (dlprim/log.hpp).
    ///
    /// The Error(not_found) for a name that fits no device lists the devices. Where there is no
    /// OpenCL platform it says how to install one.
    explicit Context(std::string_view device = {});

    /// Every device of this machine, the host last. Devices are looked up once per process, so that
    /// later changes of the machine's drivers do not show.
    static std::vector<DeviceInfo> devices();
    /// The device that Context(device) would open, without opening it. For an empty text this is
    /// the one that Context() would try first. Throws Error(not_found) as Context(device) does.
    static DeviceInfo find(std::string_view device = {});
    /// Reasons why OpenCL devices are missing or will not open, as far as they are known without
    /// opening one. Each is a sentence that says what would help. Empty where all is well.
    static std::vector<std::string> troubles();

    const DeviceInfo& info() const;
    const Traits& traits() const;
    Counters counters() const;

    /// The memory that this context uses now and has used. Does not wait. Threads that allocate
    /// meanwhile may make the numbers differ from each other by what they allocate.
    MemoryUse memory() const;
    /// Sets peak_live and peak_reserved to what is used now.
    void reset_memory_peaks() const;
    /// Gives cached memory back to the driver, as far as no block of its segment is in use. Returns
    /// the bytes that were cached. Waits for all work. Allocations do it by themselves before they
    /// throw Error(out_of_memory).
    std::uint64_t release_cached() const;

    /// Waits until all work enqueued on the context is done. Throws Error(invalid_argument) if a
    /// kernel found an index out of range since the last wait; the message names the operator. So
    /// do the other calls that wait for results, such as Tensor::copy_to_host().
    void finish() const;

    /// Whether both are handles on one opened device.
    bool operator==(const Context& other) const { return impl_ == other.impl_; }
    /// A key for maps and hashes: equal for equal contexts, and different for contexts that are
    /// open at the same time. It is not for reading, and does not keep the device open.
    const void* identity() const noexcept { return impl_.get(); }

  private:
    friend class internal::Access;
    explicit Context(std::shared_ptr<ContextImpl> impl) : impl_(std::move(impl)) {}
    ContextImpl& impl() const { return *impl_; }

    std::shared_ptr<ContextImpl> impl_;
};

}  // namespace dlprim
