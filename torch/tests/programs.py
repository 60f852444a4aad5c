# SPDX-License-Identifier: MIT
"""Programs that tests run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import torch

# How a program finds no OpenCL device.
NO_DEVICE = {"OCL_ICD_VENDORS": "/nowhere", "OCL_ICD_FILENAMES": ""}


def run(code: str, *options: str, returns: int = 0, **variables: str | None) -> str:
    """What a program prints, errors behind the rest. It ends with the code `returns`. A variable of None is unset."""
    environment = {name: value for name, value in (os.environ | variables).items() if value is not None}
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
    )
    assert done.returncode == returns, done.stdout + done.stderr
    return done.stdout + done.stderr


def busy(products: int) -> torch.Tensor:
    """Enqueues work that lasts longer than the host takes to enqueue it, on slow devices not much longer."""
    x = torch.eye(1024 if torch.ocl.get_device_properties().kind == "gpu" else 320, device="ocl")
    for _ in range(products):
        x = x @ x
    return x


def ever(happens: Callable[[int], bool]) -> bool:
    """Whether something happens at least once while so many products keep the device busy.

    On a crowded machine the device may be done before the host goes on, so that later attempts enqueue more.
    """
    return any(happens(products) for products in (20, 80, 320))
