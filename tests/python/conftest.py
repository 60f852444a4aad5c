# SPDX-License-Identifier: MIT
"""What the tests of the Python module share: devices and contexts to run on.

DLPRIM_TEST_DEVICES names kinds of devices, separated by commas: host, pocl, intel (Intel's OpenCL for processors) and
other (all the rest); without it tests run on every device that there is. Tests that ask for no device run once, with
those of the host. Where none of the named devices is here, pytest says "no such device here" and exits with 77.
"""

from __future__ import annotations

import os
import pathlib
import sys
from typing import Any

import dlprim
import pytest
from small_networks import initialized

ROOT = pathlib.Path(__file__).resolve().parents[2]


def kind_of(info: Any) -> str:
    """host, pocl, intel or other: the words of DLPRIM_TEST_DEVICES, as in tests/support/devices.cpp."""
    if info.id == "cpu":
        return "host"
    if "Portable" in info.platform:
        return "pocl"
    return "intel" if info.platform == "Intel(R) OpenCL" else "other"


def _devices() -> list[Any]:
    """A parameter per device under test: what Context() takes, with its kind as the test's id."""
    wanted = [word for word in os.environ.get("DLPRIM_TEST_DEVICES", "").split(",") if word]
    present = sorted(dlprim.devices(), key=lambda info: info.id != "cpu")
    chosen = [info for info in present if not wanted or kind_of(info) in wanted]
    return [pytest.param(info.id, id=kind_of(info)) for info in chosen]


DEVICES = _devices()
RUNS_HOST = any(param.id == "host" for param in DEVICES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not DEVICES:
        pytest.exit("no such device here", returncode=77)
    if not RUNS_HOST:
        left_out = [item for item in items if {"device", "opencl"}.isdisjoint(getattr(item, "fixturenames", ()))]
        items[:] = [item for item in items if item not in set(left_out)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session", params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """A device's id, which Context() takes; the test runs once for each device."""
    return str(request.param)


@pytest.fixture(scope="session")
def context(device: str) -> dlprim.Context:
    """A context on `device` that all tests share, so that a kernel is compiled once."""
    return dlprim.Context(device)


@pytest.fixture
def fresh_context(device: str) -> dlprim.Context:
    """A context on `device` of this test's own, for tests that look at its counters or drop it."""
    return dlprim.Context(device)


@pytest.fixture
def net(context: dlprim.Context) -> dlprim.Net:
    """The classifier of small_networks.py in training, with first values."""
    return initialized(context)


@pytest.fixture(scope="session")
def host() -> dlprim.Context:
    """A context on the host, for tests that have no reason to run on every device."""
    return dlprim.Context("cpu")


@pytest.fixture(scope="session")
def opencl() -> dlprim.Context:
    """A context on the first OpenCL device under test, for what only these do; skips where there is none."""
    for param in DEVICES:
        if param.id != "host":
            return dlprim.Context(str(param.values[0]))
    pytest.skip("no OpenCL device")


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch as the reference; skips where it is not installed."""
    module = pytest.importorskip("torch", reason="PyTorch is not installed (scripts/install_deps.sh python)")
    module.set_num_threads(2)
    return module


@pytest.fixture(scope="session")
def torchvision(torch: Any) -> Any:
    """torchvision's models; its compiled operators, which no model for pictures' classes needs, may be missing."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return pytest.importorskip("torchvision_net", exc_type=ImportError).torchvision
    finally:
        sys.path.remove(str(ROOT / "scripts"))
