# SPDX-License-Identifier: MIT
"""Functions and layers that are made of operators' declarations: arguments, help, and the stubs of the build."""

from __future__ import annotations

import inspect
import json
import pathlib
from typing import Any

import dlprim
import pytest
from dlprim import nn, ops
from dlprim._core import operator_declarations
from dlprim._operators import signatures, table

DECLARATIONS = json.loads(operator_declarations())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("relu", "(input, *, out=None)"),
        ("softmax", "(input, dim=1, *, out=None, engine=None)"),
        ("topk", "(input, k, dim=-1, largest=True, sorted=True, *, out=None)"),
        ("gather", "(input, dim, index, *, out=None)"),
        ("threshold", "(input, threshold, value, *, out=None)"),
        ("softplus", "(input, beta=1.0, threshold=20.0, *, out=None)"),
        ("dropout", "(input, p=0.5, *, training=True, seed=1, step=0, stream=None, out=None)"),
        ("max_pool2d", "(input, kernel_size, stride=None, padding=0, *, ceil_mode=False, out=None, engine=None)"),
    ],
)
def test_arguments(name: str, arguments: str) -> None:
    """Written by hand here: names and order are PyTorch's, defaults the operator's or those of table.py."""
    assert bare(getattr(ops, name)) == arguments


def bare(function: Any) -> str:
    """The arguments of a function, without their types."""
    given = inspect.signature(function).parameters.values()
    return str(inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in given]))


@pytest.mark.parametrize(
    ("made", "arguments"),
    [
        (nn.relu, "(x, **common)"),
        (nn.topk, "(x, k, dim=-1, largest=True, sorted=True, **common)"),
        (nn.matmul_add, "(a, b, addend, *, transpose_a=False, transpose_b=False, alpha=1.0, beta=1.0, **common)"),
        (nn.max_pool2d, "(x, kernel_size, stride=None, padding=0, *, ceil_mode=False, **common)"),
        (nn.MaxPool2d, "(kernel_size, stride=None, padding=0, *, ceil_mode=False, **common)"),
        (nn.PReLU, "(num_parameters=1, init=0.25, **common)"),
        (nn.Linear, "(features, *more, bias=True, activation='identity', features_in=None, **common)"),
    ],
)
def test_arguments_of_symbols_and_layers(made: Any, arguments: str) -> None:
    function = made.__init__ if inspect.isclass(made) else made
    assert bare(function).replace("(self, ", "(") == arguments


def test_options_that_are_the_default_are_left_out_of_networks() -> None:
    x = nn.Input("x", (2, 4, 6, 6))
    layers = [nn.PReLU(1), nn.PReLU(4, 0.5), nn.MaxPool2d(2, padding=0), nn.Conv2d(4, 3, padding="same")]
    for layer in layers:
        layer(x)
    assert [layer.options for layer in layers] == [
        {},
        {"num_parameters": 4, "init": 0.5},
        {"mode": "max", "kernel": 2, "stride": 2},
        {"channels_out": 4, "kernel": 3, "pad": [1, 1, 1, 1]},
    ]


def test_help_explains_every_option() -> None:
    made = [(ops, signatures.name_of(row), row) for row in table.OF_OPS]
    made += [(nn, signatures.name_of(row), row) for row in table.OF_NN]
    made += [(nn, name, row) for name, row in table.LAYERS]
    for module, name, row in made:
        said = inspect.getdoc(getattr(module, name)) or ""
        for argument in signatures.signature_of(row, DECLARATIONS[row.operator]).options:
            assert argument.name in said, f"{name}: {argument.name}"
    assert "ceil_mode: whether output sizes round up." in (ops.max_pool_nd.__doc__ or "")


def test_fixed_options_are_declared() -> None:
    for row in [*table.FUNCTIONS, *table.OWN_LAYERS]:
        known = {option["name"] for option in DECLARATIONS[row.operator]["options"]}
        assert set(row.fixed) <= known, row.signature


@pytest.mark.parametrize("argument", ["no_such_option", "alpha: no_such_option"])
def test_rows_with_other_options_are_errors(argument: str) -> None:
    row = table.row(f"relu(input, *, {argument})", "Activation", "max(x, 0).")
    with pytest.raises(LookupError, match=r"relu\(\) of Activation: no option no_such_option"):
        signatures.signature_of(row, DECLARATIONS["Activation"])


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("ops", signatures.eager_stub(table.OF_OPS, DECLARATIONS)),
        ("nn", signatures.symbolic_stub(table.OF_NN, table.LAYERS, DECLARATIONS)),
    ],
)
def test_stubs_are_those_of_the_table(module: str, text: str) -> None:
    stub = pathlib.Path(dlprim.__file__).parent / module / "_declared.pyi"
    if not stub.exists():
        pytest.skip("a sanitized build has no stubs")
    assert stub.read_text(encoding="utf-8") == text
