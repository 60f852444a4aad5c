// SPDX-License-Identifier: MIT
// Tensors whose elements follow from their positions: arange, linspace, logspace, eye.
#include "fallback/fallback.hpp"
#include "ops/call.hpp"
#include "ops/kernels.hpp"

#include <ATen/native/RangeUtils.h>
#include <ATen/native/Resize.h>
#include <c10/core/DeviceGuard.h>

namespace dlprim_torch {
namespace {

/// A program without operands into `out`, which takes part as one that is not read: so the call
/// knows its device, and computes with integers where the result is one.
void positions_into(const at::Tensor& out, const std::string& code,
                    const std::vector<dp::Scalar>& scalars = {}) {
    if (out.numel() > 0) pointwise_into({out}, code, {out}, scalars);
}

std::int64_t elements(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                      at::ScalarType type) {
    if (type == at::kLong) return at::native::compute_arange_size<std::int64_t>(start, end, step);
    return at::native::compute_arange_size<double>(start, end, step);
}

at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                       at::Tensor& out) {
    const c10::DeviceGuard guard(out.device());
    const at::ScalarType type = out.scalar_type();
    const std::int64_t size = elements(start, end, step, type);
    if (out.numel() != size) out.resize_({size});
    const bool whole = at::isIntegralType(type, true);
    const auto value = [&](const at::Scalar& number) {
        return whole ? dp::Scalar(number.to<std::int64_t>()) : dp::Scalar(number.to<double>());
    };
    positions_into(out.view({size}), "y0 = p0 + p1 * index(0)", {value(start), value(step)});
    return out;
}

/// linspace, or with a base its powers.
void steps_into(const at::Tensor& out, double start, double end, std::int64_t steps,
                std::optional<double> base) {
    const auto last = static_cast<double>(steps - 1);
    const double step = steps > 1 ? (end - start) / last : 0;
    std::string code = "i = index(0); z = i < p4 ? p0 + p1 * i : p2 - p1 * (p3 - i); y0 = ";
    std::vector<dp::Scalar> scalars = {start, step, end, last,
                                       static_cast<double>((steps + 1) / 2)};
    if (base) scalars.push_back(*base);
    positions_into(out, code += base ? "pow(p5, z)" : "z", scalars);
}

void shape_steps(std::int64_t steps, const at::Tensor& out) {
    TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
    if (out.numel() != steps) out.resize_({steps});
}

bool has_steps(const at::Scalar& start, const at::Scalar& end, const at::Tensor& out) {
    return out.is_floating_point() && !start.isComplex() && !end.isComplex();
}

at::Tensor& linspace_out(const at::Scalar& start, const at::Scalar& end, std::int64_t steps,
                         at::Tensor& out) {
    if (!has_steps(start, end, out)) return on_cpu<at::_ops::linspace_out>(start, end, steps, out);
    const c10::DeviceGuard guard(out.device());
    shape_steps(steps, out);
    steps_into(out.view({steps}), start.to<double>(), end.to<double>(), steps, std::nullopt);
    return out;
}

at::Tensor& logspace_out(const at::Scalar& start, const at::Scalar& end, std::int64_t steps,
                         double base, at::Tensor& out) {
    if (!has_steps(start, end, out))
        return on_cpu<at::_ops::logspace_out>(start, end, steps, base, out);
    const c10::DeviceGuard guard(out.device());
    shape_steps(steps, out);
    steps_into(out.view({steps}), start.to<double>(), end.to<double>(), steps, base);
    return out;
}

at::Tensor& eye_m_out(std::int64_t n, std::int64_t m, at::Tensor& out) {
    TORCH_CHECK(n >= 0 && m >= 0, "eye needs sizes that are not negative, not ", n, " and ", m);
    const c10::DeviceGuard guard(out.device());
    at::native::resize_output(out, {n, m});
    positions_into(out, "y0 = index(0) == index(1)");
    return out;
}

at::Tensor& eye_out(std::int64_t n, at::Tensor& out) {
    return eye_m_out(n, n, out);
}

DLPRIM_TORCH_KERNELS(m) {
    m.impl("arange.start_out", arange_out);
    m.impl("linspace.out", linspace_out);
    m.impl("logspace.out", logspace_out);
    m.impl("eye.m_out", eye_m_out);
    m.impl("eye.out", eye_out);
}

}  // namespace
}  // namespace dlprim_torch
