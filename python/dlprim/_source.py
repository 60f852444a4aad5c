# SPDX-License-Identifier: MIT
"""Converts what users have (a text, a dict or a path) to the JSON that the library takes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Union

JsonSource = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def _plain(value: Any) -> Any:
    """Convert what json.dumps() does not support, numpy's arrays and numbers, to lists and numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"JSON cannot hold a {type(value).__name__}")


def json_source(source: JsonSource, what: str) -> tuple[str, bool]:
    """Return a JSON text and False, or the path of a JSON file and True.

    A str that ends in ".json" or ".onnx" is a path, and so is every os.PathLike. Any other str is JSON itself.
    """
    if isinstance(source, Mapping):
        return json.dumps(dict(source), default=_plain, allow_nan=False), False
    if isinstance(source, str):
        return source, source.endswith((".json", ".onnx"))
    if isinstance(source, os.PathLike):
        return os.fsdecode(source), True
    hint = "; its build(context) makes a net" if hasattr(source, "build") else ""
    raise TypeError(f"{what} is given as a JSON text, a dict or a path, not as a {type(source).__name__}{hint}")
