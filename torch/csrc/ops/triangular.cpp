// SPDX-License-Identifier: MIT
// Cholesky's factorisation and triangular systems, a column of the triangle a step.
#include "ops/matrices.hpp"
#include "ops/overloads.hpp"

namespace dlprim_torch {
namespace {

/// The solution of a x = b for a triangle a, of which the other half is not read.
at::Tensor solved(const at::Tensor& a, const at::Tensor& b, bool upper, bool unit) {
    const at::Tensor triangle = as_batch(a);
    Stepped x(as_batch(b));
    const std::int64_t n = triangle.size(1);
    if (x.value().numel() == 0) return x.value().view(b.sizes());
    const std::string pivot = unit ? "r = x2;" : "r = x2 / x3;";
    const std::string code = pivot + "y0 = index(-2) == p0 ? r : index(-2) " + (upper ? "<" : ">") +
                             " p0 ? x0 - x1 * r : x0";
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t j = upper ? n - 1 - i : i;
        std::vector<at::Tensor> others{triangle.narrow(2, j, 1), x.row(j)};
        if (!unit) others.push_back(triangle.narrow(1, j, 1).narrow(2, j, 1));
        x.step(code, others, j);
    }
    return x.value().view(b.sizes());
}

/// Batches of both are broadcast, as PyTorch's solvers do.
at::Tensor solve_triangular(const at::Tensor& a, const at::Tensor& b, bool upper, bool left,
                            bool unit) {
    TORCH_CHECK(a.dim() >= 2 && a.size(-1) == a.size(-2) && b.dim() >= 2 &&
                    b.size(left ? -2 : -1) == a.size(-1),
                "linalg.solve_triangular: A must be square matrices that fit B, but A is ",
                a.sizes(), " and B is ", b.sizes());
    TORCH_CHECK(a.scalar_type() == b.scalar_type(),
                "linalg.solve_triangular: A and B must have one type, not ", a.scalar_type(),
                " and ", b.scalar_type());
    if (!factors(a)) return on_cpu<at::_ops::linalg_solve_triangular>(a, b, upper, left, unit);
    const c10::DeviceGuard guard(a.device());
    const auto batch =
        at::infer_size(a.sizes().slice(0, a.dim() - 2), b.sizes().slice(0, b.dim() - 2));
    const auto whole = [&](const at::Tensor& matrices) {
        std::vector<std::int64_t> sizes = batch;
        sizes.insert(sizes.end(), matrices.sizes().end() - 2, matrices.sizes().end());
        return matrices.expand(sizes);
    };
    if (left) return solved(whole(a), whole(b), upper, unit);
    return solved(whole(a).mT(), whole(b).mT(), !upper, unit).mT().contiguous();
}

std::tuple<at::Tensor&, at::Tensor&> triangular_solve_out(const at::Tensor& b, const at::Tensor& a,
                                                          bool upper, bool transpose, bool unit,
                                                          at::Tensor& x, at::Tensor& copy) {
    const at::Tensor triangle = transpose ? a.mT() : a;
    const at::Tensor made = solve_triangular(triangle, b, upper != transpose, true, unit);
    bring(x, made);
    // The copy of the triangles has the batch that the solutions have.
    std::vector<std::int64_t> sizes = made.sizes().vec();
    sizes.back() = a.size(-1);
    bring(copy, a.expand(sizes));
    return {x, copy};
}

/// The first pivot that is not above 0, counted from 1, or 0. A pivot behind such a one is NaN.
void write_info(const at::Tensor& factors, const at::Tensor& info) {
    const at::Tensor pivots = factors.diagonal(0, 1, 2);
    const at::Tensor first = at::empty({factors.size(0), 1}, pivots.options());
    const auto none = static_cast<double>(pivots.size(1) + 1);
    pointwise_into({first}, "y0 = min[-1](x0 > 0 ? p0 : index(-1) + 1)", {pivots}, {none});
    pointwise_into({info.view({-1, 1})}, "y0 = x0 == p0 ? 0 : x0", {first}, {none});
}

/// L of l l^T for a batch of matrices, of which the upper half is not read.
at::Tensor cholesky_factor(const at::Tensor& matrices) {
    Stepped l(matrices.tril());
    for (std::int64_t j = 0; j < matrices.size(1); ++j)
        l.step(
            "i = index(-2); k = index(-1);"
            "y0 = k == p0 ? (i == p0 ? sqrt(x3) : i > p0 ? x1 / sqrt(x3) : 0)"
            " : k > p0 && i >= k ? x0 - x1 * (x2 / x3) : x0",
            {l.column(j), l.column(j).mT(), l.element(j, j)}, j);
    return l.value();
}

std::tuple<at::Tensor&, at::Tensor&> cholesky_ex_out(const at::Tensor& self, bool upper,
                                                     bool check_errors, at::Tensor& l,
                                                     at::Tensor& info) {
    const c10::DeviceGuard guard(self.device());
    at::native::resize_output(l, self.sizes());
    at::native::resize_output(info, self.sizes().slice(0, self.dim() - 2));
    if (self.numel() == 0) {
        info.zero_();
        return {l, info};
    }
    const at::Tensor made = cholesky_factor(as_batch(upper ? self.mT() : self));
    l.copy_((upper ? made.mT() : made).reshape(self.sizes()));
    const at::Tensor found = at::empty(info.sizes(), info.options());
    write_info(made, found);
    info.copy_(found);
    if (check_errors) at::_linalg_check_errors(info, "linalg.cholesky_ex", self.dim() == 2);
    return {l, info};
}

at::Tensor factor_of(const at::Tensor& self, bool upper) {
    const auto [l, info] = at::linalg_cholesky_ex(self, upper, false);
    at::_linalg_check_errors(info, "cholesky", self.dim() == 2);
    return l;
}

/// Of l l^T x = b, or of u^T u x = b.
at::Tensor solved_by_factor(const at::Tensor& b, const at::Tensor& factor, bool upper) {
    const at::Tensor l = upper ? factor.mT() : factor;
    return solve_triangular(l.mT(), solve_triangular(l, b, false, true, false), true, true, false);
}

at::Tensor inverse_by_factor(const at::Tensor& self, bool upper) {
    TORCH_CHECK(self.dim() >= 2 && self.size(-1) == self.size(-2),
                "cholesky_inverse: A must be batches of square matrices, but it is ", self.sizes());
    const c10::DeviceGuard guard(self.device());
    return solved_by_factor(at::eye(self.size(-1), self.options()).expand(self.sizes()), self,
                            upper);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("linalg_solve_triangular", solve_triangular);
    m.impl("linalg_solve_triangular.out", into_outs<solve_triangular>);
    m.impl("triangular_solve.X", triangular_solve_out);
    m.where(factors).impl("linalg_cholesky_ex.L", cholesky_ex_out);
    m.impl("cholesky", factor_of);
    m.impl("cholesky.out", into_outs<factor_of>);
    m.impl("_cholesky_solve_helper", solved_by_factor);
    m.impl("cholesky_inverse", inverse_by_factor);
    m.impl("cholesky_inverse.out", into_outs<inverse_by_factor>);
}

}  // namespace
}  // namespace dlprim_torch
