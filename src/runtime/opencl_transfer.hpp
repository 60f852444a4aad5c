// SPDX-License-Identifier: MIT
// Transfers of an OpenCL device: pinned host memory, and a second queue for inputs.
#pragma once

#include "runtime/cl.hpp"
#include "runtime/context_impl.hpp"
#include "runtime/opencl_queue.hpp"
#include "runtime/transfer.hpp"

#include <array>
#include <memory>

namespace dlprim {

/// What transfers need from their context, which they keep alive.
struct TransferHome {
    std::shared_ptr<ContextImpl> context;
    cl_context handle;
    OpenCLQueue& queue;
};

/// Pinned host memory, which drivers copy without staging it again, and the event of the copy that
/// uses it now.
class PinnedSlot {
  public:
    PinnedSlot(const TransferHome& home, std::uint64_t bytes);
    ~PinnedSlot();  ///< the copy must be finished
    PinnedSlot(const PinnedSlot&) = delete;
    PinnedSlot& operator=(const PinnedSlot&) = delete;

    std::byte* data() const noexcept { return data_; }
    cl_event event() const noexcept { return event_; }
    /// Takes ownership of the event of a copy. The previous copy must be finished.
    void set_event(cl_event event);
    /// Waits until the copy is finished. Counts a wait only if there is a copy to wait for.
    void wait(Counters& counters);

  private:
    OpenCLQueue& queue_;
    cl_mem memory_ = nullptr;
    std::byte* data_ = nullptr;
    cl_event event_ = nullptr;
};

std::unique_ptr<InputFeed> make_opencl_feed(TransferHome home, std::shared_ptr<Buffer> to,
                                            std::uint64_t byte_offset, std::uint64_t bytes);
/// Pinned memory that keeps its context.
std::shared_ptr<std::byte> make_opencl_pinned(const TransferHome& home, std::uint64_t bytes);
std::unique_ptr<Readback> make_opencl_readback(TransferHome home, std::uint64_t bytes);

}  // namespace dlprim
