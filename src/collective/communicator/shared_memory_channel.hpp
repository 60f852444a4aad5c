// SPDX-License-Identifier: MIT
// SharedMemoryChannel: a Channel between processes of a host, in memory that they share. Each has a
// page there that it alone writes to: how many steps it has ended, its note, and that it has left
// or failed. The others wait by a futex for the number of steps.
//
// Deaths are found by pidfd_open(): a process that has ended, however it did, is noticed by those
// who wait for it.
#pragma once

#include "collective/communicator/channel.hpp"

#include <atomic>
#include <functional>

namespace dlprim {

class SharedMemoryChannel final : public Channel {
  public:
    /// Gives a text of each process to all, in the order of ranks, and waits for all of them.
    using Gather = std::function<std::vector<std::string>(const std::string& own)>;
    /// All processes connect at once. Returns nothing, and in `reason` why, where they do not share
    /// memory. Throws what `gather` throws, which all of them call equally often.
    static std::unique_ptr<Channel> connect(std::size_t rank, std::size_t size,
                                            const Gather& gather, std::string& reason);
    ~SharedMemoryChannel() override;

    void begin(Deadline deadline) override;
    void end(Deadline deadline) override;
    void write_note(const std::string& note) override;
    std::string note(std::size_t rank) const override;
    std::unique_ptr<CopyQueues> open(const Context& context) override;
    void fail(const std::string& text) noexcept override;
    void leave() noexcept override;

  private:
    struct Page;
    /// The memory of all processes, by rank.
    struct Memory {
        std::vector<std::shared_ptr<std::byte>> pages, buffers;
        std::vector<int> processes;        ///< their ids
        std::shared_ptr<std::byte> again;  ///< this process's buffers, mapped once more
    };
    /// Throws Error(unsupported) where the system cannot watch processes.
    SharedMemoryChannel(std::size_t rank, Memory memory);
    void close_watched() noexcept;
    Page& page(std::size_t process) const;
    /// Whether this is the process that made it: a forked one must not speak for it.
    bool is_own() const;
    void await(std::size_t process, Deadline deadline) const;
    /// Why nothing is to be expected of the process any more; empty if something is.
    std::string trouble_with(std::size_t process) const;
    /// Whether the host finds what the device has written, and the other way.
    bool works(CopyQueues& queues) const;

    const std::vector<std::shared_ptr<std::byte>> pages_;
    const std::vector<int> processes_;
    const std::shared_ptr<std::byte> again_;
    std::vector<int> watched_;  ///< descriptors of processes; -1 for itself
    std::atomic<bool> left_{false};
};

}  // namespace dlprim
