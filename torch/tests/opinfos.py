# SPDX-License-Identifier: MIT
"""The list opinfos.txt: what "ocl" does with each OpInfo of PyTorch.

A line is `NAME: STATE`, and with `+` before the name the OpInfo belongs to the quick part; `++`: in all types. States:

- served: right in everything that test_opinfos.py compares, and nothing runs on the CPU;
- falls back: right, and these kernels run on the CPU;
- differs: wrong, or an error, and why.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).with_name("opinfos.txt")
# What tells nothing about a device.
LEFT_OUT = {
    "empty": "its values are not defined",
    "empty_like": "its values are not defined",
    "empty_strided": "its values are not defined",
    "empty_permuted": "its values are not defined",
    "new_empty": "its values are not defined",
    "new_empty_strided": "its values are not defined",
    "resize_": "it stays on the CPU's storage",
    "resize_as_": "it stays on the CPU's storage",
}


class State(NamedTuple):
    """A line of the list."""

    kind: str
    text: str
    quick: bool = False
    narrow: bool = False


UNKNOWN = State("unknown", "")
_found: dict[str, State] = {}


def mode() -> str:
    """"quick", "all" or "update": the environment variable, which the option --opinfos sets."""
    return os.environ.get("DLPRIM_TORCH_OPINFOS", "quick")


def read() -> dict[str, State]:
    """The list, by name."""
    states = {}
    for line in LIST.read_text().splitlines() if LIST.exists() else []:
        marks, name, kind, text = re.fullmatch(r"(\+*)([^:]+): (served|falls back|differs)(?:: (.*))?", line).groups()
        states[name] = State(kind, text or "", bool(marks), marks == "++")
    return states


def found(name: str, kind: str, text: str) -> None:
    """Takes down the state of an OpInfo."""
    _found[name] = State(kind, text.strip().splitlines()[0][:160] if text.strip() else "")


def write() -> None:
    """Writes the list with what was found. Lines of what did not run stay."""
    states = read()
    for name, state in _found.items():
        old = states.get(name, UNKNOWN)
        states[name] = state._replace(quick=old.quick, narrow=old.narrow)
    lines = []
    for name, state in sorted(states.items()):
        marks = "++" if state.narrow else "+" if state.quick else ""
        lines.append(f"{marks}{name}: {state.kind}{': ' if state.text else ''}{state.text}\n")
    if _found:
        LIST.write_text("".join(lines))
