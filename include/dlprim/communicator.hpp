// SPDX-License-Identifier: MIT
// Communicator: processes, each with devices of its own, that reduce and exchange tensors. It
// starts no processes: who starts them gives each its rank, a way to exchange a few texts, and a
// way to exchange bytes (MPI, a socket, the transport of another framework). Processes of one host
// use memory that they share in place of the latter.
//
//   dp::Communicator ranks(rank, size, {.gather = exchange_texts, .exchange = all_to_all_bytes});
//   ranks.all_reduce(gradients, dp::Communicator::Reduction::sum, {.ready = dp::Event(context)});
//
// All processes make the same calls in the same order, with tensors of the same type and number of
// elements, which are contiguous(). A call waits until its results are in the tensors. It does not
// use the contexts' queues but others beside them, whose work begins behind CallOptions::ready. So
// what a program enqueues meanwhile runs beside the call; it must not use the call's tensors.
//
// Reductions combine ranks by one binary tree over their numbers, (0 + 1) + (2 + 3), in the
// tensors' type. All ranks get the same bits, in every run, also where their devices differ, and
// whether they share memory or not.
//
// Ownership: a Communicator is a handle; copies are of the same group. The memory for exchanges,
// some megabytes for a process, has no name and is gone when the last process is, however it ends.
//
// Threads: one thread at a time, except leave().
//
// Errors: a process that ends, leaves or fails during a call makes it throw Error(device) in those
// that share memory with it within a second, and one that does not come does after
// CallOptions::deadline; with Transport::exchange, calls throw what that throws. The group can then
// do no more. Calls that do not fit each other throw Error(invalid_argument) in all processes,
// which may go on.
#pragma once

#include <dlprim/context.hpp>
#include <dlprim/event.hpp>
#include <dlprim/namespace.hpp>
#include <dlprim/tensor.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dlprim {

class Communicator {
  public:
    using Deadline = std::chrono::duration<double>;
    /// How the processes reach each other before they share memory, and where they cannot.
    struct Transport {
        /// Gives a text of each process to all, in the order of ranks, and waits for all of them.
        std::function<std::vector<std::string>(const std::string& own)> gather;
        /// Sends sends[q] bytes to each rank q, which lie behind each other at `own`, and receives
        /// receives[q] bytes of it behind each other at `all`. Waits, up to the deadline. Where it
        /// is empty, processes that share no memory make no calls.
        std::function<void(const std::byte* own, const std::vector<std::uint64_t>& sends,
                           std::byte* all, const std::vector<std::uint64_t>& receives,
                           Deadline deadline)>
            exchange;
    };
    enum class Reduction : std::uint8_t {
        sum,
        mean,  ///< the sum divided by the number of processes; of floats
        product,
        min,
        max,
        bit_and,  ///< this one and the next two are of integers
        bit_or,
        bit_xor
    };
    struct CallOptions {
        Event ready;  ///< of the tensors' context: behind it the tensors may be read and written
        Deadline deadline{600};  ///< of each wait for another process
        std::string name;        ///< of the call in messages, in place of the one that it has here
    };

    /// This process alone.
    Communicator();
    /// Called by all processes at once, which exchange some texts. Processes share no memory where
    /// they are on several hosts or in containers, or where the environment variable DLPRIM_SHARED
    /// is 0 in one of them. Throws what `gather` throws, and Error(invalid_argument) for a rank
    /// that is not below `size`.
    Communicator(int rank, int size, const Transport& transport);

    int rank() const noexcept;
    int size() const noexcept;
    /// Whether the processes share memory; no for a process alone.
    bool is_shared() const noexcept;
    /// Why not, as a sentence without an end; empty where they do, and for a process alone.
    const std::string& reason() const noexcept;

    /// Whether the reduction can be made of tensors of this type on a device.
    static bool can_reduce(Reduction reduction, DType dtype, const Context& context);

    // All of these throw Error(unsupported) where processes have no way to each other.

    /// Waits for all processes.
    void barrier(const CallOptions& options);
    /// Puts the reduced elements of all ranks' tensors into each of them.
    void all_reduce(const Tensor& tensor, Reduction reduction, const CallOptions& options);
    /// Puts them into the root's tensor alone.
    void reduce(const Tensor& tensor, Reduction reduction, int root, const CallOptions& options);
    /// Puts the reduced elements of the parts[rank] of all ranks into `out`, which has as many.
    void reduce_scatter(const std::vector<Tensor>& parts, const Tensor& out, Reduction reduction,
                        const CallOptions& options);
    /// Puts the elements of the root's tensor into those of the others.
    void broadcast(const Tensor& tensor, int root, const CallOptions& options);
    /// Puts rank q's `own` into all[q], which has its type and number of elements; it may be a part
    /// of it.
    void all_gather(const Tensor& own, const std::vector<Tensor>& all, const CallOptions& options);
    /// Puts inputs[q] of rank p into outputs[p] of rank q, which has as many bytes. Sizes and types
    /// may differ from rank to rank, and a default-made Tensor has no bytes. So it can gather to
    /// one rank, and scatter from one, too. Tensors are of the context.
    void all_to_all(const Context& context, const std::vector<Tensor>& inputs,
                    const std::vector<Tensor>& outputs, const CallOptions& options);

    /// Ends the group: waits of this process's other threads throw, and waits of other processes
    /// for this one. Done by the destructor of the last handle, too. Any thread may call it.
    void leave() noexcept;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace dlprim
