// SPDX-License-Identifier: MIT
// Values without their repetitions, and the reverse: positions that are repeated.
//
// Equal neighbours form runs. What has a size that depends on values waits once, for that number.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"

#include <optional>
#include <tuple>

namespace dlprim_torch {
namespace {

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

at::TensorOptions integers(const at::Tensor& like) {
    return like.options().dtype(at::kLong);
}

/// Runs of equal neighbours along the first dimension.
struct Runs {
    at::Tensor firsts;   ///< where each begins
    at::Tensor members;  ///< the number of the run of each element
    std::int64_t length;

    at::Tensor counts() const {
        return at::diff(firsts, 1, 0, {}, at::full({1}, length, firsts.options()));
    }
};

/// `differs` says of each element but the first whether a run begins there. Waits.
Runs runs_of(const at::Tensor& differs) {
    const std::int64_t length = differs.size(0) + 1;
    const at::Tensor begins = at::ones({length}, differs.options().dtype(at::kBool));
    begins.narrow(0, 1, length - 1).copy_(differs);
    return {begins.nonzero().view({-1}), begins.cumsum(0).sub(1), length};
}

at::Tensor neighbours_differ(const at::Tensor& x) {
    return x.narrow(0, 1, x.size(0) - 1).ne(x.narrow(0, 0, x.size(0) - 1));
}

Three nothing(const at::Tensor& self, bool inverse) {
    return {at::empty({0}, self.options()),
            at::empty(inverse ? self.sizes() : c10::IntArrayRef({0}), integers(self)),
            at::empty({0}, integers(self))};
}

/// The number of the run of each element before it was sorted: `order` says which one came where.
at::Tensor unsorted(const at::Tensor& members, const at::Tensor& order) {
    return at::empty_like(members).index_copy_(0, order, members);
}

Three unique(const at::Tensor& self, bool, bool inverse, bool counts) {
    const c10::DeviceGuard guard(self.device());
    if (self.numel() == 0) return nothing(self, inverse);
    const auto [sorted, order] = at::sort(self.reshape({-1}), true, 0, false);
    const Runs runs = runs_of(neighbours_differ(sorted));
    const at::Tensor none = at::empty({0}, integers(self));
    return {sorted.index_select(0, runs.firsts),
            inverse ? unsorted(runs.members, order).view(self.sizes()) : none,
            counts ? runs.counts() : none};
}

std::tuple<at::Tensor, at::Tensor> unique_values(const at::Tensor& self, bool sorted,
                                                 bool inverse) {
    const auto [values, members, counts] = unique(self, sorted, inverse, false);
    return {values, members};
}

/// Of a tensor that has no rows.
Three no_rows(const at::Tensor& self, std::int64_t axis) {
    for (std::int64_t d = 0; d < self.dim(); ++d)
        TORCH_CHECK(d == axis || self.size(d) > 0,
                    "There are 0 sized dimensions, and they aren't selected, so unique cannot be "
                    "applied");
    return {at::empty(self.sizes(), self.options()), at::empty({0}, integers(self)),
            at::empty({0}, integers(self))};
}

Three consecutive_rows(const at::Tensor& self, std::int64_t dim, bool inverse, bool counts) {
    const c10::DeviceGuard guard(self.device());
    const std::int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    if (self.numel() == 0) return no_rows(self, axis);
    const at::Tensor line = as_line(self);
    const at::Tensor rows = line.movedim(axis, 0).reshape({line.size(axis), -1});
    const Runs runs = runs_of(neighbours_differ(rows).any(1));
    return {line.index_select(axis, runs.firsts), runs.members, runs.counts()};
}

Three unique_consecutive(const at::Tensor& self, bool inverse, bool counts,
                         std::optional<std::int64_t> dim) {
    if (dim && self.dim() > 1) return consecutive_rows(self, *dim, inverse, counts);
    const c10::DeviceGuard guard(self.device());
    if (self.numel() == 0) return nothing(self, inverse);
    const at::Tensor flat = self.reshape({-1});
    const Runs runs = runs_of(neighbours_differ(flat));
    const at::Tensor none = at::empty({0}, integers(self));
    return {flat.index_select(0, runs.firsts), inverse ? runs.members.view(self.sizes()) : none,
            counts ? runs.counts() : none};
}

/// Rows of more elements than this are sorted by the CPU: each element is a sort.
constexpr std::int64_t most_keys = 32;

/// Sorts rows by their last element first, and last by their first, each time stably.
Three unique_dim(const at::Tensor& self, std::int64_t dim, bool sorted, bool inverse, bool counts) {
    const std::int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    const at::Tensor line = as_line(self);
    const c10::DeviceGuard guard(self.device());
    if (self.numel() == 0) return no_rows(self, axis);
    if (self.numel() / line.size(axis) > most_keys)
        return on_cpu<at::_ops::unique_dim>(self, dim, sorted, inverse, counts);
    const at::Tensor rows = line.movedim(axis, 0).reshape({line.size(axis), -1});
    at::Tensor order;
    for (std::int64_t key = rows.size(1) - 1; key >= 0; --key) {
        const at::Tensor column = rows.select(1, key);
        const at::Tensor places = std::get<1>(
            at::sort(order.defined() ? column.index_select(0, order) : column, true, 0, false));
        order = order.defined() ? order.index_select(0, places) : places;
    }
    const Runs runs = runs_of(neighbours_differ(rows.index_select(0, order)).any(1));
    return {line.index_select(axis, order.index_select(0, runs.firsts)),
            unsorted(runs.members, order), runs.counts()};
}

/// Position i as often as repeats[i] says. Waits unless the size is given.
at::Tensor repeat_interleave(const at::Tensor& repeats, std::optional<c10::SymInt> output_size) {
    TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
    TORCH_CHECK(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
                "repeats has to be Long or Int tensor");
    const c10::DeviceGuard guard(repeats.device());
    if (repeats.numel() == 0) return at::empty({0}, repeats.options());
    const at::Tensor ends = repeats.cumsum(0);
    std::int64_t total = 0;
    if (output_size) {
        total = output_size->expect_int();
    } else {
        const at::Tensor found = at::stack({ends.select(0, -1), repeats.min().to(at::kLong)}).cpu();
        total = found[0].item<std::int64_t>();
        TORCH_CHECK(found[1].item<std::int64_t>() >= 0, "repeats can not be negative");
    }
    // An element's position is the number of those that begin up to it, less one.
    const at::Tensor one = at::ones({1}, ends.options());
    const at::Tensor begun = at::zeros({total + 1}, ends.options())
                                 .index_add(0, ends.sub(repeats), one.expand({repeats.numel()}));
    return begun.narrow(0, 0, total).cumsum(0).sub(1).to(repeats.scalar_type());
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("_unique2", unique);
    served.impl("_unique", unique_values);
    served.impl("unique_dim", unique_dim);
    served.impl("unique_consecutive", unique_consecutive);
    served.impl("unique_dim_consecutive", consecutive_rows);
    m.impl("repeat_interleave.Tensor", repeat_interleave);
}

}  // namespace
}  // namespace dlprim_torch
