# SPDX-License-Identifier: MIT
"""Special functions against the CPU in double: on all intervals of their approximations, and at their edges."""

from __future__ import annotations

import pytest
import torch

SPECIAL = torch.special
INF, NAN = float("inf"), float("nan")
EVERYWHERE = [-60, -20, -9, -5, -3, -2.09, -1, -0.5, -1e-3, 0, 1e-6, 0.2, 0.5, 1, 2, 2.09, 3, 4.9, 5.1, 7.9, 8.1]
EVERYWHERE += [15, 60]
BESSEL = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "i0", "i0e", "i1", "i1e"]
BESSEL += [f"modified_bessel_{kind}" for kind in ("i0", "i1", "k0", "k1")]
BESSEL += [f"scaled_modified_bessel_{kind}" for kind in ("k0", "k1")]
FUNCTIONS = {
    **dict.fromkeys(BESSEL, EVERYWHERE),
    "spherical_bessel_j0": [*EVERYWHERE, INF],
    "airy_ai": [*EVERYWHERE, 104, INF],
    "erfcx": [*EVERYWHERE, NAN, 1e5, 1e8],
    "log_ndtr": [*EVERYWHERE, -1e4],
    "ndtri": [-0.5, 0, 1e-30, 1e-12, 1e-3, 0.13, 0.14, 0.5, 0.86, 0.87, 0.999, 1, 1.5],
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_function(name: str, dtype: torch.dtype) -> None:
    """In each type, and of a view."""
    function = getattr(SPECIAL, name)
    x = torch.tensor(FUNCTIONS[name], dtype=torch.float64)
    if dtype == torch.float16:
        x = x[x.abs() < 50]
        x = x[(x == 0) | (x.abs() > 1e-4)]
    x = x.to(dtype)
    if name in ("airy_ai", "bessel_j0") or not name.startswith(("bessel", "modified", "scaled", "spherical")):
        wide = torch.stack([x, x]).ocl()
        torch.testing.assert_close(function(wide.t())[:, 1], function(wide[0]), equal_nan=True)
    expected, made = function(x.double()), function(x.ocl())
    assert made.dtype == dtype
    tolerance = {torch.float32: 2e-5, torch.float64: 1e-11, torch.float16: 2e-3}[dtype]
    expected = torch.where(expected.abs() > torch.finfo(dtype).max, expected.sign() * INF, expected)
    torch.testing.assert_close(made.double().cpu(), expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_empty_and_integers() -> None:
    """No elements stay none, and integers become floats."""
    assert SPECIAL.i0(torch.empty(0, 3, device="ocl")).shape == (0, 3)
    made = SPECIAL.i0e(torch.arange(3, device="ocl"))
    torch.testing.assert_close(made.cpu(), SPECIAL.i0e(torch.arange(3)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_frexp_and_ldexp(dtype: torch.dtype) -> None:
    """Exact, at powers of two, too."""
    x = torch.tensor([0.0, 1, -1, 0.5, 3, 1000.5, -1e-3, 2.0**14, 0.99, INF, -INF, 6.1e-5], dtype=dtype)
    mantissa, exponent = torch.frexp(x.ocl())
    expected = torch.frexp(x)
    assert mantissa.cpu().tolist() == expected.mantissa.tolist()
    finite = x.isfinite()
    assert exponent.cpu()[finite].tolist() == expected.exponent[finite].tolist()
    if dtype in (torch.float32, torch.float64):
        assert torch.equal(torch.ldexp(mantissa[:9], exponent[:9]).cpu(), x[:9])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32])
def test_ldexp(dtype: torch.dtype) -> None:
    """Exact for integers, also where 2^other is no number of the type; in place, with out= and with gradients."""
    span = {torch.float64: 1060, torch.float16: 14, torch.int32: 120}.get(dtype, 140)
    other = torch.arange(-span, span + 1)
    x = (torch.ones(2 * span + 1) * 1.5).to(dtype)
    x[:span] *= 1 << 12
    expected = torch.ldexp(x, other)
    made = torch.ldexp(x.ocl(), other.ocl())
    assert made.dtype == expected.dtype
    normal = expected.abs() >= torch.finfo(expected.dtype).tiny  # PoCL may round smaller ones to 0
    assert torch.equal(made.cpu()[normal], expected[normal])
    assert torch.ldexp(torch.tensor([INF], device="ocl"), torch.tensor([-1000], device="ocl")).item() == INF
    if not dtype.is_floating_point:
        return
    assert torch.equal(torch.ldexp(x.ocl(), other.ocl(), out=torch.empty_like(made)), made)
    assert torch.equal(x.ocl().ldexp_(other.ocl()), made)
    device, host = x.ocl().requires_grad_(), x.clone().requires_grad_()
    for leaf, power in ((device, other.ocl() // 20), (host, other // 20)):
        torch.ldexp(leaf, power).sum().backward()
    assert device.grad is not None and host.grad is not None
    torch.testing.assert_close(device.grad.cpu(), host.grad)


def test_pow_of_zero_in_double() -> None:
    """Bases of 0 and signs of their powers."""
    base = torch.tensor([0.0, -0.0, 0.0, -0.0, 0.0, 2.0, -2.0, 0.0], dtype=torch.float64)
    exponent = torch.tensor([0.0, 3.0, -2.0, -3.0, 1.5, 0.5, 3.0, NAN], dtype=torch.float64)
    made = torch.pow(base.ocl(), exponent.ocl()).cpu()
    torch.testing.assert_close(made, torch.pow(base, exponent), equal_nan=True)
    assert torch.equal(made.signbit()[:7], torch.pow(base, exponent).signbit()[:7])


FAMILIES = ["chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w"]
FAMILIES += ["shifted_" + family for family in FAMILIES]
FAMILIES += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]


@pytest.mark.parametrize("family", FAMILIES)
def test_polynomials(family: str) -> None:
    """Degrees as tensors and numbers, at and between the ends of the interval."""
    function = getattr(SPECIAL, family)
    x = torch.tensor([-1.7, -1, -0.3, 0, 0.2, 0.9, 1, 1.4], dtype=torch.float64)
    n = torch.arange(-1, 13, dtype=torch.float64)
    made = function(x.ocl(), n.ocl()[:, None])
    torch.testing.assert_close(made.cpu(), function(x, n[:, None]), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(function(x.ocl(), 4).cpu(), function(x, 4))
    assert function(x.ocl()[:0], n.ocl()[:1]).shape == (0,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zeta_and_polygamma(dtype: torch.dtype) -> None:
    """At poles, outside of the domain, and for large exponents."""
    x = torch.tensor([0.5, 1, 1.5, 2, 3, 4.5, 10, 30], dtype=dtype)
    q = torch.tensor([-12.3, -2, -0.5, 0.1, 1, 3.7, 20], dtype=dtype)[:, None]
    tolerance = {torch.float32: 2e-5, torch.float64: 1e-11}[dtype]
    expected = SPECIAL.zeta(x.double(), q.double()).to(dtype)
    made = SPECIAL.zeta(x.ocl(), q.ocl()).cpu()
    torch.testing.assert_close(made, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    for n in (0, 2, 3, 4):
        expected = SPECIAL.polygamma(n, q.double()).to(dtype)
        made = SPECIAL.polygamma(n, q.ocl()).cpu()
        torch.testing.assert_close(made, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    # PyTorch's own has 9 digits.
    torch.testing.assert_close(
        SPECIAL.polygamma(1, q[2:].ocl()).cpu(), SPECIAL.polygamma(1, q[2:]), rtol=2e-5, atol=2e-5
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_exact_quotients(dtype: torch.dtype, scale: float) -> None:
    """Quotients that are whole, or nearly, have the CPU's bits, and so have their whole parts."""
    divisors = torch.arange(1, 100, dtype=torch.float32) * scale
    dividends = (torch.arange(-300, 301, dtype=torch.float32)[:, None] * divisors).to(dtype)
    divisors = divisors.to(dtype).expand_as(dividends).contiguous()
    # In 16 bits PyTorch truncates the quotient of tensors after it was rounded to them, that by a number before.
    for divisor in (divisors, 7.0 * scale):
        on_device = divisor.to("ocl") if isinstance(divisor, torch.Tensor) else divisor
        for rounding in (None, "trunc"):
            expected = torch.div(dividends, divisor, rounding_mode=rounding)
            actual = torch.div(dividends.to("ocl"), on_device, rounding_mode=rounding)
            assert torch.equal(actual.cpu(), expected), rounding


def test_a_saturated_tanh_has_no_gradient() -> None:
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor([30.0, -30.0, 25.0, 20.0] * 5, dtype=dtype, requires_grad=True)
        y = x.detach().to("ocl").requires_grad_()
        x.tanh().sum().backward()
        y.tanh().sum().backward()
        assert torch.equal(y.tanh().cpu(), x.tanh())
        assert torch.equal(y.grad.cpu(), x.grad)


def test_remainders_of_doubles_are_exact() -> None:
    x = torch.tensor([1.0, 7.0, -8.0, 100.5, 1e10, -1e-5], dtype=torch.float64)
    for y in (6.283185307179586, 2.5, 0.1, -3.0):
        assert torch.equal(torch.fmod(x.to("ocl"), y).cpu(), torch.fmod(x, y))
        assert torch.equal(torch.remainder(x.to("ocl"), y).cpu(), torch.remainder(x, y))
