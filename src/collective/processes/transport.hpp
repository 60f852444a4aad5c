// SPDX-License-Identifier: MIT
// Transport: moves bytes between the processes of a run, by a plugin that is loaded while the
// program runs (collective/processes/transport_plugin.h): MPI's for Open MPI and for MPICH, and
// Gloo's.
//
// Every call first exchanges a header with each process that takes part: the call's number and
// kind, how many bytes go there, and a digest of them. So calls that do not match end with an error
// on all sides, and bytes that were lost, repeated, changed or put in another order are noticed.
//
// Threads: one at a time, except cancel().
#pragma once

#include "collective/processes/transport_plugin.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

/// Bytes in memory that belong together.
struct MessagePiece {
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
};
/// What goes to a process, or comes from it.
using Pieces = std::vector<MessagePiece>;

class Transport {
  public:
    /// The names of all processes serve messages.
    Transport(const dlprim_transport& plugin, void* self, int rank, std::vector<std::string> names);
    ~Transport();
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;

    using Deadline = std::chrono::duration<double>;
    // Each call waits up to the deadline. `what` says what for, in messages: "the sums of part 3".
    // All throw Error(device).

    /// Sends to[i] to process i, and receives from[i] from it. Waits for those processes alone to
    /// or from which there are pieces. All processes call it, also where they have none.
    void exchange(const std::vector<Pieces>& to, const std::vector<Pieces>& from,
                  const std::string& what, Deadline deadline) {
        move(exchange_call, to, from, what, deadline);
    }
    /// Everyone's `own` to everyone's all + rank * bytes.
    void allgather(const void* own, std::uint64_t bytes, void* all, const std::string& what,
                   Deadline deadline);
    void broadcast(std::size_t root, void* data, std::uint64_t bytes, const std::string& what,
                   Deadline deadline);
    void barrier(const std::string& what, Deadline deadline);
    /// Adds up floats of all in an order that the plugin chooses, in place. Only where it can. All
    /// get the same bits. A message that is changed on the way is noticed where it changes a sum by
    /// more than rounding may (collective/processes/sum_check.hpp), or not all sums alike.
    bool can_add() const { return plugin_.allreduce != nullptr; }
    void allreduce(float* values, std::uint64_t count, const std::string& what, Deadline deadline);

    /// Lets what was sent leave, where a process waits for something else than a call.
    void progress() {
        if (plugin_.progress != nullptr) plugin_.progress(self_);
    }
    /// From any thread: ends the present call and all later ones.
    void cancel();
    /// Closes the connections, all processes at once. Without it the destructor leaves them as they
    /// are.
    void close();
    const char* name() const { return plugin_.name; }
    /// Bytes that were sent to other processes, without headers and what allreduce() has sent.
    std::uint64_t sent() const { return sent_; }

  private:
    /// What is called, in headers.
    enum Kind : std::uint32_t {
        exchange_call,
        allgather_call,
        broadcast_call,
        barrier_call,
        allreduce_call
    };
    struct Header;
    /// Processes other than this one, by their rank, in ascending order.
    using Partners = std::vector<std::size_t>;
    Partners others() const;
    // Headers are by partner, so that a call among few processes of many costs what these do.

    /// Exchanges headers with partners, and returns theirs.
    std::vector<Header> meet(std::vector<Header> own, const Partners& partners,
                             const std::string& what, Deadline deadline);
    /// The same header with all others.
    std::vector<Header> meet(const Header& own, const std::string& what, Deadline deadline);
    /// Headers, and when these agree the pieces.
    void move(Kind kind, const std::vector<Pieces>& to, const std::vector<Pieces>& from,
              const std::string& what, Deadline deadline);
    void check(int result, const char* text, const std::string& what, Deadline deadline) const;
    Header header(Kind kind, const std::string& what) const;
    [[noreturn]] void mismatch(std::size_t rank, const Header& theirs, const Header& own) const;
    [[noreturn]] void changed(std::size_t rank, const std::string& what) const;

    const dlprim_transport& plugin_;
    void* self_;
    const std::size_t rank_;
    const std::vector<std::string> names_;
    std::uint64_t number_ = 0, sent_ = 0;
    bool closed_ = false;
};

/// A 64-bit digest of bytes, which sees any change and the order of pieces. It takes about as long
/// as reading them.
std::uint64_t digest_of(const void* data, std::uint64_t bytes, std::uint64_t before = 0);

/// Loads a plugin by its name ("openmpi", "mpich", "gloo"), or the path of a file. Throws
/// Error(not_found) where there is none, and Error(unsupported) where it does not load, which says
/// why.
const dlprim_transport& load_transport(const std::string& name);

}  // namespace dlprim
