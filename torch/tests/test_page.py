# SPDX-License-Identifier: MIT
"""The program of docs/torch.md does what the page says."""

from __future__ import annotations

import pathlib
import re

from programs import run


def test_first_program() -> None:
    """It learns which points lie in a circle."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/torch.md").read_text()
    program, *_ = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert float(run(program)) < 0.4  # and nothing else is said
