// SPDX-License-Identifier: MIT
// Channel: how bytes get from each rank of a Communicator to the others, in steps that all ranks
// make alike. What a rank writes in step t the others read in step t + 1. A rank enters a step when
// all have ended the one before, so that two buffers for each rank, for even and odd steps, serve
// tensors of any size.
//
//     begin()   waits until all ranks have ended the step before
//     ...       copies to chunk() and result() of this rank, from those of other ranks of step - 1
//     end()     what this step has written can be read in the next one
//
// There are two implementations. Processes of a host share memory, where each reads what others
// have written (shared_memory_channel.hpp). Others have a transport, which carries what send() and
// receive() name into copies of the others' buffers (transport_channel.hpp).
//
// Threads: one at a time, except leave().
#pragma once

#include "collective/devices/second_queue.hpp"

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// Two queues beside a device's own: one copies to the host while the other one copies from it and
/// computes. PCI Express carries both directions at once.
struct CopyQueues {
    explicit CopyQueues(const Context& context);

    Context up, down;
    std::vector<std::shared_ptr<void>> pinned;  ///< what makes the memory known to the driver
    StagingTensors staging;                     ///< of `down`, for elements of other ranks

    /// Hands the work of both queues to the device and waits for it.
    void finish();
    /// The same where something has failed: memory that copies still use must not go.
    void drain() noexcept;
};

class Channel {
  public:
    using Deadline = std::chrono::duration<double>;
    static constexpr std::uint64_t chunk_bytes = 4 << 20;
    static constexpr std::size_t note_bytes = 384;
    /// The bytes of the buffers of a rank: for each of two steps a chunk that it sends, and its
    /// slice of a chunk that it has reduced.
    static std::uint64_t buffer_bytes(std::size_t ranks);

    virtual ~Channel() = default;
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    std::size_t rank() const { return rank_; }
    std::size_t size() const { return buffers_.size(); }
    /// The number of the present step.
    std::uint32_t step() const { return step_; }
    /// What a rank sends in a step, and what it has reduced.
    std::byte* chunk(std::size_t rank, std::uint32_t step) const;
    std::byte* result(std::size_t rank, std::uint32_t step) const;

    /// Both throw Error(device) where another rank has gone or does not come within the deadline.
    virtual void begin(Deadline deadline) = 0;
    virtual void end(Deadline deadline) = 0;
    /// Writes a note, and nothing else, in a step. Others read it in the next one.
    virtual void write_note(const std::string& note) = 0;
    /// What a rank wrote in the step before this one.
    virtual std::string note(std::size_t rank) const = 0;
    /// Says, in a step, what of this rank's buffers another rank will read, and what of another
    /// rank's this one will. All ranks of a step say so, or none, also where there are no bytes.
    virtual void send(std::size_t, std::byte*, std::uint64_t) {}
    virtual void receive(std::size_t, std::byte*, std::uint64_t) {}

    /// Queues of a device that reach the buffers; called within a step. Throws Error(device) where
    /// there are none.
    virtual std::unique_ptr<CopyQueues> open(const Context& context) = 0;
    /// Tells the others, whose waits then throw, that this rank cannot go on.
    virtual void fail(const std::string&) noexcept {}
    /// Waits of this rank's other threads throw then, and so do those of others for this rank.
    virtual void leave() noexcept = 0;

  protected:
    /// `buffers`: by rank, of buffer_bytes() each.
    Channel(std::size_t rank, std::vector<std::shared_ptr<std::byte>> buffers);

    const std::size_t rank_;
    const std::vector<std::shared_ptr<std::byte>> buffers_;
    std::uint32_t step_ = 0;
};

}  // namespace dlprim
