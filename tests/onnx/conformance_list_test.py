#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ONNX's node tests and compares what became of each with a list.

usage: conformance_list_test.py RUNNER DATA DEVICE [--renew]

RUNNER is dlprim_onnx_conformance. DATA is a folder of cases, whose list is conformance.txt, or "package": the cases of
the installed Python package onnx, of which conformance_package.txt lists those that do not pass. A case that is worse
or better than the list fails the test; --renew writes the list. Exit code 77: there are no cases here, or those of the
package are of another version than the list.
"""

from __future__ import annotations

import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
HEAD = """\
# What becomes of ONNX's node tests (Debian's libonnx-testdata 1.12) on the host: a case, its state, and why it does not
# pass. tests/onnx/conformance_list_test.py compares and renews.
"""
PACKAGE_HEAD = """\
# Which of the {count} node tests of the Python package onnx {version} do not pass on the host: a case, its state, and
# why. tests/onnx/conformance_list_test.py compares and renews.
"""
SKIPPED = 77


def run_cases(runner: str, data: str, device: str) -> dict[str, tuple[str, str]]:
    """State and reason of every case, by name."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder, "cases.json")
        command = [runner, data, "-d", device, "--json", str(result)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not result.exists():
            sys.exit(f"{' '.join(command)} failed: {done.stderr.strip()}")
        cases = json.loads(result.read_text(encoding="utf-8"))["cases"]
    return {case["name"]: (case["state"], " ".join(case["reason"].split())) for case in cases}


def run_package(runner: str, device: str) -> dict[str, tuple[str, str]]:
    """The same of the cases that the installed package carries; scripts/onnx_cases.py writes them."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, HERE.parents[1] / "scripts/onnx_cases.py", folder]
        subprocess.run(command, check=True, capture_output=True)
        return run_cases(runner, folder, device)


def read_list(path: pathlib.Path) -> dict[str, tuple[str, str]]:
    listed = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, state, *reason = line.split(" ", 2)
            listed[name] = (state, reason[0] if reason else "")
    return listed


def write_list(path: pathlib.Path, head: str, cases: dict[str, tuple[str, str]]) -> None:
    lines = [" ".join((name, *(part for part in case if part))) for name, case in sorted(cases.items())]
    path.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def changes(listed: dict[str, tuple[str, str]], found: dict[str, tuple[str, str]]) -> list[str]:
    """A line for each case whose state is not that of the list."""
    lines = []
    for name in sorted(listed.keys() | found.keys()):
        was, now = listed.get(name, ("not listed", "")), found.get(name, ("not there", ""))
        if was[0] != now[0]:
            lines.append(f"{name}: {now[0]}, in the list {was[0]}" + (f" ({now[1]})" if now[1] else ""))
    return lines


def package_version() -> str | None:
    try:
        return importlib.metadata.version("onnx")
    except importlib.metadata.PackageNotFoundError:
        return None


def main() -> int:
    runner, data, device, *options = sys.argv[1:]
    renew = options == ["--renew"]
    head, path = HEAD, HERE / "conformance.txt"
    if data == "package":
        version, path = package_version(), HERE / "conformance_package.txt"
        if version is None:
            print("the Python package onnx is not installed")
            return SKIPPED
        if not renew and f" onnx {version} " not in path.read_text(encoding="utf-8").splitlines()[0]:
            print(f"'{path}' is not of onnx {version}, which is installed")
            return SKIPPED
        cases = run_package(runner, device)
        head = PACKAGE_HEAD.format(count=len(cases), version=version)
        found = {name: case for name, case in cases.items() if case[0] != "passed"}
    elif pathlib.Path(data).is_dir():
        found = cases = run_cases(runner, data, device)
    else:
        print(f"'{data}' is not there: install libonnx-testdata")
        return SKIPPED
    if re.search("reads no ONNX models", " ".join(reason for _, reason in found.values())):
        print("this build reads no ONNX models")
        return SKIPPED
    if renew:
        write_list(path, head, found)
        return 0
    wrong = changes(read_list(path), found)
    if not wrong:
        print(f"all {len(cases)} cases are as listed")
        return 0
    print("\n".join(wrong))
    print(
        f"{len(wrong)} cases are not as '{path}' says. If that is right, renew the list: "
        f"python3 {__file__} {runner} {data} cpu --renew"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
