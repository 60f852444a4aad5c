// SPDX-License-Identifier: MIT
// The largest and smallest elements of lines, and their positions. Of equal values the first
// counts, and a NaN before all numbers.
#include "ops/indexing.hpp"
#include "ops/kernels.hpp"
#include "ops/literal.hpp"

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

template <Literal method, auto check>
at::Tensor& position_out(const at::Tensor& self, std::optional<std::int64_t> dim, bool keep_dim,
                         at::Tensor& out) {
    check(out, self, dim, keep_dim);
    position_into(out, self, dim, method.text);
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

template <Literal method, auto check>
std::tuple<at::Tensor&, at::Tensor&> extremes_out(const at::Tensor& self, std::int64_t dim,
                                                  bool keep_dim, at::Tensor& values,
                                                  at::Tensor& indices) {
    check(values, indices, self, dim, keep_dim);
    extremes_into(values, indices, self, dim, method.text);
    return {values, indices};
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(serves);
    served.impl("argmax.out", position_out<"max", at::meta::argmax_out>);
    served.impl("argmin.out", position_out<"min", at::meta::argmin_out>);
    served.impl("max.dim_max", extremes_out<"max", at::meta::max_out>);
    served.impl("min.dim_min", extremes_out<"min", at::meta::min_out>);
}

}  // namespace
}  // namespace dlprim_torch
