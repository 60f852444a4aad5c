# SPDX-License-Identifier: MIT
"""PyTorch's device "ocl": any OpenCL device, by dlprim.

`import torch` loads this by the entry point torch.backends, so that torch.randn(2, device="ocl") works without another
import. Functions for the device are in torch.ocl. Loading opens no device, prints nothing and never fails: where the
device cannot be used, torch.ocl.is_available() is False and torch.ocl.why() says what would help.
"""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING, Any

from ._version import __version__

__all__ = ["__version__", "export"]

_loaded = False


def _load() -> None:
    """Registers the device with torch, once. The entry point of torch.backends."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    import torch

    from . import _accelerate, _missing, _state, distributed, ocl

    _state.load()
    try:
        torch.utils.rename_privateuse1_backend("ocl")
    except RuntimeError as error:
        _state.disable(f"Another backend has taken torch's place for one: {error}")
        return
    torch._register_device_module("ocl", ocl)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    distributed.register()
    _missing.explain()
    _accelerate.watch()
    atexit.register(ocl._at_exit)


import torch as _torch  # noqa: E402, F401  # last, since it may call _load()

_load()

if TYPE_CHECKING:
    from ._export import export


def __getattr__(name: str) -> Any:
    """Imports `export` when it is first asked for: it needs sympy, and `import torch` loads this."""
    if name != "export":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._export import export

    globals()[name] = export
    return export
