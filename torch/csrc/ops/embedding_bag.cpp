// SPDX-License-Identifier: MIT
// Sums, means and maxima of bags of rows of a table, whose indices lie one bag after the other.
//
// Gradients are sums by Scatter, in the order of the indices: the same bits in every run.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"

#include <optional>
#include <tuple>

namespace dlprim_torch {
namespace {

using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
constexpr std::int64_t by_sum = 0, by_mean = 1, by_max = 2;

/// What forward and backward read of the bags.
struct Bags {
    at::Tensor indices;  ///< of rows, int64 [n]
    at::Tensor of_row;   ///< the bag of each index, int64 [n]
    at::Tensor counts;   ///< bool [n]: false for the index of padding; undefined without padding
    std::int64_t number;

    /// Rows [n, width] in which those of padding are `value`.
    at::Tensor without_padding(const at::Tensor& rows, double value) const {
        return counts.defined() ? at::where(counts.unsqueeze(1), rows, value) : rows;
    }
};

Bags bags_of(const at::Tensor& indices, const at::Tensor& offsets, bool has_last,
             std::int64_t padding) {
    TORCH_CHECK(indices.dim() == 1 && offsets.dim() == 1,
                "embedding_bag: input and offsets have to be 1D Tensors");
    const at::TensorOptions options = indices.options().dtype(at::kLong);
    const std::int64_t count = indices.numel(), number = offsets.numel() - (has_last ? 1 : 0);
    TORCH_CHECK(number >= 0, "include_last_offset: number of offsets should be at least 1");
    Bags made{indices.to(at::kLong), at::empty({0}, options), {}, number};
    if (padding >= 0) made.counts = indices.ne(padding);
    if (count == 0 || number == 0) return made;
    const at::Tensor begun =
        at::zeros({count + 1}, options)
            .index_add(0, offsets.narrow(0, 0, number), at::ones({1}, options).expand({number}));
    made.of_row = begun.narrow(0, 0, count).cumsum(0).sub(1);
    return made;
}

/// How many indices each bag has.
at::Tensor sizes_of(const Bags& bags) {
    const at::Tensor none = at::zeros({bags.number}, bags.indices.options());
    if (bags.of_row.numel() == 0) return none;
    const at::Tensor ones = at::ones({1}, none.options()).expand(bags.of_row.sizes());
    return none.index_add(0, bags.of_row, bags.counts.defined() ? bags.counts.to(at::kLong) : ones);
}

/// Which row gave each maximum: the first of several. Where the bag is empty, row 0.
at::Tensor winners_of(const Bags& bags, const at::Tensor& rows, const at::Tensor& maxima) {
    const std::int64_t count = bags.indices.numel();
    const at::Tensor is_best = rows.eq(maxima.index_select(0, bags.of_row));
    const at::Tensor places =
        at::where(is_best, at::arange(count, bags.indices.options()).unsqueeze(1), count - 1);
    const at::Tensor first = at::full(maxima.sizes(), count - 1, places.options())
                                 .index_reduce(0, bags.of_row, places, "amin");
    return bags.indices.take(first);
}

Four forward(const at::Tensor& weight, const at::Tensor& indices, const at::Tensor& offsets,
             bool by_frequency, std::int64_t mode, bool sparse, const Maybe& factors, bool has_last,
             std::int64_t padding) {
    const c10::DeviceGuard guard(weight.device());
    const Bags bags = bags_of(indices, offsets, has_last, padding);
    const at::Tensor sizes = sizes_of(bags);
    at::Tensor out = at::zeros({bags.number, weight.size(1)}, weight.options());
    at::Tensor winners = at::zeros({0}, bags.indices.options());
    if (bags.of_row.numel() == 0 || out.numel() == 0) return {out, bags.of_row, sizes, winners};
    at::Tensor rows = weight.index_select(0, bags.indices);
    if (mode == by_max) {
        rows = bags.without_padding(rows, -std::numeric_limits<double>::infinity());
        const at::Tensor maxima = out.index_reduce(0, bags.of_row, rows, "amax", false);
        winners = winners_of(bags, rows, maxima);
        return {at::where(sizes.gt(0).unsqueeze(1), maxima, 0), bags.of_row, sizes, winners};
    }
    if (defined(factors)) rows = rows * factors->unsqueeze(1);
    out = out.index_add(0, bags.of_row, bags.without_padding(rows, 0));
    if (mode == by_mean) out = out / sizes.clamp_min(1).unsqueeze(1).to(out.scalar_type());
    return {out, bags.of_row, sizes, winners};
}

at::Tensor dense_gradient(const at::Tensor& grad, const at::Tensor& indices,
                          const at::Tensor& of_row, const at::Tensor& sizes,
                          const at::Tensor& winners, c10::SymInt rows, bool by_frequency,
                          std::int64_t mode, const Maybe& factors, std::int64_t padding) {
    const c10::DeviceGuard guard(grad.device());
    const std::int64_t count = rows.expect_int();
    const at::Tensor none = at::zeros({count, grad.size(1)}, grad.options());
    if (of_row.numel() == 0 || none.numel() == 0) return none;
    if (mode == by_max)
        return none.scatter_add(0, winners, at::where(sizes.gt(0).unsqueeze(1), grad, 0));
    at::Tensor each = grad;
    if (mode == by_mean) each = each / sizes.clamp_min(1).unsqueeze(1).to(grad.scalar_type());
    each = each.index_select(0, of_row);
    if (defined(factors)) each = each * factors->unsqueeze(1);
    return at::embedding_dense_backward(each, indices, count, padding, by_frequency);
}

at::Tensor gradient(const at::Tensor& grad, const at::Tensor& indices, const at::Tensor& offsets,
                    const at::Tensor& of_row, const at::Tensor& sizes, const at::Tensor& winners,
                    c10::SymInt rows, bool by_frequency, std::int64_t mode, bool sparse,
                    const Maybe& factors, std::int64_t padding) {
    TORCH_CHECK_NOT_IMPLEMENTED(!sparse, "The device \"ocl\" has strided tensors only.");
    return dense_gradient(grad, indices, of_row, sizes, winners, std::move(rows), by_frequency,
                          mode, factors, padding);
}

at::Tensor factor_gradient(const at::Tensor& grad, const at::Tensor& weight,
                           const at::Tensor& indices, const at::Tensor& offsets,
                           const at::Tensor& of_row, std::int64_t mode, std::int64_t padding) {
    TORCH_CHECK(mode == by_sum,
                "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
    const c10::DeviceGuard guard(grad.device());
    if (of_row.numel() == 0) return at::zeros(indices.sizes(), grad.options());
    const at::Tensor each = (grad.index_select(0, of_row) * weight.index_select(0, indices)).sum(1);
    return padding >= 0 ? at::where(indices.ne(padding), each, 0) : each;
}

DLPRIM_TORCH_KERNELS(m) {
    m.where(serves).impl("_embedding_bag", forward);
    m.where(serves).impl("_embedding_bag_forward_only", forward);
    m.impl("_embedding_bag_backward", gradient);
    m.impl("_embedding_bag_dense_backward", dense_gradient);
    m.impl("_embedding_bag_per_sample_weights_backward", factor_gradient);
}

}  // namespace
}  // namespace dlprim_torch
