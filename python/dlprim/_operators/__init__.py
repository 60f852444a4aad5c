# SPDX-License-Identifier: MIT
"""The functions and layers that follow from what operators declare: table.py has a row for each.

dlprim.ops and dlprim.nn make them at import, from source text that signatures.py writes. The build writes their stubs
by the same text without importing the package. So this folder's modules import nothing of it.
"""

from __future__ import annotations

import linecache
from typing import Any


def define(text: str, source: str, scope: dict[str, Any]) -> None:
    """Runs the text of functions or classes. Tracebacks show its lines, and call it `source`."""
    linecache.cache[source] = (len(text), None, text.splitlines(keepends=True), source)
    exec(compile(text, source, "exec"), scope)
