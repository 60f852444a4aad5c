# SPDX-License-Identifier: MIT
"""Hugging Face's Accelerate, and the Trainer of transformers by it, choose the device "ocl".

Accelerate knows a fixed list of accelerators and takes any other device from the environment variable
ACCELERATE_TORCH_DEVICE. When a program imports Accelerate, and PyTorch has no other accelerator, the variable gets its
default here, in time for the program to set another. Accelerate(cpu=True) still means the CPU.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch

VARIABLE = "ACCELERATE_TORCH_DEVICE"
WATCHED = "accelerate.state"


def watch() -> None:
    """Waits for the import of Accelerate."""
    if WATCHED in sys.modules:
        _prepare(sys.modules[WATCHED])
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds nothing by itself: it has the others find the module, and is told when it was loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != WATCHED:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(Loader):
    """Another loader, behind which the module is prepared."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _prepare(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _prepare(module: ModuleType) -> None:
    """Sets the default, and makes Accelerate's choice of a device keep to what the program says."""
    if torch._utils._get_available_device_type() == "ocl":  # type: ignore[no-untyped-call]
        os.environ.setdefault(VARIABLE, "ocl")
    state = getattr(module, "PartialState", None)
    if state is None or not hasattr(state, "set_device"):
        return
    choose = state.set_device

    def set_device(self: Any) -> None:
        if self._cpu and self.device is not None and self.device.type == "ocl":
            self.device = None
        choose(self)
        _say(self)

    state.set_device = set_device


def _say(state: Any) -> None:
    """Warns of what a program that has `ocl` in mind would not see."""
    alone = state.num_processes == 1
    if state.device.type == "ocl" and alone and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        warnings.warn(
            'Accelerate has no distributed training on the device "ocl": each process trains by itself; use '
            'torch.distributed.init_process_group("ocl") and DistributedDataParallel.',
            stacklevel=4,
        )
    elif state.device.type not in ("ocl", "cpu") and VARIABLE not in os.environ and torch.ocl.is_available():  # type: ignore[attr-defined]
        warnings.warn(
            f'Accelerate trains on "{state.device}"; {VARIABLE}=ocl in the environment makes it train on "ocl".',
            stacklevel=4,
        )
