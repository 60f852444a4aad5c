# SPDX-License-Identifier: MIT
"""Settings of the process go before environment variables, until they are in use."""

from __future__ import annotations

import multiprocessing
import pathlib

import dlprim
import pytest


def set_everything(folder: pathlib.Path) -> None:
    """For a process of its own: a setting is read once a process."""
    with pytest.raises(dlprim.InvalidArgumentError, match="1 to 1024"):
        dlprim.set_threads(0)
    with pytest.raises(ValueError, match="must not be empty"):
        dlprim.set_tuning_file("")
    dlprim.set_threads(3)
    dlprim.set_cache_directory(None)
    dlprim.set_cache_directory(folder / "cache")  # nothing has read it yet
    dlprim.set_tuning_file(folder / "rows.json")
    assert dlprim.Context("cpu").traits.compute_units == 3
    with pytest.raises(dlprim.InvalidArgumentError, match="before the first Context"):
        dlprim.set_threads(2)


def test_settings_go_before_the_environment(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLPRIM_THREADS", "1")
    monkeypatch.setenv("DLPRIM_CACHE", "0")
    process = multiprocessing.get_context("spawn").Process(target=set_everything, args=(tmp_path,))
    process.start()
    process.join(600)
    assert process.exitcode == 0
