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
    "randn": "its values are random",
    "randint": "its values are random",
    "nn.functional.alpha_dropout": "its values are random",
    "to_sparse": "there are no sparse tensors",
    "resize_": "it stays on the CPU's storage",
    "resize_as_": "it stays on the CPU's storage",
}

# Those whose results are no tensors.
NO_OUT = {"equal"}
# Those that want their indices on the CPU, whatever the device.
INDICES_ON_HOST = {"tensor_split"}
# Those that are compared in float alone.
FLOAT_ALONE = {
    "polygamma.polygamma_n_0": "at poles, which 16 bits hit, the CPU's value is finite",
    "special.polygamma.special_polygamma_n_0": "at poles, which 16 bits hit, the CPU's value is finite",
}


class State(NamedTuple):
    """A line of the list."""

    kind: str
    text: str
    quick: bool = False
    narrow: bool = False


UNKNOWN = State("unknown", "")


def mode() -> str:
    """ "quick", "all", "update" or "add": the environment variable, which the option --opinfos sets."""
    return os.environ.get("DLPRIM_TORCH_OPINFOS", "quick")


def updates() -> bool:
    """Whether the list is written: anew, or for what it lacks."""
    return mode() in ("update", "add")


def read() -> dict[str, State]:
    """The list, by name."""
    states = {}
    for line in LIST.read_text().splitlines() if LIST.exists() else []:
        marks, name, kind, text = re.fullmatch(r"(\+*)([^:]+): (served|falls back|differs)(?:: (.*))?", line).groups()
        states[name] = State(kind, text or "", bool(marks), marks == "++")
    return states


def found(name: str, kind: str, text: str) -> None:
    """Writes the state of an OpInfo into the list. At once, since what comes next may end the process."""
    states = read()
    old = states.get(name, UNKNOWN)
    states[name] = State(kind, text.strip().splitlines()[0][:160] if text.strip() else "", old.quick, old.narrow)
    lines = []
    for each, state in sorted(states.items()):
        marks = "++" if state.narrow else "+" if state.quick else ""
        lines.append(f"{marks}{each}: {state.kind}{': ' if state.text else ''}{state.text}\n")
    LIST.write_text("".join(lines))
