# SPDX-License-Identifier: MIT
"""The program of docs/torch.md does what the page says."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys


def test_first_program() -> None:
    """It learns which points lie in a circle."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/torch.md").read_text()
    program, *_ = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert float(done.stdout) < 0.4
