#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs ONNX's node tests and compares what became of each with a list (tests/onnx/conformance.txt).

usage: conformance_list_test.py RUNNER DATA DEVICE [--renew]

RUNNER is dlprim_onnx_conformance, DATA the folder of the cases. A case that is worse or better than the list fails the
test; --renew writes the list. Exit code 77: there are no cases here.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import tempfile

LIST = pathlib.Path(__file__).with_name("conformance.txt")
HEAD = """\
# What becomes of ONNX's node tests (Debian's libonnx-testdata 1.12) on the host: a case, its state, and why it does not
# pass. tests/onnx/conformance_list_test.py compares and renews.
"""


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


def read_list() -> dict[str, tuple[str, str]]:
    listed = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, state, *reason = line.split(" ", 2)
            listed[name] = (state, reason[0] if reason else "")
    return listed


def write_list(cases: dict[str, tuple[str, str]]) -> None:
    lines = [" ".join((name, *(part for part in case if part))) for name, case in sorted(cases.items())]
    LIST.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


def changes(listed: dict[str, tuple[str, str]], found: dict[str, tuple[str, str]]) -> list[str]:
    """A line for each case whose state is not that of the list."""
    lines = []
    for name in sorted(listed.keys() | found.keys()):
        was, now = listed.get(name, ("not listed", "")), found.get(name, ("not there", ""))
        if was[0] != now[0]:
            lines.append(f"{name}: {now[0]}, in the list {was[0]}" + (f" ({now[1]})" if now[1] else ""))
    return lines


def main() -> int:
    runner, data, device, *options = sys.argv[1:]
    if not pathlib.Path(data).is_dir():
        print(f"'{data}' is not there: install libonnx-testdata")
        return 77
    found = run_cases(runner, data, device)
    if re.search("reads no ONNX models", " ".join(reason for _, reason in found.values())):
        print("this build reads no ONNX models")
        return 77
    if options == ["--renew"]:
        write_list(found)
        return 0
    wrong = changes(read_list(), found)
    if not wrong:
        print(f"all {len(found)} cases are as listed")
        return 0
    print("\n".join(wrong))
    print(
        f"{len(wrong)} cases are not as '{LIST}' says. If that is right, renew the list: "
        f"python3 {__file__} {runner} {data} cpu --renew"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
