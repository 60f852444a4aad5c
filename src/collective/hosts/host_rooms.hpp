// SPDX-License-Identifier: MIT
// HostRooms: the shared memory through which processes of a host exchange tensors in steps
// (collective/hosts/host_board.hpp), and the queues of a device that copy from and to it.
//
// A process has two rooms, for even and odd steps. A room has space for a chunk that the process
// sends, and for a slice of a chunk that it has reduced.
//
// Threads: one at a time.
#pragma once

#include "collective/hosts/shared_memory.hpp"
#include "runtime/context_impl.hpp"

#include <dlprim/context.hpp>
#include <dlprim/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace dlprim {

/// Two queues beside a device's own: one copies to the host while the other one copies from it and
/// computes. PCI Express carries both directions at once.
struct HostSide {
    Context up, down;
    std::vector<std::shared_ptr<void>> pinned;  ///< what makes the memory known to the driver
    Tensor staging;                             ///< of `down`, for bytes of other processes

    /// Memory of `down` that is used until the next call of this.
    Tensor stage(std::int64_t elements, DType dtype);
    /// Hands the work of both queues to the device and waits for it.
    void finish();
    /// The same where something has failed: memory that copies still use must not go.
    void drain() noexcept;
};

class HostRooms {
  public:
    static constexpr std::uint64_t chunk_bytes = 4 << 20;
    /// The bytes of both rooms of a process.
    static std::uint64_t bytes(std::size_t processes);

    /// `memory`: the rooms of all processes, by rank; `again`: those of this one, mapped once more.
    HostRooms(std::size_t rank, std::vector<SharedMemory::Part> memory, SharedMemory::Part again);

    std::byte* sent(std::size_t process, std::uint32_t step) const;
    std::byte* reduced(std::size_t process, std::uint32_t step) const;

    /// The queues beside that of a context, which the first call makes and tries out in the room of
    /// this process for the step. Throws Error(device) where the device does not reach the memory.
    HostSide& side(const Context& context, std::uint32_t step);

  private:
    std::unique_ptr<HostSide> make_side(const Context& context, bool pinned) const;
    /// Whether the host finds what the device has written, and the other way.
    bool works(HostSide& side, std::uint32_t step) const;

    const std::size_t rank_;
    const std::vector<SharedMemory::Part> memory_;
    const SharedMemory::Part again_;
    struct Opened {
        Context context;  ///< kept, so that its key is not used again
        std::unique_ptr<HostSide> side;
    };
    std::map<const void*, Opened> sides_;
};

}  // namespace dlprim
