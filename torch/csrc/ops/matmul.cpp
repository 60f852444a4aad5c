// SPDX-License-Identifier: MIT
// Products of matrices. A transposed view is read as it lies, by the product's own flag.
#include "fallback/fallback.hpp"
#include "ops/call.hpp"

namespace dlprim_torch {
namespace {

/// A factor as MatMul takes it: row-major, or row-major with the last two dimensions exchanged.
struct Factor {
    dp::Tensor tensor;
    bool transposed;
};

Factor factor(const at::Tensor& tensor) {
    if (!tensor.is_contiguous()) {
        const at::Tensor other = tensor.transpose(-2, -1);
        if (other.is_contiguous()) return {view_of(other), true};
    }
    return {view_of(tensor), false};
}

/// out = alpha * a b
void product_into(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, double alpha) {
    const Factor left = factor(a), right = factor(b);
    dp::ops::CallOptions how;
    how.precision = precision_of(a.scalar_type());
    call_into({out},
              dp::ops::MatMul{
                  .transpose_a = left.transposed, .transpose_b = right.transposed, .alpha = alpha},
              {left.tensor, right.tensor}, {}, how);
}

/// out = beta * c + alpha * a b
void product_and_sum_into(const at::Tensor& out, const at::Tensor& c, const at::Tensor& a,
                          const at::Tensor& b, double beta, double alpha) {
    if (a.size(-1) == 0 || beta == 0) {
        if (a.size(-1) == 0)
            out.zero_();
        else
            product_into(out, a, b, alpha);
        if (beta != 0) out.add_(c, beta);
        return;
    }
    if (c.dim() == 1 && c.size(0) == out.size(-1) && c.is_contiguous() && beta == 1 && alpha == 1) {
        const Factor left = factor(a), right = factor(b);
        dp::ops::CallOptions how;
        how.precision = precision_of(a.scalar_type());
        call_into(
            {out},
            dp::ops::MatMul{
                .transpose_a = left.transposed, .transpose_b = right.transposed, .bias = true},
            {left.tensor, right.tensor, view_of(c)}, {}, how);
        return;
    }
    const at::Tensor product = at::empty(out.sizes(), out.options());
    product_into(product, a, b, alpha);
    pointwise_into({out}, "y0 = x0 + p0 * x1", {product, c}, {beta});
}

bool is_served(const at::Tensor& a) {
    return at::isFloatingType(a.scalar_type());
}

at::Tensor& mm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
    if (!is_served(a)) return on_cpu<at::_ops::mm_out>(a, b, out);
    if (out.numel() == 0) return out;
    if (a.size(-1) == 0) return out.zero_();
    product_into(out, a, b, 1);
    return out;
}

at::Tensor& bmm_out(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
    if (!is_served(a)) return on_cpu<at::_ops::bmm_out>(a, b, out);
    if (out.numel() == 0) return out;
    if (a.size(-1) == 0) return out.zero_();
    product_into(out, a, b, 1);
    return out;
}

at::Tensor& addmm_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
    if (!is_served(a)) return on_cpu<at::_ops::addmm_out>(c, a, b, beta, alpha, out);
    if (out.numel() > 0) product_and_sum_into(out, c, a, b, beta.to<double>(), alpha.to<double>());
    return out;
}

at::Tensor& baddbmm_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                        const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
    if (!is_served(a)) return on_cpu<at::_ops::baddbmm_out>(c, a, b, beta, alpha, out);
    if (out.numel() > 0) product_and_sum_into(out, c, a, b, beta.to<double>(), alpha.to<double>());
    return out;
}

at::Tensor& addmv_out(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                      const at::Scalar& beta, const at::Scalar& alpha, at::Tensor& out) {
    if (!is_served(a)) return on_cpu<at::_ops::addmv_out>(c, a, b, beta, alpha, out);
    if (out.numel() > 0)
        product_and_sum_into(out.unsqueeze(1), c.expand(out.sizes()).unsqueeze(1), a,
                             b.unsqueeze(1), beta.to<double>(), alpha.to<double>());
    return out;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("mm.out", mm_out);
    m.impl("bmm.out", bmm_out);
    m.impl("addmm.out", addmm_out);
    m.impl("baddbmm.out", baddbmm_out);
    m.impl("addmv.out", addmv_out);
}

}  // namespace
}  // namespace dlprim_torch
