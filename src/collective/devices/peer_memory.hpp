// SPDX-License-Identifier: MIT
// PeerMemory: memory of one device that the kernels of several devices reach, each by a context of
// its own. There are two sources: host memory, where all contexts are of the host; and memory of
// GPUs that CUDA's driver makes, which OpenCL contexts import by descriptors (over NVLink or PCI
// Express). A source is ruled in by a probe that writes and reads on all devices and compares every
// element, with values that change.
//
// Order: a device sees what another one wrote when the host has waited for the writer's queue
// before it enqueues the reader's work.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlprim {

class Buffer;
class ContextImpl;

/// Enqueues factor * (left + right), which goes to each of `outs`; these may be `left` or `right`.
using AddPair = std::function<void(const Tensor& left, const Tensor& right,
                                   const std::vector<Tensor>& outs, double factor)>;

class PeerMemory {
  public:
    /// Makes a buffer of it in a context, and keeps the memory.
    using Open = std::function<std::shared_ptr<Buffer>(std::size_t context)>;
    PeerMemory(std::size_t contexts, Open open) : open_(std::move(open)), buffers_(contexts) {}
    PeerMemory(const PeerMemory&) = delete;
    PeerMemory& operator=(const PeerMemory&) = delete;

    /// The memory as a context has it. Each context is asked for by a thread of its own, after the
    /// memory was made. The buffer must not outlive this object. Throws Error.
    const std::shared_ptr<Buffer>& in(std::size_t context);

  private:
    const Open open_;
    std::vector<std::shared_ptr<Buffer>> buffers_;  ///< opened when they are first asked for
};

class PeerSource {
  public:
    virtual ~PeerSource() = default;
    /// "memory that GPUs reach": for notes.
    virtual std::string name() const = 0;
    /// The most bytes that make() gives at once.
    virtual std::uint64_t largest() const { return std::numeric_limits<std::uint64_t>::max(); }
    /// Memory on the device of context `owner`. Throws Error.
    virtual std::shared_ptr<PeerMemory> make(std::size_t owner, std::uint64_t bytes) = 0;
};

/// The source for contexts of the host. Throws Error(unsupported) where one is not of the host.
std::shared_ptr<PeerSource> host_peers(const std::vector<Context>& contexts);

/// How a context gets the memory behind a descriptor, as import_descriptor() does.
using ImportDescriptor = std::function<std::shared_ptr<Buffer>(ContextImpl& context, int descriptor,
                                                               std::uint64_t bytes)>;
class CudaDriver;
/// The source for contexts on GPUs of CUDA's driver; devices[i] is context i's number there. Throws
/// Error(unsupported) where a device does not reach another one's memory.
std::shared_ptr<PeerSource> cuda_peers(const std::vector<Context>& contexts,
                                       std::shared_ptr<const CudaDriver> driver,
                                       const std::vector<int>& devices, ImportDescriptor import);
/// The same for contexts as they are. Throws Error(unsupported) where one cannot import memory, or
/// is on a device that CUDA's driver does not know.
std::shared_ptr<PeerSource> cuda_peers(const std::vector<Context>& contexts);

/// Why memory of the source does not serve: a sentence; empty if it does. Each context writes to
/// memory of each device, by a copy and by a kernel, and all contexts read it in both ways.
/// `patience`: how long that may take; a driver that hangs keeps a thread.
std::string trouble_of(const std::shared_ptr<PeerSource>& source,
                       const std::vector<Context>& contexts, const AddPair& add,
                       std::chrono::duration<double> patience);

/// What was chosen: a source, or none, and why none.
struct PeerChoice {
    std::shared_ptr<PeerSource> source;
    std::string reason;
    /// Bytes that are made at once at most; the source may have a limit of its own.
    std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

    std::uint64_t largest() const { return source ? std::min(most, source->largest()) : most; }
};
/// Whether DLPRIM_PEER=1 allows sources.
bool peers_are_allowed();
/// The first source that works, if DLPRIM_PEER=1 allows any, with DLPRIM_PEER_MIB as its limit;
/// else none, for no reason. Throws Error(invalid_argument) for other values of these.
PeerChoice choose_peers(const std::vector<Context>& contexts, const AddPair& add);

}  // namespace dlprim
