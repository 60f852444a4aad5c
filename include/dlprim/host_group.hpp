// SPDX-License-Identifier: MIT
// HostGroup: processes of one host, each with a device of its own, that add up and exchange tensors
// through memory that they share. It starts no processes: who starts them gives each its rank, and
// a way to exchange a few texts (MPI, a socket, the store of another framework).
//
//   dp::HostGroup group(rank, size, exchange_texts);
//   if (group.is_shared())
//       group.all_reduce(gradients, dp::HostGroup::Reduction::sum, {.ready = dp::Event(context)});
//
// All processes make the same calls in the same order, with tensors of the same type and number of
// elements. A call waits until its results are in the tensors. It does not use the contexts' queues
// but others beside them, whose work begins behind CallOptions::ready. So what a program enqueues
// meanwhile runs beside the exchange; it must not use the call's tensors.
//
// Reductions add ranks by one binary tree over their numbers, (0 + 1) + (2 + 3), in the tensors'
// type. All ranks get the same bits, in every run, also where their devices differ.
//
// Ownership: a HostGroup is a handle; copies are of the same group. The shared memory, some
// megabytes for a process, has no name and is gone when the last process is, however it ends.
//
// Threads: one thread at a time, except leave().
//
// Errors: a process that ends, leaves or fails during a call makes it throw Error(device) in the
// others within a second, and one that does not come does after CallOptions::deadline. The group
// can then do no more. Calls that do not fit each other throw Error(invalid_argument) in all
// processes, which may go on.
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

class HostGroup {
  public:
    /// Gives a text of each process to all, in the order of ranks, and waits for all of them.
    using Exchange = std::function<std::vector<std::string>(const std::string& own)>;
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
        std::chrono::duration<double> deadline{600};  ///< of each wait for another process
    };

    /// A group of this process alone, which shares nothing.
    HostGroup() = default;
    /// Called by all processes at once, which exchange some texts. Where they cannot share
    /// memory, because they are on several hosts or in containers, or because the environment
    /// variable DLPRIM_SHARED is 0 in one of them, all of them get a group that is not shared.
    /// Throws what `exchange` throws, and Error(invalid_argument) for a rank that is not below
    /// `size`.
    HostGroup(int rank, int size, const Exchange& exchange);

    int rank() const noexcept;
    int size() const noexcept;
    /// Whether the processes share memory. Other calls throw Error(unsupported) if not.
    bool is_shared() const noexcept;
    /// Why not, as a sentence without an end; empty where they do, and for a process alone.
    const std::string& reason() const noexcept;

    /// The most bytes of a note.
    static constexpr std::size_t note_bytes = 192;
    /// Gives a few bytes of each process to all, in the order of ranks.
    std::vector<std::string> exchange_notes(const std::string& own,
                                            std::chrono::duration<double> deadline);

    /// Whether the reduction can be made of tensors of this type on a device.
    static bool can_reduce(Reduction reduction, DType dtype, const Context& context);
    /// Puts the reduced elements of all ranks' tensors into each of them. The tensor is
    /// contiguous().
    void all_reduce(const Tensor& tensor, Reduction reduction, const CallOptions& options);
    /// Puts the elements of the root's tensor into those of the others. The tensor is contiguous().
    void broadcast(const Tensor& tensor, int root, const CallOptions& options);
    /// Puts rank q's `own` into all[q], which has its type and number of elements; it may be a part
    /// of it. The tensors are contiguous().
    void all_gather(const Tensor& own, const std::vector<Tensor>& all, const CallOptions& options);

    /// Ends the group: waits of this process's other threads throw, and waits of other processes
    /// for this one. Done by the destructor of the last handle, too. Any thread may call it.
    void leave() noexcept;

  private:
    struct State;
    State& shared() const;
    std::shared_ptr<State> state_;
};

}  // namespace dlprim
