# SPDX-License-Identifier: MIT
"""The library's errors as the exceptions that Python's users expect."""

from __future__ import annotations

import os
import pathlib

import dlprim
import dlprim.errors
import pytest
import small_networks
from example_programs import run_code


@pytest.mark.parametrize(
    ("error", "parent"),
    [
        (dlprim.InvalidArgumentError, ValueError),
        (dlprim.NotFoundError, KeyError),
        (dlprim.OutOfMemoryError, MemoryError),
        (dlprim.DeviceError, RuntimeError),
        (dlprim.BuildError, RuntimeError),
        (dlprim.FileError, OSError),
        (dlprim.MissingFileError, FileNotFoundError),
        (dlprim.FormatError, ValueError),
        (dlprim.UnsupportedError, NotImplementedError),
        (dlprim.NumericError, ArithmeticError),
    ],
)
def test_every_error_is_what_python_calls_it(error: type[dlprim.DlprimError], parent: type[Exception]) -> None:
    assert issubclass(error, parent)
    assert issubclass(error, dlprim.DlprimError)
    assert error.__name__ in dlprim.errors.__all__
    assert str(error("a file 'x' is not there")) == "a file 'x' is not there"
    with pytest.raises(parent):
        raise error("caught by its parent")


def test_all_errors_are_in_the_package() -> None:
    for name in dlprim.errors.__all__:
        assert getattr(dlprim, name) is getattr(dlprim.errors, name)
        assert name in dlprim.__all__


def test_a_child_of_python_raises_each_kind(context: dlprim.Context) -> None:
    with pytest.raises(dlprim.NotFoundError):
        dlprim.Context("abacus")
    with pytest.raises(dlprim.OutOfMemoryError):
        dlprim.Tensor.empty(context, 2**50)
    with pytest.raises(dlprim.InvalidArgumentError):
        dlprim.Tensor.empty(context, -1)


def test_the_import_is_light() -> None:
    heavy = ("torch", "PIL", "matplotlib", "graphviz", "safetensors", "ml_dtypes", "h5py")
    program = f"import dlprim, sys; print([name for name in {heavy} if name in sys.modules])"
    assert run_code(program) == "[]\n"


def test_nothing_is_printed_where_objects_live_until_the_end() -> None:
    program = """
import sys
import dlprim
context = dlprim.Context("cpu")
tensor = dlprim.Tensor(context, [1.0])
dlprim.set_log(print)
sys.kept = [tensor, context]
"""
    assert run_code(program) == ""


def test_texts_that_are_not_utf8(host: dlprim.Context, tmp_path: pathlib.Path) -> None:
    """os.fsdecode() makes lone surrogates of a path's bytes; errors name the path as Python does."""
    net = dlprim.Net(host, small_networks.classifier())
    path = tmp_path / os.fsdecode(b"\x81.h5")
    with pytest.raises(FileNotFoundError) as error:
        net.load_weights(path)
    assert str(path) in str(error.value)
    with pytest.raises(ValueError, match="UTF-8"):
        dlprim.Context("\udc80")
    with pytest.raises(TypeError, match="no element type"):
        dlprim.Tensor.empty(host, 1, "\udc80")
