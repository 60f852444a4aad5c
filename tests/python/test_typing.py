# SPDX-License-Identifier: MIT
"""The package's types: mypy --strict accepts the package and a program that uses it, and refuses wrong calls."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import dlprim
import pytest

pytest.importorskip("mypy", reason="mypy is not installed (scripts/install_deps.sh python)")

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The folder that holds the package with _core.pyi, which the build makes.
PACKAGE = pathlib.Path(dlprim.__file__).parent
EXAMPLE = ROOT / "tests/python/typed_example.py"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """What mypy knows about numpy, kept between the tests and, with ctest, between runs."""
    build = os.environ.get("DLPRIM_BUILD")
    return pathlib.Path(build) / "mypy_cache" if build else tmp_path_factory.mktemp("mypy")


def mypy(cache: pathlib.Path, *arguments: object) -> str:
    """What mypy says; empty where all is well."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(cache)]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(PACKAGE.parent), "LD_PRELOAD": ""},
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def test_package_is_typed(cache: pathlib.Path) -> None:
    said = mypy(cache, "-p", "dlprim")
    assert not said, "\n" + said


def test_program_that_uses_the_package_is_typed(cache: pathlib.Path) -> None:
    said = mypy(cache, EXAMPLE)
    assert not said, "\n" + said


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("dlprim.Context(3)", "arg-type"),
        ("dlprim.Context('cpu').no_such_method()", "attr-defined"),
        ("x: str = dlprim.Context('cpu').finish()", "func-returns-value"),
        ("dlprim.no_such_name", "attr-defined"),
        ("dlprim.ops.relu(3)", "arg-type"),
        ("dlprim.ops.no_such_name", "attr-defined"),
        ("dlprim.nn.relu(3)", "arg-type"),
        ("dlprim.nn.LeakyReLU('a')", "arg-type"),
        ("dlprim.nn.Conv2d(4, no_such_option=3)", "call-arg"),
    ],
)
def test_wrong_calls_are_refused(cache: pathlib.Path, call: str, error: str) -> None:
    assert f"[{error}]" in mypy(cache, "-c", f"import dlprim\n{call}\n")


def test_no_function_of_the_module_takes_or_returns_just_anything() -> None:
    """stubgen writes what it cannot name as a comment or as Any: signatures need nb::sig there."""
    text = (PACKAGE / "_core.pyi").read_text(encoding="utf-8")
    suspicious = [line.strip() for line in text.splitlines() if "std::" in line or "dlprim::" in line]
    assert suspicious == []
