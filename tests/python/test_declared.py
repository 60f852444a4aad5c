# SPDX-License-Identifier: MIT
"""Functions of dlprim.ops that are made of operators' declarations: arguments, help, and the stub of the build."""

from __future__ import annotations

import inspect
import json
import pathlib
from typing import Any

import pytest
from dlprim import ops
from dlprim._core import operator_declarations
from dlprim.ops import _declared, _signatures, _table

DECLARATIONS = json.loads(operator_declarations())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("relu", "(input, *, out=None)"),
        ("softmax", "(input, dim=1, *, out=None, engine=None)"),
        ("topk", "(input, k, dim=-1, largest=True, sorted=True, *, out=None)"),
        ("gather", "(input, dim, index, *, out=None)"),
        ("threshold", "(input, threshold, value, *, out=None)"),
        ("softplus", "(input, *, beta=1.0, threshold=20.0, out=None)"),
        ("dropout", "(input, p=0.5, *, training=True, seed=1, step=0, stream=None, out=None)"),
        ("max_pool2d", "(input, kernel_size, *, stride=None, padding=0, ceil_mode=False, out=None, engine=None)"),
    ],
)
def test_arguments(name: str, arguments: str) -> None:
    """Written by hand here: names and order are PyTorch's, defaults the operator's or those of _table.py."""
    signature = inspect.signature(getattr(ops, name))
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    assert str(inspect.Signature(bare)).replace(" = ", "=") == arguments


def test_help_explains_every_option() -> None:
    for row in _table.TABLE:
        signature = _signatures.signature_of(row, DECLARATIONS[row.operator])
        said = inspect.getdoc(getattr(ops, signature.name)) or ""
        for argument in signature.arguments:
            assert not argument.option or argument.name in said, f"{signature.name}: {argument.name}"
    assert "ceil_mode: whether output sizes round up." in (ops.max_pool_nd.__doc__ or "")


def test_fixed_options_are_declared() -> None:
    for row in _table.TABLE:
        known = {option["name"] for option in DECLARATIONS[row.operator]["options"]}
        assert set(row.fixed) <= known, row.signature


@pytest.mark.parametrize("argument", ["no_such_option", "alpha: no_such_option"])
def test_rows_with_other_options_are_errors(argument: str) -> None:
    row = _table.row(f"relu(input, *, {argument})", "Activation", "max(x, 0).")
    with pytest.raises(LookupError, match=r"relu\(\) of Activation: no option no_such_option"):
        _signatures.signature_of(row, DECLARATIONS["Activation"])


def test_stub_is_that_of_the_table() -> None:
    stub: Any = pathlib.Path(_declared.__file__).with_suffix(".pyi")
    if not stub.exists():
        pytest.skip("a sanitized build has no stubs")
    assert stub.read_text(encoding="utf-8") == _signatures.stub_module(_table.TABLE, DECLARATIONS)
