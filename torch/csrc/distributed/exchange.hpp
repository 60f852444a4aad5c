// SPDX-License-Identifier: MIT
// What the ranks of a process group say to each other during one operation: bytes of the host, by
// PyTorch's Gloo, or tensors of the device by memory that ranks of one host share.
//
// Errors: whatever these report (a timeout, a rank that is gone) becomes DistBackendError, with the
// operation and this rank.
#pragma once

#include "common.hpp"
#include "distributed/host_way.hpp"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <memory>

namespace dlprim_torch {

/// What all ranks have to give alike, or they would wait for bytes that never come.
struct Terms {
    c10d::ReduceOp::RedOpType reduction = c10d::ReduceOp::UNUSED;
    std::int64_t root = -1;  ///< the rank from or to which values go; -1: there is none
    at::Tensor values;       ///< of its type and number of elements; undefined: of none
    bool shares = false;     ///< whether this rank can do it in shared memory; may differ
};

class Exchange {
  public:
    /// For one operation, each of whose steps waits for the others as long as `timeout`.
    Exchange(c10::intrusive_ptr<c10d::Backend> gloo, std::shared_ptr<HostWay> host,
             c10d::OpType operation, std::chrono::milliseconds timeout);

    int rank() const { return gloo_->getRank(); }
    int size() const { return gloo_->getSize(); }

    /// Throws on all ranks, with the same sentence, where ranks make different operations or give
    /// different terms. Returns whether all ranks share memory and can use it for this operation.
    bool agree(const Terms& terms);

    // Where agree() has returned true.

    void all_reduce(const Prepared& tensor, HostWay::Reduction reduction);
    void broadcast(const Prepared& tensor, int root);
    void all_gather(const Prepared& own, const std::vector<Prepared>& all);

    // Tensors of bytes on the CPU, one-dimensional. Where there are none nothing is sent.

    /// `all` gets every rank's `own`, in the order of ranks.
    void all_gather(at::Tensor own, at::Tensor all);
    /// Cuts `own` in equal pieces, one for each rank, and collects the pieces for this rank in
    /// `all`, in the order of ranks.
    void all_to_all(at::Tensor own, at::Tensor all);
    /// As above, with pieces of so many bytes. Throws, on all ranks, where a rank sends another
    /// number of bytes than its receiver expects.
    void all_to_all(at::Tensor own, std::vector<std::int64_t> sends, at::Tensor all,
                    std::vector<std::int64_t> receives);
    void broadcast(at::Tensor bytes, int root);
    /// `all` is used on the root alone.
    void gather(at::Tensor own, const at::Tensor& all, int root);
    void scatter(const at::Tensor& all, at::Tensor own, int root);

    // To and from one rank. The number of elements and their type go before the bytes.

    void send(at::Tensor bytes, const at::Tensor& values, int to, int tag);
    /// Returns the bytes, and in `from` the rank that sent them; -1 there accepts any rank. Throws
    /// after the bytes were taken where they are not for a tensor like `values`.
    at::Tensor receive(const at::Tensor& values, int& from, int tag);

    /// Throws DistBackendError with the operation, this rank and `problem`.
    [[noreturn]] void fail(const std::string& problem) const;

  private:
    void agree_on_pieces(const std::vector<std::int64_t>& sends,
                         const std::vector<std::int64_t>& receives);
    template <typename Call>
    void transfer(Call&& call);

    /// Makes the call of shared memory.
    template <typename Call>
    void share(Call&& call);
    std::vector<std::string> exchange_texts(const std::string& own);

    c10::intrusive_ptr<c10d::Backend> gloo_;
    std::shared_ptr<HostWay> host_;
    c10d::OpType operation_;
    std::chrono::milliseconds timeout_;
};

}  // namespace dlprim_torch
