// SPDX-License-Identifier: MIT
// The largest and smallest elements of lines, and their positions. Of equal values the first
// counts, and a NaN before all numbers.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"

#include <optional>
#include <tuple>

namespace dlprim_torch {
namespace {

void position_into(const at::Tensor& out, const at::Tensor& self, std::optional<std::int64_t> dim,
                   const char* method) {
    if (out.numel() == 0) return;
    if (self.dim() == 0) {
        out.zero_();
        return;
    }
    dp::ops::ArgReduce options{.method = method, .values = false};
    if (dim) options.dim = at::maybe_wrap_dim(*dim, self.dim());
    give(out, results_of(options, {view_of(self)})[0]);
}

at::Tensor& argmax_out(const at::Tensor& self, std::optional<std::int64_t> dim, bool keep_dim,
                       at::Tensor& out) {
    if (!serves(self)) return on_cpu<at::_ops::argmax_out>(self, dim, keep_dim, out);
    at::meta::argmax_out(out, self, dim, keep_dim);
    position_into(out, self, dim, "max");
    return out;
}

at::Tensor& argmin_out(const at::Tensor& self, std::optional<std::int64_t> dim, bool keep_dim,
                       at::Tensor& out) {
    if (!serves(self)) return on_cpu<at::_ops::argmin_out>(self, dim, keep_dim, out);
    at::meta::argmin_out(out, self, dim, keep_dim);
    position_into(out, self, dim, "min");
    return out;
}

void extremes_into(const at::Tensor& values, const at::Tensor& indices, const at::Tensor& self,
                   std::int64_t dim, const char* method) {
    if (values.numel() == 0) return;
    if (self.dim() == 0) {
        values.copy_(self);
        indices.zero_();
        return;
    }
    const std::vector<dp::Tensor> made =
        results_of(dp::ops::ArgReduce{.method = method, .dim = at::maybe_wrap_dim(dim, self.dim())},
                   {view_of(self)});
    give(values, made[0]);
    give(indices, made[1]);
}

std::tuple<at::Tensor&, at::Tensor&> max_out(const at::Tensor& self, std::int64_t dim,
                                             bool keep_dim, at::Tensor& values,
                                             at::Tensor& indices) {
    if (!serves(self)) return on_cpu<at::_ops::max_dim_max>(self, dim, keep_dim, values, indices);
    at::meta::max_out(values, indices, self, dim, keep_dim);
    extremes_into(values, indices, self, dim, "max");
    return {values, indices};
}

std::tuple<at::Tensor&, at::Tensor&> min_out(const at::Tensor& self, std::int64_t dim,
                                             bool keep_dim, at::Tensor& values,
                                             at::Tensor& indices) {
    if (!serves(self)) return on_cpu<at::_ops::min_dim_min>(self, dim, keep_dim, values, indices);
    at::meta::min_out(values, indices, self, dim, keep_dim);
    extremes_into(values, indices, self, dim, "min");
    return {values, indices};
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("argmax.out", argmax_out);
    m.impl("argmin.out", argmin_out);
    m.impl("max.dim_max", max_out);
    m.impl("min.dim_min", min_out);
}

}  // namespace
}  // namespace dlprim_torch
