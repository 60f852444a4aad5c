// SPDX-License-Identifier: MIT
// Collective operations on tensors of the device, by the library's Communicator: between ranks of
// one host in memory that they share, and between others by PyTorch's Gloo, with the same bits.
//
// A rank's device copies to memory of the host and from it by queues of their own, so that an
// operation waits for what was enqueued before the program called it, and for nothing that was
// enqueued later.
//
// Errors: whatever the library and Gloo report (a timeout, a rank that is gone) becomes
// DistBackendError, with the operation and this rank.
#pragma once

#include "common.hpp"

#include <dlprim/communicator.hpp>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace dlprim_torch {

using Tensors = std::vector<at::Tensor>;
using Reduction = c10d::ReduceOp::RedOpType;

/// A tensor as an operation finds it when the program calls it.
struct Prepared {
    at::Tensor tensor;  ///< what the program gave
    at::Tensor values;  ///< the same elements, row-major on the device: the tensor where it is so
    dp::Event ready;    ///< when the values are there

    /// Copies the values to the program's tensor where that is another one.
    void give_back() const;
};
/// Enqueues a copy where the tensor is not row-major on the device. Does not wait.
Prepared prepared(const at::Tensor& tensor, c10::Device device);
std::vector<Prepared> prepared(const Tensors& tensors, c10::Device device);

/// Throws where a reduction cannot be made of such tensors.
void check_reduction(Reduction reduction, const at::Tensor& tensor);

/// The ranks of a process group. Any thread may call leave(); all else is for the thread that makes
/// the group's collective operations.
class Group {
  public:
    explicit Group(c10::intrusive_ptr<c10d::Backend> gloo) : gloo_(std::move(gloo)) {}
    c10d::Backend& gloo() const { return *gloo_; }

    /// The first call, which all ranks make at once, connects them. Throws dlprim::Error behind
    /// leave().
    dp::Communicator open(std::chrono::milliseconds timeout);
    /// Waits of all ranks for this one end with an error, and the memory goes.
    void leave() noexcept;

  private:
    std::vector<std::string> gather(const std::string& own, std::chrono::milliseconds timeout);
    void exchange(const std::byte* own, const std::vector<std::uint64_t>& sends, std::byte* all,
                  const std::vector<std::uint64_t>& receives, std::chrono::milliseconds timeout);

    c10::intrusive_ptr<c10d::Backend> gloo_;
    std::mutex mutex_;  ///< for the two that follow
    std::optional<dp::Communicator> communicator_;
    bool left_ = false;
};

/// One operation of a process group, each of whose steps waits for the others as long as the
/// timeout. Collective ones are made by all ranks, wait, and put their results into the program's
/// tensors. Of several arguments the first one was prepared last.
class Operation {
  public:
    Operation(std::shared_ptr<Group> group, c10d::OpType type, std::chrono::milliseconds timeout);

    int rank() const { return group_->gloo().getRank(); }
    int size() const { return group_->gloo().getSize(); }

    /// Gives the result to all ranks, or to the root alone; -1 is none.
    void all_reduce(const Prepared& tensor, Reduction reduction, int root = -1);
    /// `inputs` has a tensor for each rank, each with as many elements as `output`.
    void reduce_scatter(const std::vector<Prepared>& inputs, const Prepared& output,
                        Reduction reduction);
    void broadcast(const Prepared& tensor, int root);
    /// `all` has a tensor for each rank, each with as many elements as `own`.
    void all_gather(const Prepared& own, const std::vector<Prepared>& all);
    /// To the root, which alone uses `all`.
    void gather(const Prepared& own, const std::vector<Prepared>& all, int root);
    /// From the root, which alone uses `all`.
    void scatter(const std::vector<Prepared>& all, const Prepared& own, int root);
    /// Both lists have a tensor for each rank, whose sizes may differ.
    void all_to_all(const std::vector<Prepared>& inputs, const std::vector<Prepared>& outputs);
    void barrier();

    // Between two ranks, by Gloo. The number of elements and their type go before the bytes.

    void send(const at::Tensor& tensor, int to, int tag);
    /// Returns the rank that sent it. -1 as `from` accepts any rank.
    int receive(const at::Tensor& tensor, int from, int tag);

    /// Throws DistBackendError with the operation, this rank and `problem`.
    [[noreturn]] void fail(const std::string& problem) const;

  private:
    using Call = std::function<void(dp::Communicator&, const dp::Communicator::CallOptions&)>;
    /// What the operation does, in messages.
    std::string described(const at::Tensor& values, bool counts, int root = -1,
                          Reduction reduction = Reduction::UNUSED) const;
    /// Makes a call of the library or of Gloo. What it throws is a failure of the operation.
    void guarded(const std::function<void()>& call) const;
    void make(const std::string& name, const dp::Event& ready, const Call& call) const;
    void multiply(const Prepared& tensor, int root);
    std::vector<dp::Tensor> only(int at, const at::Tensor& values) const;
    /// `last`: the tensor that was prepared last.
    void move(const std::string& name, const Prepared& last, const std::vector<dp::Tensor>& inputs,
              const std::vector<dp::Tensor>& outputs) const;

    std::shared_ptr<Group> group_;
    c10d::OpType type_;
    std::chrono::milliseconds timeout_;
};

}  // namespace dlprim_torch
