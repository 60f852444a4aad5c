# SPDX-License-Identifier: MIT
"""Formatting and lint of the Python sources, by the rules in pyproject.toml."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("ruff", reason="ruff is not installed (scripts/install_deps.sh python)")

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORMATTED = ["python", "tests/python", "examples/python", "benchmarks/python.py", "torch"]
CHECKED = [*FORMATTED, "scripts", "benchmarks"]


def ruff(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ruff", *map(str, arguments), "--no-cache"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def present(names: list[str]) -> list[str]:
    return [name for name in names if (ROOT / name).exists()]


def test_sources_are_formatted() -> None:
    done = ruff("format", "--check", *present(FORMATTED))
    assert done.returncode == 0, "'ruff format' mends this:\n" + done.stdout + done.stderr


def test_sources_have_no_findings() -> None:
    done = ruff("check", *present(CHECKED))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("check", '"""A module."""\nimport os\n'),
        ("check", "def public():\n    return 1\n"),
        ("format", '"""A module."""\n\nx = {  "a":1 }\n'),
    ],
)
def test_checks_can_fail(command: str, text: str) -> None:
    options = ["--check"] if command == "format" else []
    rules = ["--config", ROOT / "pyproject.toml", "--stdin-filename", ROOT / "python/dlprim/made_up.py", "-"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", command, *options, "--no-cache", *map(str, rules)],
        input=text,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr
