# SPDX-License-Identifier: MIT
"""Every public name has a docstring and is used by a test."""

from __future__ import annotations

import enum
import importlib
import inspect
import io
import pathlib
import tokenize
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import dlprim
import pytest
from ops_cases import CASES

MODULES = ["dlprim", "dlprim.language", "dlprim.nn", "dlprim.ops", "dlprim.schedules", "dlprim.weights"]
TESTS = pathlib.Path(__file__).parent
# Shown by a program that is not run, or by this very file.
NO_TESTS = {"typed_example.py", "test_names.py"}


def members(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """What a class and its bases in the package define for all to see, under the name of the class that does."""
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] != "dlprim" or issubclass(base, (BaseException, enum.Enum)):
            continue
        for member, value in vars(base).items():
            if not member.startswith("_"):
                yield f"{base.__module__}.{base.__qualname__}.{member}", value


def public_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Each name of __all__, and those of its classes, with what it stands for."""
    for name in module.__all__:
        value = getattr(module, name)
        full = f"{module.__name__}.{name}"
        if name.startswith("__"):
            continue
        yield full, value
        if inspect.isclass(value):
            yield from members(value)


def undocumented(names: Iterator[tuple[str, Any]]) -> list[str]:
    """Names without a docstring of their own; a plain value (a number, a type alias) needs none."""

    def lacks(value: Any) -> bool:
        if isinstance(value, (int, float, str, tuple, dict)) or getattr(value, "__module__", None) == "typing":
            return False
        return not (getattr(value, "__doc__", None) or "").strip()

    return sorted({name for name, value in names if lacks(value)})


def words_of(source: str) -> set[str]:
    """Names that a program uses, or has as a text for getattr(); its comments are none."""
    words = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            words.add(token.string)
        elif token.type == tokenize.STRING:
            words.add(token.string.strip("\"'"))
    return words


def untested(names: Iterator[tuple[str, Any]], words: set[str]) -> list[str]:
    """Names whose last part no test uses."""
    return sorted({name for name, _ in names if name.rpartition(".")[2] not in words})


def words_of_tests() -> set[str]:
    files = [path for path in TESTS.rglob("*.py") if path.name not in NO_TESTS]
    written = set().union(*(words_of(path.read_text(encoding="utf-8")) for path in files))
    return written | {case.name for case in CASES}  # some of which follow from a table


@pytest.mark.parametrize("name", MODULES)
def test_names_are_documented(name: str) -> None:
    without = undocumented(public_names(importlib.import_module(name)))
    assert not without, "no docstring: " + ", ".join(without)


@pytest.mark.parametrize("name", MODULES)
def test_names_are_tested(name: str) -> None:
    without = untested(public_names(importlib.import_module(name)), words_of_tests())
    layers = "; a layer may be an entry of STEPS in test_nn_operators.py" if name == "dlprim.nn" else ""
    assert not without, "no test uses: " + ", ".join(without) + layers


def test_all_is_whole_and_sorted() -> None:
    """What the package shows is in __all__, which completion and `import *` read."""
    for name in MODULES:
        module = importlib.import_module(name)
        assert sorted(set(module.__all__)) == sorted(module.__all__)
        for public in module.__all__:
            assert hasattr(module, public), f"{name}.{public}"
    assert {"Context", "Net", "Solver", "Tensor", "devices"} <= set(dlprim.__all__)


def test_checks_can_fail() -> None:
    class Documented:
        """It is."""

    class Bare:
        pass

    names = [("m.Documented", Documented), ("m.Bare", Bare), ("m.number", 3)]
    assert undocumented(iter(names)) == ["m.Bare"]
    words = words_of('x = m.Documented()  # Bare\ny = "of Bare"\ngetattr(m, "number")\n')
    assert untested(iter(names), words) == ["m.Bare"]
