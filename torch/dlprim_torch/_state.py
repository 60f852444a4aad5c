# SPDX-License-Identifier: MIT
"""The extension module, if it can be loaded, and why not."""

from __future__ import annotations

from types import ModuleType

import torch

_C: ModuleType | None = None
_why = "The package dlprim_torch has not been loaded."


def load() -> None:
    """Loads the extension module if it was built for the torch that is there."""
    global _C, _why
    try:
        from ._build import torch_version as built_for
    except ImportError:
        _why = "The package dlprim_torch was not built: 'pip install --no-build-isolation ./torch' does so."
        return
    present = torch.__version__.split("+")[0]
    if present.split(".")[:2] != built_for.split(".")[:2]:
        _why = (
            f"The package dlprim_torch was built for torch {built_for}, but torch {present} is there. Build it again "
            "by 'pip install --no-build-isolation --force-reinstall --no-deps ./torch' in dlprim's repository."
        )
        return
    try:
        from . import _C as module  # type: ignore[attr-defined]
    except ImportError as error:
        _why = f"The package dlprim_torch cannot be loaded: {error}"
        return
    _C, _why = module, ""


def disable(reason: str) -> None:
    """Makes the device unavailable."""
    global _C, _why
    _C, _why = None, reason


def why() -> str:
    """Why there is no device; empty where there is one."""
    return _why if _C is None else str(_C.why())


def module() -> ModuleType:
    """The extension module. Raises RuntimeError where there is none."""
    if _C is None:
        raise RuntimeError(_why)
    return _C
