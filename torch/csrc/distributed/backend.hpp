// SPDX-License-Identifier: MIT
// The backend "ocl" of torch.distributed: process groups whose tensors lie on the device.
//
// Operations check their arguments and return at once; a thread makes them
// (communication_thread.hpp). Every rank is a process with one device. Between processes of one
// host tensors go by memory that these share, else by a process group of Gloo over the same ranks,
// which the backend owns (collectives.hpp).
//
// Threads: as for every backend, all ranks make the same collective operations in the same order;
// who calls them from several threads keeps that order.
#pragma once

#include "distributed/collectives.hpp"
#include "distributed/communication_thread.hpp"

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <map>
#include <mutex>
#include <tuple>

namespace dlprim_torch {

class OclBackend final : public c10d::Backend {
  public:
    /// `gloo` has this rank and size. `timeout` is how long a step of an operation waits for other
    /// ranks, unless the operation's options say otherwise.
    OclBackend(c10::intrusive_ptr<c10d::Backend> gloo, std::chrono::milliseconds timeout);
    ~OclBackend() override { group_->leave(); }

    const std::string getBackendName() const override { return "ocl"; }
    c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
    void setTimeout(std::chrono::milliseconds timeout) override;
    void setSequenceNumberForGroup() override {}
    uint64_t getSequenceNumberForGroup() override;
    /// Cancel what has not started, and wait a moment for what has.
    void shutdown() override;
    void abort() override;

    using Result = c10::intrusive_ptr<c10d::Work>;
    Result broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
    Result allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
    Result allreduce_coalesced(Tensors& tensors,
                               const c10d::AllreduceCoalescedOptions& options) override;
    Result reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
    Result allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                     const c10d::AllgatherOptions& options) override;
    Result _allgather_base(at::Tensor& output, at::Tensor& input,
                           const c10d::AllgatherOptions& options) override;
    Result allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                               const c10d::AllgatherOptions& options) override;
    Result allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                           const c10d::AllgatherOptions& options) override;
    Result gather(std::vector<Tensors>& outputs, Tensors& inputs,
                  const c10d::GatherOptions& options) override;
    Result scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                   const c10d::ScatterOptions& options) override;
    Result reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                          const c10d::ReduceScatterOptions& options) override;
    Result _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                const c10d::ReduceScatterOptions& options) override;
    Result reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                           const c10d::ReduceScatterOptions& options) override;
    Result alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                         std::vector<int64_t>& input_sizes,
                         const c10d::AllToAllOptions& options) override;
    Result alltoall(Tensors& outputs, Tensors& inputs,
                    const c10d::AllToAllOptions& options) override;
    Result send(Tensors& tensors, int to, int tag) override;
    Result recv(Tensors& tensors, int from, int tag) override;
    Result recvAnysource(Tensors& tensors, int tag) override;
    Result barrier(const c10d::BarrierOptions& options) override;

  private:
    using Body = std::function<void(Operation&)>;

    std::chrono::milliseconds limit(std::chrono::milliseconds asked) const;
    Result collective(c10d::OpType operation, std::chrono::milliseconds timeout, Tensors results,
                      Body body);
    Result gather_all(c10d::OpType operation, Tensors inputs, std::vector<Tensors> outputs,
                      std::chrono::milliseconds timeout);
    Result scatter_sums(c10d::OpType operation, std::vector<Tensors> inputs, Tensors outputs,
                        const c10d::ReduceScatterOptions& options);
    CommunicationThread& thread_of(bool sends, int peer, int tag);

    std::shared_ptr<Group> group_;
    c10::intrusive_ptr<Options> options_;
    CommunicationThread collectives_;
    std::mutex mutex_;  ///< for what follows
    std::map<std::tuple<bool, int, int>, std::unique_ptr<CommunicationThread>> peers_;
    std::uint64_t operations_ = 0;
};

}  // namespace dlprim_torch
