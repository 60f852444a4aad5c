# SPDX-License-Identifier: MIT
"""Of nets, tensors and errors made and dropped, neither the process nor the device keeps memory."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = pathlib.Path(__file__).parent / "leaking_program.py"
# A net of the program holds 50 KiB and more on the host, so 500 nets of which a part stays show well above this;
# allocators move by less.
KIB = 2048


def grown(*arguments: object) -> tuple[int, int]:
    """KiB by which the process grew and bytes by which the device's buffers did; nanobind must not report leaks."""
    command = [sys.executable, str(PROGRAM), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "nanobind: leaked" not in done.stderr, done.stderr
    kib, device_bytes = done.stdout.split()
    return int(kib), int(device_bytes)


@pytest.mark.parametrize(("kind", "rounds"), [("nets", 1000), ("tensors", 5000), ("errors", 2000)])
def test_process_and_device_do_not_grow(device: str, kind: str, rounds: int) -> None:
    kib, device_bytes = grown(kind, device, rounds)
    print(f"{kind} on {device}: {kib} KiB, {device_bytes} bytes of the device")
    assert device_bytes <= 0
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # AddressSanitizer keeps what was freed for a while
        assert kib < KIB


@pytest.mark.parametrize(("kind", "rounds"), [("nets", 200), ("tensors", 1000)])
def test_growth_is_seen(kind: str, rounds: int) -> None:
    kib, device_bytes = grown(kind, "cpu", rounds, "leak")
    assert kib > KIB
    assert device_bytes > 0


def test_nanobind_reports_an_object_that_outlives_python() -> None:
    """That a leak is reported at all: a build with nanobind's checks off would say nothing."""
    program = "import ctypes, dlprim; ctypes.pythonapi.Py_IncRef(ctypes.py_object(dlprim.Context('cpu')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "nanobind: leaked" in done.stderr
