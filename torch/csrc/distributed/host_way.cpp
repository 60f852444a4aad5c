// SPDX-License-Identifier: MIT
#include "distributed/host_way.hpp"

#include "device/errors.hpp"
#include "memory/view.hpp"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <utility>

namespace dlprim_torch {
namespace {

dp::HostGroup::Reduction reduction_of(HostWay::Reduction reduction) {
    using To = dp::HostGroup::Reduction;
    using From = HostWay::Reduction;
    switch (reduction) {
        case From::AVG:
            return To::mean;
        case From::PRODUCT:
            return To::product;
        case From::MIN:
            return To::min;
        case From::MAX:
            return To::max;
        case From::BAND:
            return To::bit_and;
        case From::BOR:
            return To::bit_or;
        case From::BXOR:
            return To::bit_xor;
        default:
            return To::sum;
    }
}

/// The tensor's bytes. Contents that lie in an engine's layout are converted by the device's own
/// queue, and do not lie so afterwards.
dp::Tensor bytes_of(const at::Tensor& values) {
    const dp::Tensor bits = bits_of(values);
    return bits.reshape({bits.shape().numel()}).bit_cast(dp::DType::u8);
}

}  // namespace

void Prepared::give_back() const {
    if (!values.is_same(tensor)) tensor.copy_(values);
}

Prepared prepared(const at::Tensor& tensor) {
    const at::AutoDispatchBelowADInplaceOrView below;
    Prepared made{tensor, tensor, {}};
    if (tensor.numel() == 0) return made;
    if (tensor.is_conj() || tensor.is_neg() || !tensor.is_contiguous())
        made.values = tensor.resolve_conj().resolve_neg().contiguous();
    translated([&] {
        bytes_of(made.values);
        made.ready = dp::Event(context_of(made.values));
    });
    return made;
}

bool HostWay::is_open(int rank, int size, const Exchange& exchange) {
    const auto is_known = [this] {
        const std::lock_guard lock(mutex_);
        return left_ || group_.has_value();
    };
    if (!is_known()) {
        dp::HostGroup made(rank, size, exchange);
        const std::lock_guard lock(mutex_);
        group_ = std::move(made);
    }
    return group().is_shared();
}

dp::HostGroup HostWay::group() const {
    const std::lock_guard lock(mutex_);
    if (left_) throw dp::Error(dp::ErrorKind::device, "this process has left the group");
    return *group_;
}

void HostWay::leave() noexcept {
    std::optional<dp::HostGroup> last;
    {
        const std::lock_guard lock(mutex_);
        left_ = true;
        last = std::exchange(group_, std::nullopt);
    }
    if (last) last->leave();
}

bool HostWay::can_reduce(const at::Tensor& tensor, Reduction reduction) {
    const at::ScalarType type = tensor.scalar_type();
    return has_dtype(type) &&
           dp::HostGroup::can_reduce(reduction_of(reduction), dtype_of(type), context_of(tensor));
}

bool HostWay::can_gather(const Prepared& own, const std::vector<Prepared>& all) {
    return std::all_of(all.begin(), all.end(), [&](const Prepared& one) {
        return one.values.device() == own.values.device();
    });
}

std::vector<std::string> HostWay::exchange_notes(const std::string& own,
                                                 std::chrono::milliseconds timeout) {
    return group().exchange_notes(own, timeout);
}

void HostWay::all_reduce(const Prepared& tensor, Reduction reduction,
                         std::chrono::milliseconds timeout) {
    group().all_reduce(view_of(tensor.values), reduction_of(reduction), {tensor.ready, timeout});
    tensor.give_back();
}

void HostWay::broadcast(const Prepared& tensor, int root, std::chrono::milliseconds timeout) {
    dp::HostGroup own = group();
    own.broadcast(bytes_of(tensor.values), root, {tensor.ready, timeout});
    if (own.rank() != root) tensor.give_back();
}

void HostWay::all_gather(const Prepared& own, const std::vector<Prepared>& all,
                         std::chrono::milliseconds timeout) {
    std::vector<dp::Tensor> bytes;
    for (const Prepared& one : all) bytes.push_back(bytes_of(one.values));
    group().all_gather(bytes_of(own.values), bytes, {own.ready, timeout});
    for (const Prepared& one : all) one.give_back();
}

}  // namespace dlprim_torch
