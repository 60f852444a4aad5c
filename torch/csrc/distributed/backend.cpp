// SPDX-License-Identifier: MIT
#include "distributed/backend.hpp"

#include "distributed/work.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/DeviceGuard.h>

#include <numeric>

namespace dlprim_torch {
namespace {

using c10d::OpType;
using Result = OclBackend::Result;
using std::chrono::milliseconds;

constexpr milliseconds stop_timeout(2000);

void check_tensor(OpType operation, const at::Tensor& tensor) {
    TORCH_CHECK_VALUE(tensor.device().type() == c10::DeviceType::PrivateUse1,
                      c10d::opTypeToString(operation), " of the backend \"ocl\" got a tensor on ",
                      tensor.device(),
                      ". Move it to the device \"ocl\" first; for tensors of the "
                      "CPU, start the group with the backend \"cpu:gloo,ocl:ocl\".");
    TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == at::kStrided, c10d::opTypeToString(operation),
                                " of the backend \"ocl\" is for dense tensors, not for ",
                                tensor.layout(), ". Make it dense by to_dense().");
}

void check_tensors(OpType operation, const Tensors& tensors) {
    for (const at::Tensor& tensor : tensors) check_tensor(operation, tensor);
}

const at::Tensor& only(OpType operation, const Tensors& tensors) {
    TORCH_CHECK_VALUE(tensors.size() == 1, c10d::opTypeToString(operation),
                      " takes one tensor in a process, not ", tensors.size(), ".");
    check_tensor(operation, tensors.front());
    return tensors.front();
}

/// Checks a list that has a tensor like `one` for each of so many ranks.
void check_list(OpType operation, const Tensors& list, const at::Tensor& one, int ranks) {
    TORCH_CHECK_VALUE(
        list.size() == static_cast<std::size_t>(ranks), c10d::opTypeToString(operation),
        " needs a list with a tensor for each of the ", ranks, " ranks, not ", list.size(), ".");
    check_tensors(operation, list);
    for (const at::Tensor& tensor : list)
        TORCH_CHECK_VALUE(
            tensor.numel() == one.numel() && tensor.scalar_type() == one.scalar_type(),
            c10d::opTypeToString(operation),
            " needs tensors of one type and number of elements in ", "its lists: there are ",
            tensor.numel(), " elements of ", tensor.scalar_type(), " where ", one.numel(), " of ",
            one.scalar_type(), " were expected.");
}

/// Cuts a tensor in equal parts, one for each rank. The parts are views where it is row-major.
Tensors parts_of(OpType operation, const at::Tensor& tensor, const at::Tensor& one, int ranks) {
    check_tensor(operation, tensor);
    check_tensor(operation, one);
    TORCH_CHECK_VALUE(tensor.is_contiguous(), c10d::opTypeToString(operation),
                      " needs a contiguous tensor for the values of all ranks.");
    TORCH_CHECK_VALUE(tensor.numel() == one.numel() * ranks, c10d::opTypeToString(operation),
                      " needs ", ranks, " times ", one.numel(), " elements for the values of all ",
                      "ranks, not ", tensor.numel(), ".");
    Tensors parts;
    for (int rank = 0; rank < ranks; ++rank)
        parts.push_back(tensor.view({-1}).narrow(0, rank * one.numel(), one.numel()));
    return parts;
}

/// Cuts a tensor along its first dimension: into equal parts where no sizes are given.
Tensors rows_of(OpType operation, const at::Tensor& tensor, std::vector<std::int64_t> sizes,
                int ranks) {
    check_tensor(operation, tensor);
    TORCH_CHECK_VALUE(tensor.dim() > 0 && tensor.is_contiguous(), c10d::opTypeToString(operation),
                      " needs contiguous tensors of at least one dimension.");
    if (sizes.empty()) {
        TORCH_CHECK_VALUE(tensor.size(0) % ranks == 0, c10d::opTypeToString(operation),
                          " cannot cut ", tensor.size(0), " rows into equal parts for ", ranks,
                          " ranks. Give the sizes of the parts.");
        sizes.assign(static_cast<std::size_t>(ranks), tensor.size(0) / ranks);
    }
    const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0));
    TORCH_CHECK_VALUE(sizes.size() == static_cast<std::size_t>(ranks) && sum == tensor.size(0),
                      c10d::opTypeToString(operation), " needs sizes of parts for ", ranks,
                      " ranks, whose sum is ", tensor.size(0), ".");
    return tensor.split_with_sizes(sizes);
}

void check_root(OpType operation, std::int64_t root, int ranks) {
    TORCH_CHECK_VALUE(root >= 0 && root < ranks, c10d::opTypeToString(operation), " got the root ",
                      root, " in a group of ", ranks, " ranks.");
}

/// The device that the operation uses: that of its first tensor.
c10::Device device_of(const Tensors& tensors) {
    if (!tensors.empty()) return tensors.front().device();
    return c10::Device(c10::DeviceType::PrivateUse1);
}

/// Starts `body` on the thread.
template <typename Body>
Result start(CommunicationThread& thread, c10::intrusive_ptr<Work> work, Operation operation,
             c10::Device device, Body body) {
    thread.push([work, operation, device, body = std::move(body)](bool cancelled) mutable {
        work->run([&] {
            if (cancelled) operation.fail("its process group was destroyed before it could start.");
            // Results are written below autograd, as all backends do.
            const at::AutoDispatchBelowADInplaceOrView below;
            const c10::OptionalDeviceGuard guard(device.has_index() ? std::optional(device)
                                                                    : std::nullopt);
            body(operation);
        });
    });
    return work;
}

}  // namespace

OclBackend::OclBackend(c10::intrusive_ptr<c10d::Backend> gloo, milliseconds timeout)
    : Backend(gloo->getRank(), gloo->getSize()),
      group_(std::make_shared<Group>(std::move(gloo))),
      options_(c10::make_intrusive<Options>("ocl", timeout)) {}

void OclBackend::setTimeout(milliseconds timeout) {
    const std::lock_guard lock(mutex_);
    options_->timeout = timeout;
}

uint64_t OclBackend::getSequenceNumberForGroup() {
    const std::lock_guard lock(mutex_);
    return operations_;
}

void OclBackend::shutdown() {
    collectives_.stop(stop_timeout);
    const std::lock_guard lock(mutex_);
    for (auto& [key, thread] : peers_) thread->stop(stop_timeout);
    group_->leave();
}

void OclBackend::abort() {
    group_->leave();
    shutdown();
}

milliseconds OclBackend::limit(milliseconds asked) const {
    return asked == c10d::kUnsetTimeout ? options_->timeout : asked;
}

Result OclBackend::collective(OpType operation, milliseconds timeout, Tensors results, Body body) {
    milliseconds own{};
    {
        const std::lock_guard lock(mutex_);
        ++operations_;
        own = limit(timeout);
    }
    const c10::Device device = device_of(results);
    auto work = c10::make_intrusive<Work>(getRank(), operation, std::move(results));
    return start(collectives_, std::move(work), Operation(group_, operation, own), device,
                 std::move(body));
}

Result OclBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
    const at::Tensor tensor = only(OpType::BROADCAST, tensors);
    check_root(OpType::BROADCAST, options.rootRank, getSize());
    const int root = static_cast<int>(options.rootRank);
    return collective(
        OpType::BROADCAST, options.timeout, {tensor},
        [=, ready = prepared(tensor, tensor.device())](Operation& e) { e.broadcast(ready, root); });
}

Result OclBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
    only(OpType::ALLREDUCE, tensors);
    const Reduction reduction = options.reduceOp;
    check_reduction(reduction, tensors.front());
    return collective(OpType::ALLREDUCE, options.timeout, tensors,
                      [=, ready = prepared(tensors.front(), tensors.front().device())](
                          Operation& e) { e.all_reduce(ready, reduction); });
}

Result OclBackend::allreduce_coalesced(Tensors& tensors,
                                       const c10d::AllreduceCoalescedOptions& options) {
    check_tensors(OpType::ALLREDUCE_COALESCED, tensors);
    const Reduction reduction = options.reduceOp;
    for (const at::Tensor& tensor : tensors) check_reduction(reduction, tensor);
    std::vector<Prepared> ready;
    for (const at::Tensor& tensor : tensors) ready.push_back(prepared(tensor, tensor.device()));
    return collective(OpType::ALLREDUCE_COALESCED, options.timeout, tensors,
                      [=, ready = std::move(ready)](Operation& e) {
                          for (const Prepared& one : ready) e.all_reduce(one, reduction);
                      });
}

Result OclBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
    const at::Tensor tensor = only(OpType::REDUCE, tensors);
    const Reduction reduction = options.reduceOp;
    check_reduction(reduction, tensor);
    check_root(OpType::REDUCE, options.rootRank, getSize());
    const int root = static_cast<int>(options.rootRank);
    return collective(OpType::REDUCE, options.timeout, {tensor},
                      [=, ready = prepared(tensor, tensor.device())](Operation& e) {
                          e.all_reduce(ready, reduction, root);
                      });
}

Result OclBackend::gather_all(OpType operation, Tensors inputs, std::vector<Tensors> outputs,
                              milliseconds timeout) {
    TORCH_CHECK_VALUE(inputs.size() == outputs.size(), c10d::opTypeToString(operation),
                      " needs as many lists of results as tensors.");
    check_tensors(operation, inputs);
    Tensors results;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        check_list(operation, outputs[i], inputs[i], getSize());
        results.insert(results.end(), outputs[i].begin(), outputs[i].end());
    }
    std::vector<std::vector<Prepared>> into;
    std::vector<Prepared> from;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        into.push_back(prepared(outputs[i], inputs[i].device()));
        from.push_back(prepared(inputs[i], inputs[i].device()));
    }
    return collective(operation, timeout, results,
                      [into = std::move(into), from = std::move(from)](Operation& e) {
                          for (std::size_t i = 0; i < from.size(); ++i)
                              e.all_gather(from[i], into[i]);
                      });
}

Result OclBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                             const c10d::AllgatherOptions& options) {
    only(OpType::ALLGATHER, inputs);
    return gather_all(OpType::ALLGATHER, inputs, outputs, options.timeout);
}

Result OclBackend::allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                       const c10d::AllgatherOptions& options) {
    return gather_all(OpType::ALLGATHER_COALESCED, inputs, outputs, options.timeout);
}

Result OclBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::AllgatherOptions& options) {
    return gather_all(OpType::_ALLGATHER_BASE, {input},
                      {parts_of(OpType::_ALLGATHER_BASE, output, input, getSize())},
                      options.timeout);
}

Result OclBackend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                   const c10d::AllgatherOptions& options) {
    TORCH_CHECK_VALUE(inputs.size() == outputs.size(),
                      "ALLGATHER_COALESCED needs as many results as tensors.");
    std::vector<Tensors> lists;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        lists.push_back(parts_of(OpType::ALLGATHER_COALESCED, outputs[i], inputs[i], getSize()));
    return gather_all(OpType::ALLGATHER_COALESCED, inputs, lists, options.timeout);
}

Result OclBackend::gather(std::vector<Tensors>& outputs, Tensors& inputs,
                          const c10d::GatherOptions& options) {
    const at::Tensor input = only(OpType::GATHER, inputs);
    check_root(OpType::GATHER, options.rootRank, getSize());
    const int root = static_cast<int>(options.rootRank);
    const Tensors list = outputs.empty() ? Tensors() : outputs.front();
    if (getRank() == root) check_list(OpType::GATHER, list, input, getSize());
    const std::vector<Prepared> into = prepared(list, input.device());
    const Prepared from = prepared(input, input.device());
    return collective(OpType::GATHER, options.timeout, list, [=](Operation& e) {
        const c10::DeviceGuard guard(input.device());
        e.gather(from, into, root);
    });
}

Result OclBackend::scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                           const c10d::ScatterOptions& options) {
    const at::Tensor output = only(OpType::SCATTER, outputs);
    check_root(OpType::SCATTER, options.rootRank, getSize());
    const int root = static_cast<int>(options.rootRank);
    const Tensors list = inputs.empty() ? Tensors() : inputs.front();
    if (getRank() == root) check_list(OpType::SCATTER, list, output, getSize());
    const Prepared into = prepared(output, output.device());
    const std::vector<Prepared> from =
        prepared(getRank() == root ? list : Tensors(), output.device());
    return collective(OpType::SCATTER, options.timeout, {output},
                      [=](Operation& e) { e.scatter(from, into, root); });
}

Result OclBackend::scatter_sums(OpType operation, std::vector<Tensors> inputs, Tensors outputs,
                                const c10d::ReduceScatterOptions& options) {
    TORCH_CHECK_VALUE(inputs.size() == outputs.size(), c10d::opTypeToString(operation),
                      " needs as many results as lists of tensors.");
    const Reduction reduction = options.reduceOp;
    check_tensors(operation, outputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        check_list(operation, inputs[i], outputs[i], getSize());
        check_reduction(reduction, outputs[i]);
    }
    std::vector<Prepared> into;
    std::vector<std::vector<Prepared>> from;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        into.push_back(prepared(outputs[i], outputs[i].device()));
        from.push_back(prepared(inputs[i], outputs[i].device()));
    }
    return collective(operation, options.timeout, outputs,
                      [=, into = std::move(into), from = std::move(from)](Operation& e) {
                          for (std::size_t i = 0; i < from.size(); ++i)
                              e.reduce_scatter(from[i], into[i], reduction);
                      });
}

Result OclBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                  const c10d::ReduceScatterOptions& options) {
    only(OpType::REDUCE_SCATTER, outputs);
    return scatter_sums(OpType::REDUCE_SCATTER, inputs, outputs, options);
}

Result OclBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                        const c10d::ReduceScatterOptions& options) {
    return scatter_sums(OpType::_REDUCE_SCATTER_BASE,
                        {parts_of(OpType::_REDUCE_SCATTER_BASE, input, output, getSize())},
                        {output}, options);
}

Result OclBackend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                   const c10d::ReduceScatterOptions& options) {
    // PyTorch has a name of its own for several at once since 2.13 alone.
    constexpr OpType operation = OpType::_REDUCE_SCATTER_BASE;
    TORCH_CHECK_VALUE(inputs.size() == outputs.size(), c10d::opTypeToString(operation),
                      " needs as many results as tensors.");
    std::vector<Tensors> lists;
    for (std::size_t i = 0; i < inputs.size(); ++i)
        lists.push_back(parts_of(operation, inputs[i], outputs[i], getSize()));
    return scatter_sums(operation, lists, outputs, options);
}

Result OclBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                 std::vector<int64_t>& output_sizes,
                                 std::vector<int64_t>& input_sizes,
                                 const c10d::AllToAllOptions& options) {
    const Tensors inputs = rows_of(OpType::ALLTOALL_BASE, input, input_sizes, getSize());
    const Tensors outputs = rows_of(OpType::ALLTOALL_BASE, output, output_sizes, getSize());
    const std::vector<Prepared> into = prepared(outputs, output.device());
    const std::vector<Prepared> from = prepared(inputs, output.device());
    return collective(OpType::ALLTOALL_BASE, options.timeout, {output},
                      [=](Operation& e) { e.all_to_all(from, into); });
}

Result OclBackend::alltoall(Tensors& outputs, Tensors& inputs,
                            const c10d::AllToAllOptions& options) {
    const auto ranks = static_cast<std::size_t>(getSize());
    TORCH_CHECK_VALUE(inputs.size() == ranks && outputs.size() == ranks,
                      "ALLTOALL needs lists with a tensor for each of the ", ranks, " ranks, not ",
                      inputs.size(), " and ", outputs.size(), ".");
    check_tensors(OpType::ALLTOALL, inputs);
    check_tensors(OpType::ALLTOALL, outputs);
    const std::vector<Prepared> into = prepared(outputs, outputs.front().device());
    const std::vector<Prepared> from = prepared(inputs, outputs.front().device());
    return collective(OpType::ALLTOALL, options.timeout, outputs,
                      [=](Operation& e) { e.all_to_all(from, into); });
}

CommunicationThread& OclBackend::thread_of(bool sends, int peer, int tag) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<CommunicationThread>& thread = peers_[{sends, peer, tag}];
    if (!thread) thread = std::make_unique<CommunicationThread>();
    return *thread;
}

Result OclBackend::send(Tensors& tensors, int to, int tag) {
    const at::Tensor tensor = only(OpType::SEND, tensors);
    check_root(OpType::SEND, to, getSize());
    auto work = c10::make_intrusive<Work>(getRank(), OpType::SEND, Tensors{});
    return start(thread_of(true, to, tag), work, Operation(group_, OpType::SEND, options_->timeout),
                 tensor.device(), [=](Operation& e) { e.send(tensor, to, tag); });
}

Result OclBackend::recv(Tensors& tensors, int from, int tag) {
    const at::Tensor tensor = only(OpType::RECV, tensors);
    check_root(OpType::RECV, from, getSize());
    auto work = c10::make_intrusive<Work>(getRank(), OpType::RECV, tensors);
    Work* const own = work.get();  // which the thread's job keeps alive
    return start(thread_of(false, from, tag), work,
                 Operation(group_, OpType::RECV, options_->timeout), tensor.device(),
                 [=](Operation& e) { own->set_source(e.receive(tensor, from, tag)); });
}

Result OclBackend::recvAnysource(Tensors& tensors, int tag) {
    const at::Tensor tensor = only(OpType::RECVANYSOURCE, tensors);
    auto work = c10::make_intrusive<Work>(getRank(), OpType::RECVANYSOURCE, tensors);
    Work* const own = work.get();
    return start(thread_of(false, -1, tag), work,
                 Operation(group_, OpType::RECVANYSOURCE, options_->timeout), tensor.device(),
                 [=](Operation& e) { own->set_source(e.receive(tensor, -1, tag)); });
}

Result OclBackend::barrier(const c10d::BarrierOptions& options) {
    return collective(OpType::BARRIER, options.timeout, {}, [](Operation& e) { e.barrier(); });
}

}  // namespace dlprim_torch
