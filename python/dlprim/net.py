# SPDX-License-Identifier: MIT
"""Net: a network on one device, built from JSON."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _core


def _plain(value: Any) -> Any:
    """What json.dumps() does not know: numpy's numbers and arrays."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a network's JSON cannot hold a {type(value).__name__}")


def _text_of(source: Any) -> tuple[str, bool]:
    """The JSON text, or a path and True."""
    if isinstance(source, dict):
        return json.dumps(source, default=_plain, allow_nan=False), False
    if isinstance(source, str) and not source.endswith(".json"):
        return source, False
    return os.fspath(source), True


class Net(_core.Net):
    """A network on one device."""

    def __init__(self, context: _core.Context, source: Any, mode: str = "training", **options: Any) -> None:
        text, is_path = _text_of(source)
        super().__init__(context, text, is_path, dict(options, mode=mode))

    @classmethod
    def from_json(cls, context: _core.Context, source: Any, mode: str = "training", **options: Any) -> Net:
        return cls(context, source, mode, **options)
