# SPDX-License-Identifier: MIT
"""Arithmetic operators on tensors, beside numpy's."""

from __future__ import annotations

from typing import Any, Callable

import dlprim
import numpy as np
import pytest
from dlprim import Tensor

FLOATS = np.linspace(-3, 4, 24, dtype="float32").reshape(2, 3, 4)
INTS = np.arange(-6, 6, dtype="int32").reshape(3, 4)

Expression = Callable[[Any], Any]

float_expressions: dict[str, Expression] = {
    "t + 1": lambda t: t + 1,
    "1 + t": lambda t: 1 + t,
    "1 - t": lambda t: 1 - t,
    "t * 2.5": lambda t: t * 2.5,
    "t / 3": lambda t: t / 3,
    "3 / (t + 9)": lambda t: 3 / (t + 9),
    "t ** 2": lambda t: t**2,
    "t ** 3": lambda t: t**3,
    "2 ** t": lambda t: 2**t,
    "(t + 9) ** 0.5": lambda t: (t + 9) ** 0.5,
    "(t + 9) ** t": lambda t: (t + 9) ** t,
    "-t": lambda t: -t,
    "+t": lambda t: +t,
    "abs(t)": lambda t: abs(t),
    "t + t": lambda t: t + t,
    "t - t[0]": lambda t: t - t[0],
    "t * t[:, :1, 1:2]": lambda t: t * t[:, :1, 1:2],
    "t.T + t.T": lambda t: t.T + t.T,
    "t.T * t.T[0]": lambda t: t.T * t.T[0],
    "t[:, 1] * t[1, 1]": lambda t: t[:, 1] * t[1, 1],
    "t[:, ::2, 1:3] - 7": lambda t: t[:, ::2, 1:3] - 7,
    "t[None] + t[:, None]": lambda t: t[None] + t[:, None],
    "t[:0] * 2": lambda t: t[:0] * 2,
    "np.float32(2) * t": lambda t: np.float32(2) * t,
    "array - t": lambda t: np.arange(4, dtype="float32") - t,
    "t / array": lambda t: t / np.arange(1, 5, dtype="float32"),
    "array(0d) * t": lambda t: np.array(2, "float32") * t,
    "t * nan": lambda t: t * float("nan"),
    "t < 1": lambda t: t < 1,
    "t <= t[1]": lambda t: t <= t[1],
    "t > inf": lambda t: t > float("inf"),
    "1 >= t": lambda t: 1 >= t,
    "t == t": lambda t: t == t,
    "t != 0": lambda t: t != 0,
    "array < t": lambda t: np.zeros(4, "float32") < t,
    "between": lambda t: (t > -1) & (t < 1),
    "outside": lambda t: (t < -1) | ~(t < 1),
    "either": lambda t: (t < -1) ^ (t < 1),
    "mask ^ True": lambda t: (t < 1) ^ True,
    "mask * t": lambda t: (t < 1) * t,
}


@pytest.mark.parametrize("expression", float_expressions.values(), ids=float_expressions)
def test_floats(context: dlprim.Context, expression: Expression) -> None:
    result, expected = expression(Tensor(context, FLOATS)), expression(FLOATS)
    assert isinstance(result, Tensor)
    assert (result.shape, result.dtype) == (expected.shape, str(expected.dtype))
    np.testing.assert_allclose(result.numpy(), expected, rtol=2e-6, atol=1e-6)


int_expressions: dict[str, Expression] = {
    "t + 1": lambda t: t + 1,
    "1 - t": lambda t: 1 - t,
    "t * 3": lambda t: t * 3,
    "t * t": lambda t: t * t,
    "t ** 0": lambda t: t**0,
    "t ** 3": lambda t: t**3,
    "-t": lambda t: -t,
    "abs(t)": lambda t: abs(t),
    "t < 2 ** 40": lambda t: t < 2**40,
    "t == 1": lambda t: t == 1,
    "(t > 0) + (t < 3)": lambda t: (t > 0) + (t < 3),
    "(t > 0) + 1": lambda t: (t > 0) + 1,
    "t + int8": lambda t: t + INTS.astype("int8"),
    "t * int64": lambda t: t * INTS.astype("int64"),
    "t + True": lambda t: t + True,
    "t.T - t.T": lambda t: t.T - t.T,
}


@pytest.mark.parametrize("expression", int_expressions.values(), ids=int_expressions)
def test_integers_stay_integers(context: dlprim.Context, expression: Expression) -> None:
    result, expected = expression(Tensor(context, INTS)), expression(INTS)
    assert (result.shape, result.dtype) == (expected.shape, str(expected.dtype))
    np.testing.assert_array_equal(result.numpy(), expected)


def test_integers_beside_floats_become_float32(context: dlprim.Context) -> None:
    tensor = Tensor(context, INTS)
    for result, expected in [(tensor / 4, INTS / 4), (tensor * 2.5, INTS * 2.5), (tensor / tensor[:, :1], None)]:
        assert result.dtype == "float32"
        if expected is not None:
            np.testing.assert_allclose(result.numpy(), expected)
    assert (Tensor(context, FLOATS) + Tensor(context, 1)).dtype == "float32"


def test_large_integers_are_exact(context: dlprim.Context) -> None:
    tensor = Tensor(context, np.array([2**60 + 1, -(2**60) - 1]))
    assert (tensor + 2**60).tolist() == [2**61 + 1, -1]
    assert (tensor == 2**60 + 1).tolist() == [True, False]
    assert (tensor > 2**60).tolist() == [True, False]
    assert (tensor * 3).tolist() == [3 * 2**60 + 3, -3 * 2**60 - 3]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_number_takes_the_tensors_type(context: dlprim.Context, dtype: str) -> None:
    tensor = Tensor(context, [1.0, 2.0], dtype=dtype)
    for result in (tensor * 2, 0.5 + tensor, tensor**2, -tensor, tensor + np.int64(2), np.float64(2) * tensor):
        assert result.dtype == dtype
    assert (tensor * 0.5 + 1).tolist() == [1.5, 2.0]
    assert (tensor > 1.5).tolist() == [False, True]


@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,))],
)
def test_matrix_products(context: dlprim.Context, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape, dtype="float32") for shape in (left, right))
    ta, tb = Tensor(context, a), Tensor(context, b)
    for result in (ta @ tb, a @ tb, ta @ b):
        np.testing.assert_allclose(result.numpy(), a @ b, rtol=1e-5, atol=1e-5)


def test_transposed_factors_are_not_copied(fresh_context: dlprim.Context) -> None:
    a, b = Tensor(fresh_context, FLOATS[0]), Tensor(fresh_context, FLOATS[1])
    for product, expected in [
        (lambda: a @ b.T, FLOATS[0] @ FLOATS[1].T),
        (lambda: a.T @ b, FLOATS[0].T @ FLOATS[1]),
        (lambda: a.T @ b.T.T, FLOATS[0].T @ FLOATS[1]),
    ]:
        np.testing.assert_allclose(product().numpy(), expected, rtol=1e-5, atol=1e-5)
        before = fresh_context.counters
        product()
        done = fresh_context.counters - before
        assert (done.launches, done.waits) == (1, 0)


def test_operators_do_not_wait(fresh_context: dlprim.Context) -> None:
    tensor = Tensor(fresh_context, FLOATS)
    for _ in range(2):
        before = fresh_context.counters
        result = tensor * 2 - tensor.T.T / 3 + tensor.T.copy().T
    assert (fresh_context.counters - before).waits == 0
    np.testing.assert_allclose(result.numpy(), FLOATS * 2 - FLOATS / 3 + FLOATS, rtol=1e-6)


def test_in_place_operators_bind_a_new_tensor(context: dlprim.Context) -> None:
    tensor = Tensor(context, [1.0, 2.0])
    view = tensor[:]
    tensor += 1
    tensor *= np.array([2, 3], "float32")
    assert (tensor.tolist(), view.tolist()) == ([4, 9], [1, 2])


def test_a_tensor_is_a_key_by_itself(context: dlprim.Context) -> None:
    tensor = Tensor(context, 1.0)
    assert {tensor: "found"}[tensor] == "found"
    assert (tensor == None) is False  # noqa: E711
    assert tensor != "text"


# What bad input gets.


@pytest.mark.parametrize("other", ["text", [1, 2], None, object(), {}], ids=str)
def test_operands_of_other_types(context: dlprim.Context, other: Any) -> None:
    tensor = Tensor(context, [1.0, 2.0])
    for expression in (lambda: tensor + other, lambda: other * tensor, lambda: tensor < other, lambda: tensor @ other):
        with pytest.raises(TypeError) as caught:
            expression()
        assert "\n" not in str(caught.value)


def test_two_contexts_are_not_mixed(device: str) -> None:
    one, other = dlprim.Context(device), dlprim.Context(device)
    a, b = Tensor(one, FLOATS), Tensor(other, FLOATS)
    for expression in (lambda: a + b, lambda: a < b, lambda: a[0] @ b[0].T):
        with pytest.raises(dlprim.InvalidArgumentError, match=r"belong to two contexts.*dlprim\.Tensor\(context, "):
            expression()
    np.testing.assert_array_equal((a + Tensor(one, b)).numpy(), FLOATS * 2)


def test_integers_hold_their_number(context: dlprim.Context) -> None:
    for dtype, number in [("int8", 128), ("uint8", -1), ("int32", 2**31), ("int64", 2**63)]:
        with pytest.raises(dlprim.InvalidArgumentError, match=f"a tensor of {dtype} does not hold"):
            Tensor.zeros(context, 2, dtype) + number
    assert (Tensor.zeros(context, 2, "uint8") < 1000).tolist() == [True, True]


def test_truth_is_no_number(context: dlprim.Context) -> None:
    mask = Tensor(context, [True, False])
    for expression in (lambda: -mask, lambda: mask - mask):
        with pytest.raises(dlprim.InvalidArgumentError, match="astype"):
            expression()
    for expression in (lambda: Tensor(context, [1]) & mask, lambda: mask | 1.0, lambda: ~Tensor(context, [1])):
        with pytest.raises((dlprim.InvalidArgumentError, TypeError), match="bool"):
            expression()


def test_shapes_that_do_not_broadcast(context: dlprim.Context) -> None:
    with pytest.raises(ValueError, match=r"\[2, 3, 4\].*\[3\]|\[3\].*\[2, 3, 4\]"):
        Tensor(context, FLOATS) * Tensor(context, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="MatMul"):
        Tensor(context, FLOATS[0]) @ Tensor(context, FLOATS[0])


def test_complex_numbers_lose_no_part_silently(context: dlprim.Context) -> None:
    x = Tensor(context, [1.0, 2.0])
    for number in (1j, np.complex64(1 + 2j)):
        with pytest.raises(TypeError):
            x * number
    with pytest.raises(TypeError, match="a number, not a numpy.complex64"):
        Tensor.full(context, 2, np.complex64(1))
