// SPDX-License-Identifier: MIT
// Parts of a tensor, and rows of an embedding's table, whose norm is limited.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"

namespace dlprim_torch {
namespace {

at::Tensor& renorm_out(const at::Tensor& self, const at::Scalar& p, std::int64_t dim,
                       const at::Scalar& most, at::Tensor& out) {
    at::meta::renorm_out(out, self, p, dim, most);
    if (out.numel() == 0) return out;
    const std::int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    std::vector<std::int64_t> others;
    for (std::int64_t d = 0; d < self.dim(); ++d)
        if (d != axis) others.push_back(d);
    // Half types would lose the digits of long sums.
    const bool is_half = self.element_size() == 2;
    const at::Tensor norm = at::linalg_vector_norm(
        self, p, others, true, is_half ? std::optional(at::kFloat) : std::nullopt);
    pointwise_into({out}, "y0 = x1 > p0 ? x0 * (p0 / (x1 + 0.0000001)) : x0", {self, norm},
                   {most.to<double>()});
    return out;
}

/// A row that is named several times is written several times with the same values.
at::Tensor& embedding_renorm(at::Tensor& self, const at::Tensor& indices, double most, double p) {
    if (indices.numel() == 0) return self;
    const at::Tensor named = indices.reshape({-1});
    return self.index_copy_(0, named, self.index_select(0, named).renorm(p, 0, most));
}

DLPRIM_TORCH_KERNELS(m) {
    m.where(serves).impl("renorm.out", renorm_out);
    m.impl("embedding_renorm_", embedding_renorm);
}

}  // namespace
}  // namespace dlprim_torch
