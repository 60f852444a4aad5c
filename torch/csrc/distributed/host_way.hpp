// SPDX-License-Identifier: MIT
// The way between ranks of one host: memory that they share (dlprim/host_group.hpp). A rank's
// device copies to it and from it by queues of their own, so that an operation waits for what was
// enqueued before the program called it, and for nothing that was enqueued later.
//
// Threads: prepared() may be called by any thread, and leave() too. All else is for the thread that
// makes a process group's collective operations.
#pragma once

#include "common.hpp"

#include <dlprim/host_group.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dlprim_torch {

/// A tensor as an operation finds it when the program calls it.
struct Prepared {
    at::Tensor tensor;  ///< what the program gave
    at::Tensor values;  ///< the same elements, row-major: the tensor where it is so
    dp::Event ready;    ///< when the values are there

    /// Copies the values to the program's tensor where that is another one.
    void give_back() const;
};
/// Enqueues a copy where the tensor is not row-major. Does not wait.
Prepared prepared(const at::Tensor& tensor);

class HostWay {
  public:
    using Reduction = c10d::ReduceOp::RedOpType;
    /// Gives a text of each rank to all.
    using Exchange = dp::HostGroup::Exchange;

    /// Finds out whether ranks share memory, at the first call, which all ranks make at once.
    /// Throws dlprim::Error behind leave().
    bool is_open(int rank, int size, const Exchange& exchange);
    /// Waits of all ranks for this one end with an error, and the memory goes.
    void leave() noexcept;

    /// Whether this rank can make such an operation. All ranks have to be asked.
    static bool can_reduce(const at::Tensor& tensor, Reduction reduction);
    static bool can_gather(const Prepared& own, const std::vector<Prepared>& all);

    // Each waits until the results are in the tensors. All throw dlprim::Error.
    std::vector<std::string> exchange_notes(const std::string& own,
                                            std::chrono::milliseconds timeout);
    void all_reduce(const Prepared& tensor, Reduction reduction, std::chrono::milliseconds timeout);
    void broadcast(const Prepared& tensor, int root, std::chrono::milliseconds timeout);
    /// `own` was prepared after `all`.
    void all_gather(const Prepared& own, const std::vector<Prepared>& all,
                    std::chrono::milliseconds timeout);

  private:
    /// A handle of its own, which outlives leave(). Throws dlprim::Error behind it.
    dp::HostGroup group() const;

    mutable std::mutex mutex_;  ///< for the two that follow
    std::optional<dp::HostGroup> group_;
    bool left_ = false;
};

}  // namespace dlprim_torch
