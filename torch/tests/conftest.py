# SPDX-License-Identifier: MIT
"""Every test runs on ocl:0, and a kernel that runs on the CPU is an error unless the test allows it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from ranks import Ranks

from dlprim_torch import _state

MODES = ("quick", "all", "update", "add")


@pytest.fixture(autouse=True)
def no_fallback(request: pytest.FixtureRequest) -> Iterator[None]:
    """Makes a fallback an error; the marker `fallback` allows it.

    Without a device tests are skipped, but a module that does not load is a failure.
    """
    if not torch.ocl.is_available():
        (pytest.fail if _state._C is None else pytest.skip)(torch.ocl.why())
    torch.ocl.set_fallback_mode("" if request.node.get_closest_marker("fallback") else "error")
    yield
    torch.ocl.set_fallback_mode("")


@pytest.fixture(autouse=True)
def same_numbers(no_fallback: None) -> None:
    """Gives every test the same random numbers in each run, so that rounding passes or fails it always."""
    torch.manual_seed(0)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ranks]:
    """Two ranks, which most tests share."""
    with Ranks(tmp_path_factory.mktemp("ranks")) as group:
        yield group


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares how much of PyTorch's OpInfos runs."""
    parser.addoption("--opinfos", choices=MODES, default="quick", help="what test_opinfos.py runs")


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marker."""
    os.environ["DLPRIM_TORCH_OPINFOS"] = config.getoption("--opinfos")
    config.addinivalue_line("markers", "fallback: operators without a kernel may run on the CPU")
