// SPDX-License-Identifier: MIT
// What an operation of a process group returns: torch.distributed.Work, with a future.
//
// Threads: one thread completes it, any thread may wait. When wait() returns, the results are in
// the device's queue, so that whatever is enqueued from then on sees them.
#pragma once

#include "common.hpp"

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>

namespace dlprim_torch {

class Work final : public c10d::Work {
  public:
    /// `results` are the tensors that the operation writes; the future's value is their list.
    Work(int rank, c10d::OpType operation, std::vector<at::Tensor> results);

    /// Calls `body` and completes this with what it did: with its exception where it throws.
    void run(const std::function<void()>& body);
    /// The rank from which a receive from any rank got its tensor.
    void set_source(int rank) { source_ = rank; }

    std::vector<at::Tensor> result() override { return results_; }
    int sourceRank() const override { return source_; }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

  private:
    std::vector<at::Tensor> results_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    int source_ = -1;
};

}  // namespace dlprim_torch
