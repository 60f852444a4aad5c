# SPDX-License-Identifier: MIT
"""dlprim.ops: each function against PyTorch, forward and backward, on every device.

A case is a call as it is written in Python, with numpy arrays in the place of tensors. It is made once with tensors of
dlprim and once with those of PyTorch, whose function is the one of the same name unless the case says another.
"""

from __future__ import annotations

import zlib
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import ops
from ops_cases import CASES, Case, convert

every_case = pytest.mark.parametrize("case", CASES, ids=[f"{case.name}-{i}" for i, case in enumerate(CASES)])


def leaves(value: Any, kind: type) -> list[Any]:
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item, kind)]
    return []


def as_tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def assert_near(got: np.ndarray, wanted: Any) -> None:
    wanted = wanted.detach().numpy()
    assert got.shape == (wanted.shape or (1,)) and got.dtype == wanted.dtype
    tolerance = 2e-3 if got.dtype == np.float16 else 2e-5
    size = np.abs(wanted).max(initial=1.0)
    np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=tolerance, atol=tolerance * size)


def torch_args(torch: Any, case: Case) -> list[Any]:
    def make(array: np.ndarray) -> Any:
        return torch.tensor(array, requires_grad=array.dtype == np.float32)

    return [convert(arg, make) for arg in case.args]


def statistics(torch: Any, case: Case, given: list[Any]) -> None:
    """PyTorch wants none of the gradients of running statistics, and dlprim gives none."""
    if case.name == "batch_norm":
        given[1], given[2] = given[1].detach(), given[2].detach()


@every_case
def test_forward(case: Case, context: dlprim.Context, torch: Any) -> None:
    args = [convert(arg, lambda array: dlprim.Tensor(context, array)) for arg in case.args]
    given = torch_args(torch, case)
    statistics(torch, case, given)
    got = as_tuple(case.function(*args, **case.kwargs))
    wanted = as_tuple(case.torch_call(torch, given))
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted):
        assert_near(ours.numpy(), theirs)
    if case.name == "batch_norm":  # in training the running statistics have changed
        for ours, theirs in zip(args[1:3], given[1:3]):
            assert_near(ours.numpy(), theirs)


@every_case
def test_gradient(case: Case, context: dlprim.Context, torch: Any) -> None:
    if not case.differentiable:
        pytest.skip("no gradient")
    args = [convert(arg, lambda array: dlprim.Tensor(context, array)) for arg in case.args]
    given = torch_args(torch, case)
    statistics(torch, case, given)
    results = tuple(y for y in as_tuple(case.torch_call(torch, given)) if y.dtype.is_floating_point)
    seed = np.random.default_rng(zlib.crc32(case.name.encode()))
    gradients = [seed.standard_normal(result.shape or (1,)).astype(np.float32) for result in results]
    gradients = [
        gradient.astype(np.float16) if result.dtype == torch.float16 else gradient
        for gradient, result in zip(gradients, results)
    ]
    torch.autograd.backward(results, [torch.tensor(dy).reshape(y.shape) for dy, y in zip(gradients, results)])

    dys = [dlprim.Tensor(context, gradient) for gradient in gradients]
    got = ops.grad(case.function, dys if len(dys) > 1 else dys[0], *args, **case.kwargs)

    tensors = leaves(given, torch.Tensor)
    assert len(got) == len(tensors)
    for ours, tensor in zip(got, tensors):
        if not tensor.requires_grad:
            assert ours is None
        else:
            assert ours is not None
            assert_near(ours.numpy(), tensor.grad)


def test_every_function_is_called() -> None:
    tools = {"backward", "call", "grad"}  # test_ops_calls.py
    assert {case.name for case in CASES} == set(ops.__all__) - tools
