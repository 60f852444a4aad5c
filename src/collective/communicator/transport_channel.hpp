// SPDX-License-Identifier: MIT
// TransportChannel: a Channel between processes that share no memory, by a function that carries
// bytes from each to each, such as MPI_Alltoallv or Gloo's. The end of a step is one such call. Of
// the buffers of other ranks a process has copies, which only hold what it receives.
#pragma once

#include "collective/communicator/channel.hpp"
#include "collective/processes/transport.hpp"

#include <atomic>
#include <functional>

namespace dlprim {

class TransportChannel final : public Channel {
  public:
    /// Sends sends[q] bytes to each rank q, which lie behind each other at `own`, and receives
    /// receives[q] bytes of it behind each other at `all`. Waits.
    using Carry = std::function<void(const std::byte* own, const std::vector<std::uint64_t>& sends,
                                     std::byte* all, const std::vector<std::uint64_t>& receives,
                                     Deadline deadline)>;
    /// A rank alone needs no function. Throws Error(out_of_memory).
    TransportChannel(std::size_t rank, std::size_t size, Carry carry = {});

    void begin(Deadline deadline) override;
    void end(Deadline deadline) override;
    void write_note(const std::string& note) override;
    std::string note(std::size_t rank) const override;
    void send(std::size_t to, std::byte* data, std::uint64_t bytes) override;
    void receive(std::size_t from, std::byte* data, std::uint64_t bytes) override;
    std::unique_ptr<CopyQueues> open(const Context& context) override;
    void leave() noexcept override { left_ = true; }

  private:
    using Messages = std::vector<Pieces>;  ///< by the other rank
    const Carry carry_;
    Messages sends_, receives_;  ///< of the present step
    bool moves_ = false;         ///< whether it has any
    std::vector<std::string> notes_;
    std::atomic<bool> left_{false};
};

}  // namespace dlprim
