// SPDX-License-Identifier: MIT
// Products of matrices. Transposed views are read as they lie. The meta functions check the shapes,
// and give out= its size.
#include "ops/call.hpp"
#include "ops/kernels.hpp"

namespace dlprim_torch {
namespace {

dp::ops::CallOptions how_for(const at::Tensor& tensor) {
    dp::ops::CallOptions how;
    how.precision = precision_of(tensor.scalar_type());
    return how;
}

/// out = a b
at::Tensor& product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
    if (out.numel() == 0) return out;
    if (a.size(-1) == 0) return out.zero_();
    call_into({out}, dp::ops::MatMul{}, {view_of(a), view_of(b)}, {}, how_for(a));
    return out;
}

/// out = beta * c + alpha * a b
at::Tensor& sum_into(at::Tensor& out, const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                     const at::Scalar& beta, const at::Scalar& alpha) {
    if (out.numel() == 0) return out;
    const auto of_sum = beta.to<double>(), of_product = alpha.to<double>();
    if (a.size(-1) == 0) {
        out.zero_();
        return of_sum == 0 ? out : out.add_(c, beta);
    }
    if (c.dim() == 1 && c.size(0) == out.size(-1) && of_sum == 1 && of_product == 1)
        call_into({out}, dp::ops::MatMul{.bias = true}, {view_of(a), view_of(b), view_of(c)}, {},
                  how_for(a));
    else
        call_into({out}, dp::ops::MatMulAdd{.alpha = of_product, .beta = of_sum},
                  {view_of(a), view_of(b), view_of(c)}, {}, how_for(a));
    return out;
}

at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
    at::meta::mm_out(out, a, b);
    return product_into(out, a, b);
}

at::Tensor& bmm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
    at::meta::bmm_out(out, a, b);
    return product_into(out, a, b);
}

at::Tensor& addmm_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
    at::meta::addmm_out(out, c, a, b, beta, alpha);
    return sum_into(out, c, a, b, beta, alpha);
}

at::Tensor& baddbmm_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                        const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
    at::meta::baddbmm_out(out, c, a, b, beta, alpha);
    return sum_into(out, c, a, b, beta, alpha);
}

at::Tensor& addmv_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
    at::meta::addmv_out(out, c, a, b, beta, alpha);
    at::Tensor column = out.unsqueeze(1);
    sum_into(column, c.expand(out.sizes()).unsqueeze(1), a, b.unsqueeze(1), beta, alpha);
    return out;
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("mm.out", mm_out, Overlap::any);
    m.impl("bmm.out", bmm_out, Overlap::any);
    m.impl("addmm.out", addmm_out, Overlap::any);
    m.impl("baddbmm.out", baddbmm_out, Overlap::any);
    m.impl("addmv.out", addmv_out, Overlap::any);
}

}  // namespace
}  // namespace dlprim_torch
