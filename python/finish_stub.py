# SPDX-License-Identifier: MIT
"""Mends what nanobind's stubgen cannot: its caster of paths names os.PathLike without the type that it gives, and
checkers of types are not told that a PlacedNet has a number for each device where any other Net has one.

usage: finish_stub.py FROM.pyi TO.pyi
"""

import pathlib
import re
import sys

source, target = (pathlib.Path(name) for name in sys.argv[1:])
text = source.read_text(encoding="utf-8")
peaks = "def planned_peak_bytes(self) -> dict[str, int]:"
text = text.replace(peaks, f"{peaks}  # type: ignore[override]")
target.write_text(re.sub(r"\bos\.PathLike\b(?!\[)", "os.PathLike[str]", text), encoding="utf-8")
