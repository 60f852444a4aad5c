// SPDX-License-Identifier: MIT
// x[i, :, j] with tensors of indices, its assignment, and positions in a flat tensor (take, put_).
//
// A mask among the indices waits once, for the number of elements that it chooses. An index out of
// range is found by the kernel, and raised when the program next waits.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"
#include "ops/overloads.hpp"

#include <ATen/ExpandUtils.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <dlprim/selection.hpp>

namespace dlprim_torch {
namespace {

using Indices = c10::List<std::optional<at::Tensor>>;

/// What a list of indices chooses from a tensor.
struct Choice {
    std::vector<at::Tensor> indices;  ///< one for each of the first dimensions, of integers or none
    std::vector<std::int64_t> named;  ///< the shape to which they are broadcast
    std::vector<std::int64_t> sizes;  ///< of the result
    bool all = true;                  ///< whether there is no index
};

Choice choice_of(const at::Tensor& self, const Indices& given) {
    at::native::checkIndexTensorTypes(given, true);
    Choice made;
    made.indices = at::native::expandTensors(self, given, true);
    TORCH_CHECK_INDEX(static_cast<std::int64_t>(made.indices.size()) <= self.dim(),
                      "too many indices for tensor of dimension ", self.dim(), " (got ",
                      made.indices.size(), ")");
    std::size_t first = made.indices.size(), last = 0, count = 0;
    for (std::size_t d = 0; d < made.indices.size(); ++d) {
        if (!made.indices[d].defined()) continue;
        const c10::IntArrayRef sizes = made.indices[d].sizes();
        TORCH_CHECK_INDEX(
            made.all || at::are_expandable(made.named, sizes),
            "shape mismatch: indexing tensors could not be broadcast together with shapes ",
            c10::IntArrayRef(made.named), ", ", sizes);
        made.named = made.all ? sizes.vec() : at::infer_size(made.named, sizes);
        made.all = false;
        first = std::min(first, d);
        last = d;
        ++count;
    }
    const bool in_place = count == 0 || last - first + 1 == count;
    const auto add_named = [&] {
        made.sizes.insert(made.sizes.end(), made.named.begin(), made.named.end());
    };
    if (!in_place) add_named();
    for (std::size_t d = 0; d < static_cast<std::size_t>(self.dim()); ++d) {
        if (in_place && d == first && count > 0) add_named();
        const bool is_named = d < made.indices.size() && made.indices[d].defined();
        if (!is_named) made.sizes.push_back(self.sizes()[d]);
        TORCH_CHECK_INDEX(
            !is_named || self.sizes()[d] > 0 || c10::multiply_integers(made.named) == 0,
            "index is out of bounds for dimension with size 0");
    }
    return made;
}

/// Whether the library has enough dimensions for the choice.
bool fits(const Choice& choice) {
    return choice.sizes.size() <= dp::Shape::max_rank && choice.named.size() < dp::Shape::max_rank;
}

std::vector<dp::Tensor> entries_of(const Choice& choice) {
    std::vector<dp::Tensor> entries;
    for (const at::Tensor& index : choice.indices)
        entries.push_back(index.defined() ? plain_of(index) : dp::Tensor());
    return entries;
}

void index_into(const at::Tensor& out, const at::Tensor& self, const Choice& choice) {
    if (out.numel() == 0) return;
    if (choice.all) {
        out.copy_(self);
        return;
    }
    const dp::Tensor x = plain_of(self);
    const std::vector<dp::Tensor> entries = entries_of(choice);
    give(out, translated([&] { return dp::ops::index(x, entries); }));
}

/// Where a mask that is the only index is true, counted over all dimensions that it covers: rows
/// are found by one number, which takes fewer steps than coordinates. Not defined for other
/// indices.
at::Tensor rows_of_mask(const at::Tensor& self, const Indices& indices, std::int64_t& covered) {
    if (indices.size() != 1) return {};
    const std::optional<at::Tensor> mask = indices.get(0);
    if (!mask || !mask->defined() || mask->scalar_type() != at::kBool) return {};
    covered = mask->dim();
    if (covered < 1 || covered > self.dim() || mask->sizes() != self.sizes().slice(0, covered))
        return {};
    return mask->to(self.device()).reshape({-1}).nonzero().view({-1});
}

at::Tensor index(const at::Tensor& self, const Indices& indices) {
    const c10::DeviceGuard guard(self.device());
    std::int64_t covered = 0;
    const at::Tensor rows = rows_of_mask(self, indices, covered);
    if (rows.defined()) return self.flatten(0, covered - 1).index_select(0, rows);
    const Choice choice = choice_of(self, indices);
    if (!fits(choice)) return on_cpu<at::_ops::index_Tensor>(self, indices);
    const at::Tensor out = at::empty(choice.sizes, self.options());
    index_into(out, self, choice);
    return out;
}

at::Tensor& index_out(const at::Tensor& self, const Indices& indices, at::Tensor& out) {
    const c10::DeviceGuard guard(self.device());
    const Choice choice = choice_of(self, indices);
    if (!fits(choice)) return on_cpu<at::_ops::index_Tensor_out>(self, indices, out);
    TORCH_CHECK(self.scalar_type() == out.scalar_type(), "index_out: self (", self.scalar_type(),
                ") and result (", out.scalar_type(), ") must have the same scalar type");
    at::native::resize_output(out, choice.sizes);
    index_into(out, self, choice);
    return out;
}

void put_into(at::Tensor& self, const Choice& choice, const at::Tensor& values, bool accumulate) {
    if (choice.all) {
        if (accumulate)
            self.add_(values);
        else
            self.copy_(values);
        return;
    }
    if (self.numel() == 0 || c10::multiply_integers(choice.sizes) == 0) return;
    const dp::Tensor x = plain_of(self), y = plain_of(values);
    const std::vector<dp::Tensor> entries = entries_of(choice);
    translated([&] { dp::ops::index_put(x, entries, y, accumulate, x); });
    if (!self.is_contiguous()) copy(x, view_of(self));
}

at::Tensor& index_put(at::Tensor& self, const Indices& indices, const at::Tensor& values,
                      bool accumulate, bool unsafe) {
    const c10::DeviceGuard guard(self.device());
    const auto leave = [&]() -> at::Tensor& {
        return on_cpu<at::_ops::_index_put_impl_>(self, indices, values, accumulate, unsafe);
    };
    if (is_expanded(self))
        return on_expanded<at::_ops::_index_put_impl_>(self, indices, values, accumulate, unsafe);
    if (!serves(self)) return leave();
    TORCH_CHECK(self.scalar_type() == values.scalar_type(),
                "Index put requires the source and destination dtypes match, got ",
                self.scalar_type(), " for the destination and ", values.scalar_type(),
                " for the source.");
    if (!accumulate) {
        const auto [is_fill, mask] = at::native::canDispatchToMaskedFill(self, indices, values);
        if (is_fill) return self.masked_fill_(mask, values.item());
    }
    std::int64_t covered = 0;
    const at::Tensor rows =
        self.is_contiguous() ? rows_of_mask(self, indices, covered) : at::Tensor();
    if (rows.defined()) {
        self.flatten(0, covered - 1).index_put_({rows}, values, accumulate);
        return self;
    }
    const Choice choice = choice_of(self, indices);
    if (!fits(choice)) return leave();
    TORCH_CHECK(at::is_expandable_to(values.sizes(), choice.sizes),
                "shape mismatch: value tensor of shape ", values.sizes(),
                " cannot be broadcast to indexing result of shape ",
                c10::IntArrayRef(choice.sizes));
    put_into(self, choice, values.to(self.device()), accumulate);
    return self;
}

at::Tensor& take_out(const at::Tensor& self, const at::Tensor& index, at::Tensor& out) {
    TORCH_CHECK(index.scalar_type() == at::kLong,
                "take(): Expected a long tensor for index, but got ", index.scalar_type());
    TORCH_CHECK(self.scalar_type() == out.scalar_type(),
                "take(): self and out expected to have the same dtype, but got self.dtype = ",
                self.scalar_type(), " and out.dtype = ", out.scalar_type());
    TORCH_CHECK_INDEX(self.numel() > 0 || index.numel() == 0,
                      "take(): tried to take from an empty tensor");
    at::native::resize_output(out, index.sizes());
    if (out.numel() == 0) return out;
    call_into({as_line(out)}, dp::ops::Gather{},
              {view_of(self.reshape({-1})), view_of(as_line(index))});
    return out;
}

at::Tensor& put(at::Tensor& self, const at::Tensor& index, const at::Tensor& source,
                bool accumulate) {
    TORCH_CHECK(index.scalar_type() == at::kLong,
                "put_(): Expected a long tensor for index, but got ", index.scalar_type());
    TORCH_CHECK(self.scalar_type() == source.scalar_type(),
                "put_(): self and source expected to have the same dtype, but got self.dtype = ",
                self.scalar_type(), " and source.dtype = ", source.scalar_type());
    TORCH_CHECK(index.numel() == source.numel(),
                "put_(): Expected source and index to have the same number of elements, but got "
                "source.numel() = ",
                source.numel(), ", index.numel() = ", index.numel());
    TORCH_CHECK_INDEX(self.numel() > 0 || index.numel() == 0,
                      "put_(): Tried to put elements into an empty tensor");
    if (index.numel() == 0) return self;
    const at::Tensor flat = self.reshape({-1});
    call_into({flat}, dp::ops::Scatter{.reduction = accumulate ? "add" : "none"},
              {view_of(flat), view_of(index.reshape({-1})), view_of(source.reshape({-1}))});
    if (!flat.is_alias_of(self)) self.copy_(flat.view(self.sizes()));
    return self;
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("index.Tensor", index);
    served.impl("index.Tensor_out", index_out, Overlap::none);
    m.impl("_index_put_impl_", index_put, Overlap::none, Repeats::left);
    served.impl("take", into_new<take_out>);
    served.impl("take.out", take_out, Overlap::none);
    served.impl("put_", put, Overlap::none);
}

}  // namespace
}  // namespace dlprim_torch
