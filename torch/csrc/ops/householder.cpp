// SPDX-License-Identifier: MIT
// QR by Householder's reflections, as LAPACK stores them: R above the diagonal, below it the
// reflections' vectors, whose first element is 1, and a factor tau for each.
#include "ops/matrices.hpp"
#include "ops/overloads.hpp"

namespace dlprim_torch {
namespace {

struct Reflections {
    at::Tensor vectors;  ///< [batch, m, n]
    at::Tensor taus;     ///< [batch, min(m, n)]
};

/// What a step makes of the diagonal's element x and the sum s of squares below it.
std::string reflection(const std::string& x, const std::string& s) {
    return "beta = " + s + " == 0 ? " + x + " : " + x + " < 0 ? sqrt(" + x + " * " + x + " + " + s +
           ") : -sqrt(" + x + " * " + x + " + " + s + "); tau = " + s + " == 0 ? 0 : (beta - " + x +
           ") / beta; scale = " + s + " == 0 ? 0 : 1 / (" + x + " - beta);";
}

Reflections factored(const at::Tensor& matrices) {
    Stepped a(matrices);
    const std::int64_t count = std::min(matrices.size(1), matrices.size(2));
    at::Tensor taus = at::empty({matrices.size(0), count}, matrices.options());
    const at::Tensor sums = at::empty({matrices.size(0), 1, matrices.size(2)}, matrices.options());
    const std::string turned = reflection("x3", "x5") +
                               "i = index(-2); c = index(-1); v = i == p0 ? 1 : x1 * scale;"
                               "y0 = i < p0 || c < p0 ? x0 : c == p0 ? (i == p0 ? beta : v)"
                               " : x0 - tau * v * (x2 + scale * x4)";
    for (std::int64_t j = 0; j < count; ++j) {
        pointwise_into({sums}, "y0 = sum[-2](index(-2) > p0 ? x0 * x1 : 0)",
                       {a.value(), a.column(j)}, {static_cast<double>(j)});
        const at::Tensor square = sums.narrow(2, j, 1);
        pointwise_into({taus.narrow(1, j, 1).unsqueeze(2)}, reflection("x0", "x1") + "y0 = tau",
                       {a.element(j, j), square});
        a.step(turned, {a.column(j), a.row(j), a.element(j, j), sums, square}, j);
    }
    return {a.value(), taus};
}

/// The reflections applied to `to` [batch, m, k], the last first: Q times it, or the first first: Q
/// transposed.
at::Tensor applied(const Reflections& reflections, const at::Tensor& to, bool transposed) {
    Stepped q(to);
    if (to.numel() == 0) return q.value();
    const at::Tensor sums = at::empty({to.size(0), 1, to.size(2)}, to.options());
    const std::int64_t count = reflections.taus.size(1);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t j = transposed ? i : count - 1 - i;
        const at::Tensor vector = reflections.vectors.narrow(2, j, 1);
        pointwise_into({sums}, "y0 = sum[-2](index(-2) == p0 ? x0 : index(-2) > p0 ? x0 * x1 : 0)",
                       {q.value(), vector}, {static_cast<double>(j)});
        q.step("i = index(-2); y0 = i < p0 ? x0 : x0 - x3 * (i == p0 ? 1 : x1) * x2",
               {vector, sums, reflections.taus.narrow(1, j, 1).unsqueeze(2)}, j);
    }
    return q.value();
}

/// The first `columns` columns of Q.
at::Tensor product(const Reflections& reflections, std::int64_t columns) {
    const at::Tensor& vectors = reflections.vectors;
    const at::Tensor unit = at::eye(vectors.size(1), columns, vectors.options());
    return applied(reflections, unit.expand({vectors.size(0), vectors.size(1), columns}), false);
}

/// The sizes of a batch's matrices, in place of the last two.
std::vector<std::int64_t> sizes_like(const at::Tensor& of, std::int64_t rows,
                                     std::int64_t columns) {
    std::vector<std::int64_t> sizes = of.sizes().vec();
    sizes[sizes.size() - 2] = rows;
    sizes.back() = columns;
    return sizes;
}

std::vector<std::int64_t> tau_sizes(const at::Tensor& of) {
    std::vector<std::int64_t> sizes = of.sizes().vec();
    sizes.pop_back();
    sizes.back() = std::min(of.size(-2), of.size(-1));
    return sizes;
}

std::tuple<at::Tensor&, at::Tensor&> qr_out(const at::Tensor& a, c10::string_view mode,
                                            at::Tensor& q, at::Tensor& r) {
    const c10::DeviceGuard guard(a.device());
    const std::int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
    const std::int64_t columns = mode == "complete" ? m : k;
    if (mode == "r")
        at::native::resize_output(q, {0});
    else
        at::native::resize_output(q, sizes_like(a, m, columns));
    at::native::resize_output(r, sizes_like(a, columns, n));
    if (a.numel() == 0) {
        if (q.numel() > 0) q.copy_(at::eye(m, columns, a.options()).expand(q.sizes()));
        return {q, r};
    }
    const Reflections made = factored(as_batch(a));
    r.copy_(made.vectors.narrow(1, 0, columns).triu().view(r.sizes()));
    if (mode != "r") q.copy_(product(made, columns).view(q.sizes()));
    return {q, r};
}

std::tuple<at::Tensor, at::Tensor> reflections_of(const at::Tensor& self) {
    TORCH_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions, not ",
                self.dim());
    const c10::DeviceGuard guard(self.device());
    if (self.numel() == 0) return {self.clone(), at::zeros(tau_sizes(self), self.options())};
    const Reflections made = factored(as_batch(self));
    return {made.vectors.view(self.sizes()), made.taus.view(tau_sizes(self))};
}

at::Tensor householder_product(const at::Tensor& input, const at::Tensor& tau) {
    TORCH_CHECK(
        input.dim() >= 2 && input.size(-2) >= input.size(-1) && input.size(-1) >= tau.size(-1),
        "torch.linalg.householder_product: input ", input.sizes(),
        " must be matrices with no more columns than rows, and tau ", tau.sizes(),
        " must have no more elements than those have columns");
    TORCH_CHECK(input.scalar_type() == tau.scalar_type(),
                "torch.linalg.householder_product: tau dtype ", tau.scalar_type(),
                " does not match input dtype ", input.scalar_type());
    const c10::DeviceGuard guard(input.device());
    if (input.numel() == 0) return at::empty(input.sizes(), input.options());
    const at::Tensor vectors = as_batch(input);
    return product({vectors, tau.reshape({vectors.size(0), tau.size(-1)})}, input.size(-1))
        .view(input.sizes());
}

DLPRIM_TORCH_KERNELS(m) {
    const KernelsOfSome served = m.where(factors);
    served.impl("linalg_qr.out", qr_out);
    served.impl("geqrf", reflections_of);
    served.impl("geqrf.a", into_outs<reflections_of>);
    served.impl("linalg_householder_product", householder_product);
    served.impl("linalg_householder_product.out", into_outs<householder_product>);
}

}  // namespace
}  // namespace dlprim_torch
