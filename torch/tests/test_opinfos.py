# SPDX-License-Identifier: MIT
"""PyTorch's own samples of operators (op_db) on "ocl" against the CPU, at op_db's tolerances.

opinfos.py says what the list of OpInfos, opinfos.txt, has. A sample is computed as it is, with strided operands, with
out=, and its gradients. Where a result differs only by rounding, one in double decides. By default the quick part of
the list runs with few samples each; `--opinfos=all` runs everything, also in float16, bfloat16, int64 and bool where an
operator is elementwise or a reduction, and `--opinfos=update` writes opinfos.txt anew from what it finds, and
`--opinfos=add` adds what is not in it.
"""

from __future__ import annotations

import unittest
import warnings
from collections.abc import Callable
from itertools import islice
from typing import Any

import opinfos
import pytest
import torch

pytest.importorskip("expecttest", reason="torch.testing._internal needs it: pip install expecttest")

from torch.testing._internal.common_device_type import OpDTypes, instantiate_device_type_tests, ops  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.testing._internal.common_utils import TestCase  # noqa: E402
from torch.testing._internal.opinfo.core import (  # noqa: E402
    BinaryUfuncInfo,
    OpInfo,
    ReductionOpInfo,
    SampleInput,
    UnaryUfuncInfo,
)
from torch.utils._pytree import tree_leaves, tree_map  # noqa: E402

STATES = opinfos.read()
# Failures that op_db expects are those of other devices.
for each in op_db:
    each.decorators = tuple(d for d in each.decorators if unittest.expectedFailure not in getattr(d, "decorators", ()))
RUN = {
    "quick": [op for op in op_db if STATES.get(op.full_name, opinfos.UNKNOWN).quick],
    "add": [op for op in op_db if op.full_name not in STATES],
}.get(opinfos.mode(), op_db)
NARROW = [torch.float16, torch.bfloat16, torch.int64, torch.bool]
NARROW_KINDS = (UnaryUfuncInfo, BinaryUfuncInfo, ReductionOpInfo)


def on_device(tensor: Any) -> Any:
    """A copy on the device with the same strides, and gaps between elements; a leaf that wants a gradient as before."""
    if isinstance(tensor, torch.device) or tensor == "cpu":
        return "ocl"
    if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided:
        return tensor
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage(), 0, (elements,), (1,))
    copy = storage.to("ocl").as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    return copy.detach().requires_grad_(tensor.requires_grad)


def is_index(value: Any) -> bool:
    """Whether it is a tensor of int64."""
    return isinstance(value, torch.Tensor) and value.dtype == torch.int64


def on_host(value: Any) -> Any:
    """A detached copy on the CPU."""
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def in_double(sample: SampleInput) -> SampleInput:
    """The sample with float operands as doubles, which are leaves."""

    def convert(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
            return value
        return value.detach().double().requires_grad_(value.requires_grad)

    return sample.transform(convert)


def is_rounding(actual: Any, expected: Any, exact: Any) -> bool:
    """Whether a result, where it differs from the CPU's, is at most twice as far from the exact one as the CPU's is."""
    if not isinstance(actual, torch.Tensor) or not actual.is_floating_point():
        return bool(actual == expected) if not isinstance(actual, torch.Tensor) else torch.equal(actual, expected)
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype) or exact.shape != actual.shape:
        return False
    if not bool(actual.isfinite().all() and exact.isfinite().all()):
        return torch.equal(actual, expected)
    return bool((actual - exact).abs().max() <= 2 * (expected - exact).abs().max()) if actual.numel() > 0 else True


def works(function: Callable[..., Any], *args: Any) -> bool:
    """Whether the CPU serves a call, which may refuse what a device serves."""
    try:
        function(*args)
    except Exception:
        return False
    return True


class Sample:
    """A sample's arguments on one device."""

    def __init__(self, sample: SampleInput, moves: bool, op: OpInfo | None = None) -> None:
        self.sample = sample
        self.all = [sample.input, list(sample.args), dict(sample.kwargs)]
        if moves:
            stays = op is not None and op.full_name in opinfos.INDICES_ON_HOST
            move = (lambda t: t if is_index(t) else on_device(t)) if stays else on_device
            self.all = tree_map(move, self.all, is_leaf=lambda x: isinstance(x, torch.Tensor))

    def call(self, op: Any, **more: Any) -> Any:
        """The operator's result."""
        first, args, kwargs = self.all
        return op(first, *args, **kwargs, **more)

    def gradients(self, result: Any) -> list[Any]:
        """The gradients of all arguments that want one, for gradients of results that follow from a seed."""
        result = self.sample.output_process_fn_grad(result)
        wants = [leaf for leaf in tree_leaves(self.all) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        outs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        generator = torch.Generator().manual_seed(5)
        given = [torch.randn(out.shape, generator=generator, dtype=out.dtype).to(out.device) for out in outs]
        if not wants or not outs:
            return []
        return list(torch.autograd.grad(outs, wants, given, allow_unused=True))


class TestCommon(TestCase):
    """The names of this class and its methods are those for which op_db keeps tolerances and skips."""

    def compare(self, op: OpInfo, sample: SampleInput, backward: bool) -> None:
        """One sample, with its gradients."""
        host, device = Sample(sample, False), Sample(sample, True, op)
        expected, actual = host.call(op), device.call(op)
        moved = any(isinstance(leaf, torch.Tensor) and leaf.device.type == "ocl" for leaf in tree_leaves(device.all))
        for leaf in tree_leaves(actual) if moved else ():
            assert not isinstance(leaf, torch.Tensor) or leaf.device.type == "ocl", f"the result is on {leaf.device}"
        exact = Sample(in_double(sample), False)
        self.close(actual, expected, lambda: exact.call(op))
        if backward:
            self.close(device.gradients(actual), host.gradients(expected), lambda: exact.gradients(exact.call(op)))

    def close(self, actual: Any, expected: Any, exact: Callable[[], Any]) -> None:
        """Fails where results differ by more than op_db allows, unless that is rounding: then they are at most twice as
        far from those in double as the CPU's are."""
        actual, expected = tree_map(on_host, actual), tree_map(on_host, expected)
        try:
            self.assertEqual(actual, expected, exact_dtype=True)
        except AssertionError:
            try:
                references = tree_leaves(tree_map(on_host, exact()))
            except Exception:
                references = []
            found = list(zip(tree_leaves(actual), tree_leaves(expected), references, strict=False))
            if len(found) != len(tree_leaves(actual)) or not all(is_rounding(*each) for each in found):
                raise
            self.rounded = True

    def compare_out(self, op: OpInfo, sample: SampleInput) -> None:
        """One sample with out= of the right shape, and of none, where the CPU takes such."""
        host, device, exact = Sample(sample, False), Sample(sample, True, op), Sample(in_double(sample), False)
        with torch.no_grad():
            expected = host.call(op)
            for like in (torch.empty_like, lambda t: t.new_empty(0)):
                if not works(lambda like=like: host.call(op, out=tree_map(like, host.call(op)))):
                    continue
                outs = tree_map(like, device.call(op))
                device.call(op, out=outs)
                self.close(outs, expected, lambda: exact.call(op))

    def samples(self, op: OpInfo, dtype: torch.dtype, backward: bool, most: int | None) -> None:
        """All that is compared of an OpInfo in one type."""
        torch.manual_seed(1)
        self.rounded = False
        for number, sample in enumerate(islice(op.sample_inputs("cpu", dtype, requires_grad=backward), most)):
            if isinstance(sample.input, torch.Tensor) and sample.input.layout != torch.strided:
                continue
            self.compare(op, sample, backward)
            if number == 0 and not any(t.is_complex() for t in tree_leaves(sample.args) if isinstance(t, torch.Tensor)):
                strided = sample.noncontiguous()
                if works(Sample(strided, False).call, op):
                    self.compare(op, strided, backward)
                if op.supports_out and op.full_name not in opinfos.NO_OUT and dtype.is_floating_point:
                    self.compare_out(op, next(iter(op.sample_inputs("cpu", dtype))))

    @ops(RUN, dtypes=OpDTypes.supported, allowed_dtypes=[torch.float32, *NARROW])
    def test_compare_cpu(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        """An OpInfo in one type, against what the list says of it."""
        state = STATES.get(op.full_name, opinfos.UNKNOWN)
        quick, update = opinfos.mode() == "quick", opinfos.updates()
        if dtype != torch.float32 and (update or not isinstance(op, NARROW_KINDS) or quick and not state.narrow):
            self.skipTest("float32 alone")
        if state.kind == "differs" and not update:
            self.skipTest(state.text)
        if dtype != torch.float32 and op.full_name in opinfos.FLOAT_ALONE:
            self.skipTest(opinfos.FLOAT_ALONE[op.full_name])
        if op.full_name in opinfos.LEFT_OUT:
            self.skipTest(opinfos.LEFT_OUT[op.full_name])
        backward = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        if update:
            opinfos.found(op.full_name, "differs", "it ends the process")
        torch.ocl.set_fallback_mode("error" if state.kind == "served" and not update else "")
        torch.ocl.reset_fallbacks()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.samples(op, dtype, backward and dtype == torch.float32, 2 if quick else None)
            except Exception as error:
                if not update:
                    raise
                opinfos.found(op.full_name, "differs", f"{type(error).__name__}: {error}")
                return
        names = sorted(torch.ocl.fallbacks())
        if update:
            text = " ".join(names) or ("as exact as the CPU, but rounded in another way" if self.rounded else "")
            opinfos.found(op.full_name, "falls back" if names else "served", text)


instantiate_device_type_tests(TestCommon, globals(), only_for="ocl")
