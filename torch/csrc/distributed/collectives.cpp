// SPDX-License-Identifier: MIT
#include "distributed/collectives.hpp"

#include "device/errors.hpp"
#include "memory/pinned.hpp"
#include "memory/view.hpp"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <sstream>
#include <utility>

namespace dlprim_torch {
namespace {

using std::chrono::milliseconds;
using To = dp::Communicator::Reduction;

const std::string no_exchange =
    "the ranks could not exchange their values. Another rank has ended, or made no such operation "
    "within the time that init_process_group(timeout=...) sets. ";

struct Known {
    const char* name;
    To reduction, of_bools;
};

/// By RedOpType. Sums of bools are true where one is, as in PyTorch.
const Known& known(Reduction reduction) {
    static constexpr std::array all{
        Known{"sum", To::sum, To::bit_or},          Known{"avg", To::mean, To::bit_or},
        Known{"product", To::product, To::bit_and}, Known{"min", To::min, To::bit_and},
        Known{"max", To::max, To::bit_or},          Known{"band", To::bit_and, To::bit_and},
        Known{"bor", To::bit_or, To::bit_or},       Known{"bxor", To::bit_xor, To::bit_xor},
    };
    return all.at(static_cast<std::size_t>(reduction));
}

To reduction_of(Reduction reduction, const at::Tensor& values) {
    const Known& row = known(reduction);
    return values.scalar_type() == at::kBool ? row.of_bools : row.reduction;
}

/// Its elements one behind the other, for who moves them alone. Contents that lie in an engine's
/// layout are converted by the device's own queue, and do not lie so afterwards.
dp::Tensor bits(const at::Tensor& values) {
    if (values.numel() == 0) return {};
    const dp::Tensor found = bits_of(values);
    return found.reshape({found.shape().numel()});
}

dp::Tensor bytes(const at::Tensor& values) {
    return bits(values).bit_cast(dp::DType::u8);
}

std::vector<dp::Tensor> all_bits(const std::vector<Prepared>& tensors) {
    std::vector<dp::Tensor> all;
    for (const Prepared& one : tensors) all.push_back(bits(one.values));
    return all;
}

/// Its elements as numbers: bools as bytes, and complex ones as pairs.
dp::Tensor numbers(const at::Tensor& values) {
    const at::ScalarType type = values.scalar_type();
    if (type == at::kBool) return bytes(values);
    if (values.is_complex()) return bits(values).bit_cast(dtype_of(at::toRealValueType(type)));
    return view_of(values);
}

/// A copy on the host where the device cannot reduce such numbers, as double on some; else the
/// tensor itself.
dp::Tensor reducible(const dp::Tensor& tensor, To reduction) {
    if (dp::Communicator::can_reduce(reduction, tensor.dtype(), tensor.context())) return tensor;
    dp::Tensor copy(dp::Context("cpu"), tensor.shape(), tensor.dtype());
    tensor.copy_to(copy);
    return copy;
}

void put_back(const dp::Tensor& copy, dp::Tensor tensor) {
    if (!(copy.context() == tensor.context())) copy.copy_to(tensor);
}

std::string elements(std::int64_t count, at::ScalarType type) {
    std::ostringstream text;
    text << count << " elements of " << type;
    return text.str();
}

/// What goes before the bytes of a tensor that is sent.
struct Card {
    std::int64_t type, count;
};

at::Tensor host_bytes(const void* data, std::size_t size) {
    return at::from_blob(const_cast<void*>(data), {static_cast<std::int64_t>(size)}, at::kByte);
}

at::Tensor to_host(const at::Tensor& tensor) {
    at::Tensor bytes = pinned_bytes(static_cast<std::int64_t>(tensor.nbytes()));
    if (tensor.numel() == 0) return bytes;
    const dp::Tensor source = bits_of(tensor.resolve_conj().resolve_neg());
    translated([&] { source.copy_to_host(bytes.mutable_data_ptr(), bytes.nbytes()); }, true);
    return bytes;
}

}  // namespace

void Prepared::give_back() const {
    if (!values.is_same(tensor)) tensor.copy_(values);
}

Prepared prepared(const at::Tensor& tensor, c10::Device device) {
    const at::AutoDispatchBelowADInplaceOrView below;
    Prepared made{tensor, tensor, {}};
    if (tensor.is_conj() || tensor.is_neg() || !tensor.is_contiguous() || tensor.device() != device)
        made.values = tensor.resolve_conj().resolve_neg().contiguous().to(device);
    translated([&] {
        bits(made.values);
        made.ready = dp::Event(context_of(made.values));
    });
    return made;
}

std::vector<Prepared> prepared(const Tensors& tensors, c10::Device device) {
    std::vector<Prepared> all;
    for (const at::Tensor& tensor : tensors) all.push_back(prepared(tensor, device));
    return all;
}

void check_reduction(Reduction reduction, const at::Tensor& tensor) {
    TORCH_CHECK_NOT_IMPLEMENTED(reduction <= Reduction::BXOR,
                                "The backend \"ocl\" has no PREMUL_SUM. Multiply the tensor and "
                                "take ReduceOp.SUM instead.");
    const bool whole = at::isIntegralType(tensor.scalar_type(), true);
    TORCH_CHECK_TYPE(whole || reduction < Reduction::BAND,
                     "ReduceOp.BAND, BOR and BXOR are for integers, not for ", tensor.scalar_type(),
                     ".");
    TORCH_CHECK_TYPE(!whole || reduction != Reduction::AVG,
                     "ReduceOp.AVG is for floating-point numbers, not for ", tensor.scalar_type(),
                     ". Take ReduceOp.SUM and divide.");
    const bool ordered = reduction == Reduction::MIN || reduction == Reduction::MAX;
    TORCH_CHECK_TYPE(!tensor.is_complex() || !ordered,
                     "Complex numbers have no minimum and no maximum.");
}

std::vector<std::string> Group::gather(const std::string& own, milliseconds timeout) {
    struct Text {
        std::uint64_t bytes;
        char text[504];
    };
    Text mine{std::min(own.size(), sizeof mine.text), {}};
    std::memcpy(mine.text, own.data(), mine.bytes);
    std::vector<Text> all(static_cast<std::size_t>(gloo_->getSize()));
    at::Tensor from = host_bytes(&mine, sizeof mine),
               to = host_bytes(all.data(), all.size() * sizeof mine);
    gloo_->_allgather_base(to, from, {.timeout = timeout})->wait();
    std::vector<std::string> texts;
    for (const Text& one : all) texts.emplace_back(one.text, one.bytes);
    return texts;
}

void Group::exchange(const std::byte* own, const std::vector<std::uint64_t>& sends, std::byte* all,
                     const std::vector<std::uint64_t>& receives, milliseconds timeout) {
    std::vector<std::int64_t> to(sends.begin(), sends.end()),
        from(receives.begin(), receives.end());
    at::Tensor out = host_bytes(own, std::accumulate(sends.begin(), sends.end(), std::size_t(0))),
               in = host_bytes(all,
                               std::accumulate(receives.begin(), receives.end(), std::size_t(0)));
    gloo_->alltoall_base(in, out, from, to, {.timeout = timeout})->wait();
}

dp::Communicator Group::open(milliseconds timeout) {
    const auto found = [this] {
        const std::lock_guard lock(mutex_);
        if (left_) throw dp::Error(dp::ErrorKind::device, "this process has left the group");
        return communicator_;
    };
    if (const auto known = found()) return *known;
    dp::Communicator made(gloo_->getRank(), gloo_->getSize(),
                          {.gather = [&](const std::string& own) { return gather(own, timeout); },
                           .exchange =
                               [this](const std::byte* own, const std::vector<std::uint64_t>& sends,
                                      std::byte* all, const std::vector<std::uint64_t>& receives,
                                      dp::Communicator::Deadline deadline) {
                                   exchange(own, sends, all, receives,
                                            std::chrono::duration_cast<milliseconds>(deadline));
                               }});
    {
        const std::lock_guard lock(mutex_);
        communicator_ = std::move(made);
    }
    return *found();
}

void Group::leave() noexcept {
    std::optional<dp::Communicator> last;
    {
        const std::lock_guard lock(mutex_);
        left_ = true;
        last = std::exchange(communicator_, std::nullopt);
    }
    if (last) last->leave();
}

Operation::Operation(std::shared_ptr<Group> group, c10d::OpType type, milliseconds timeout)
    : group_(std::move(group)), type_(type), timeout_(timeout) {}

void Operation::fail(const std::string& problem) const {
    TORCH_CHECK_WITH(DistBackendError, false, c10d::opTypeToString(type_), " failed on rank ",
                     rank(), " of ", size(), ": ", problem);
    std::abort();  // never reached
}

std::string Operation::described(const at::Tensor& values, bool counts, int root,
                                 Reduction reduction) const {
    std::ostringstream text;
    text << c10d::opTypeToString(type_);
    if (reduction != Reduction::UNUSED) text << " (" << known(reduction).name << ")";
    if (counts)
        text << " of " << elements(values.numel(), values.scalar_type());
    else
        text << " of elements of " << values.scalar_type();
    if (root >= 0) text << " with root " << root;
    return text.str();
}

void Operation::guarded(const std::function<void()>& call) const {
    std::string problem;
    try {
        return call();
    } catch (const dp::Error& error) {
        if (error.kind() == dp::ErrorKind::out_of_memory) throw_translated(error);
        problem = error.what();
        // Else the ranks do not fit each other, which the library says.
        if (error.kind() != dp::ErrorKind::invalid_argument) problem = no_exchange + problem;
    } catch (const c10::Error& error) {
        problem = no_exchange + "Gloo reports: " + error.what_without_backtrace();
    } catch (const std::exception& error) {
        problem = no_exchange + "Gloo reports: " + error.what();
    }
    fail(problem);
}

void Operation::make(const std::string& name, const dp::Event& ready, const Call& call) const {
    guarded([&] {
        dp::Communicator communicator = group_->open(timeout_);
        call(communicator, {.ready = ready, .deadline = timeout_, .name = name});
    });
}

void Operation::all_reduce(const Prepared& tensor, Reduction reduction, int root) {
    const at::Tensor& values = tensor.values;
    if (values.is_complex() && reduction == Reduction::PRODUCT) return multiply(tensor, root);
    make(described(values, true, root, reduction), tensor.ready,
         [&](dp::Communicator& communicator, const dp::Communicator::CallOptions& options) {
             if (values.numel() == 0) return communicator.barrier(options);
             const To how = reduction_of(reduction, values);
             const dp::Tensor whole = numbers(values), own = reducible(whole, how);
             if (root < 0)
                 communicator.all_reduce(own, how, options);
             else
                 communicator.reduce(own, how, root, options);
             put_back(own, whole);
         });
    if (root < 0 || root == rank()) tensor.give_back();
}

/// Complex numbers have products on the CPU alone: each rank multiplies those of all.
void Operation::multiply(const Prepared& tensor, int root) {
    std::vector<Prepared> all;
    for (int q = 0; q < size(); ++q)
        all.push_back(prepared(at::empty_like(tensor.values), tensor.values.device()));
    all_gather({tensor.values, tensor.values, all.back().ready}, all);
    if (root >= 0 && root != rank()) return;
    Tensors rows;
    for (const Prepared& one : all) rows.push_back(one.values.cpu());
    for (std::size_t step = 1; step < rows.size(); step *= 2)
        for (std::size_t i = 0; i + step < rows.size(); i += 2 * step) rows[i].mul_(rows[i + step]);
    tensor.tensor.copy_(rows[0]);
}

void Operation::reduce_scatter(const std::vector<Prepared>& inputs, const Prepared& output,
                               Reduction reduction) {
    const at::Tensor& values = output.values;
    if (values.is_complex() && reduction == Reduction::PRODUCT) {
        Tensors rows;
        for (const Prepared& one : inputs) rows.push_back(one.values.flatten());
        const at::Tensor whole = at::stack(rows);
        multiply(prepared(whole, whole.device()), -1);
        output.tensor.copy_(whole[rank()].view(values.sizes()));
        return;
    }
    make(described(values, true, -1, reduction), inputs.back().ready,
         [&](dp::Communicator& communicator, const dp::Communicator::CallOptions& options) {
             if (values.numel() == 0) return communicator.barrier(options);
             const To how = reduction_of(reduction, values);
             const dp::Tensor whole = numbers(values), own = reducible(whole, how);
             std::vector<dp::Tensor> parts;
             for (const Prepared& one : inputs)
                 parts.push_back(reducible(numbers(one.values), how));
             communicator.reduce_scatter(parts, own, how, options);
             put_back(own, whole);
         });
    output.give_back();
}

void Operation::broadcast(const Prepared& tensor, int root) {
    make(described(tensor.values, true, root), tensor.ready,
         [&](dp::Communicator& communicator, const dp::Communicator::CallOptions& options) {
             if (tensor.values.numel() == 0) return communicator.barrier(options);
             communicator.broadcast(bytes(tensor.values), root, options);
         });
    if (root != rank()) tensor.give_back();
}

void Operation::all_gather(const Prepared& own, const std::vector<Prepared>& all) {
    make(described(own.values, true), own.ready,
         [&](dp::Communicator& communicator, const dp::Communicator::CallOptions& options) {
             if (own.values.numel() == 0) return communicator.barrier(options);
             std::vector<dp::Tensor> into;
             for (const Prepared& one : all) into.push_back(bytes(one.values));
             communicator.all_gather(bytes(own.values), into, options);
         });
    for (const Prepared& one : all) one.give_back();
}

/// The only element of a list by rank.
std::vector<dp::Tensor> Operation::only(int at, const at::Tensor& values) const {
    std::vector<dp::Tensor> list(static_cast<std::size_t>(size()));
    list[static_cast<std::size_t>(at)] = bits(values);
    return list;
}

void Operation::gather(const Prepared& own, const std::vector<Prepared>& all, int root) {
    const std::vector<dp::Tensor> none(static_cast<std::size_t>(size()));
    move(described(own.values, true, root), own, only(root, own.values),
         rank() == root ? all_bits(all) : none);
    for (const Prepared& one : all) one.give_back();
}

void Operation::scatter(const std::vector<Prepared>& all, const Prepared& own, int root) {
    const std::vector<dp::Tensor> none(static_cast<std::size_t>(size()));
    move(described(own.values, true, root), all.empty() ? own : all.back(),
         rank() == root ? all_bits(all) : none, only(root, own.values));
    own.give_back();
}

void Operation::all_to_all(const std::vector<Prepared>& inputs,
                           const std::vector<Prepared>& outputs) {
    move(described(inputs.front().values, false), inputs.back(), all_bits(inputs),
         all_bits(outputs));
    for (const Prepared& one : outputs) one.give_back();
}

void Operation::move(const std::string& name, const Prepared& last,
                     const std::vector<dp::Tensor>& inputs,
                     const std::vector<dp::Tensor>& outputs) const {
    make(name, last.ready,
         [&](dp::Communicator& communicator, const dp::Communicator::CallOptions& options) {
             communicator.all_to_all(context_of(last.values), inputs, outputs, options);
         });
}

void Operation::barrier() {
    make(c10d::opTypeToString(type_), {},
         [](dp::Communicator& communicator, const dp::Communicator::CallOptions& options) {
             communicator.barrier(options);
         });
}

void Operation::send(const at::Tensor& tensor, int to, int tag) {
    Card card{static_cast<std::int64_t>(tensor.scalar_type()), tensor.numel()};
    Tensors head{host_bytes(&card, sizeof card)}, body{to_host(tensor)};
    guarded([&] {
        group_->gloo().send(head, to, tag)->wait();
        if (card.count > 0) group_->gloo().send(body, to, tag)->wait();
    });
}

int Operation::receive(const at::Tensor& tensor, int from, int tag) {
    Card card{};
    Tensors list{host_bytes(&card, sizeof card)};
    guarded([&] {
        c10d::Backend& gloo = group_->gloo();
        const auto work = from < 0 ? gloo.recvAnysource(list, tag) : gloo.recv(list, from, tag);
        work->wait();
        if (from < 0) from = work->sourceRank();
        const auto type = static_cast<at::ScalarType>(card.type);
        const auto size = static_cast<std::int64_t>(c10::elementSize(type));
        list = {pinned_bytes(card.count * size)};
        if (card.count > 0) gloo.recv(list, from, tag)->wait();
    });
    const auto type = static_cast<at::ScalarType>(card.type);
    if (type != tensor.scalar_type() || card.count != tensor.numel())
        fail("rank " + std::to_string(from) + " sent " + elements(card.count, type) +
             " for a tensor of " + elements(tensor.numel(), tensor.scalar_type()) + ".");
    if (card.count > 0) tensor.copy_(list[0].view(type).view(tensor.sizes()));
    return from;
}

}  // namespace dlprim_torch
