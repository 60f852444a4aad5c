# SPDX-License-Identifier: MIT
"""Context, devices(), and what is known about a device."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import dlprim
import numpy as np
import pytest


def test_devices_lists_the_host_last() -> None:
    devices = dlprim.devices()
    assert devices[-1].id == "cpu"
    assert devices[-1].kind == "host"
    assert devices[-1].platform == "host"
    assert devices[-1].memory_mib > 0
    assert len({info.id for info in devices}) == len(devices)
    assert str(devices[-1]).startswith("cpu (")
    assert repr(devices[-1]).startswith("DeviceInfo(id='cpu', name='")


def test_find_says_what_context_opens(device: str) -> None:
    found = dlprim.find(device)
    context = dlprim.Context(device)
    assert (found.id, found.name, found.driver, found.vendor) == (
        context.info.id,
        context.info.name,
        context.info.driver,
        context.info.vendor,
    )
    assert found.id == device
    assert repr(context).startswith(f"Context('{device}': {found.name}")


def test_the_environment_chooses_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLPRIM_DEVICE", "cpu")
    assert dlprim.find().id == "cpu"
    assert dlprim.Context().info.id == "cpu"


def test_troubles_are_sentences() -> None:
    assert all(isinstance(trouble, str) for trouble in dlprim.troubles())


def test_an_unknown_device_is_not_found() -> None:
    with pytest.raises(dlprim.NotFoundError, match="there is no device 'abacus'; there are: .*cpu = ") as caught:
        dlprim.Context("abacus")
    assert isinstance(caught.value, KeyError)
    assert isinstance(caught.value, dlprim.DlprimError)
    assert not str(caught.value).startswith(("'", '"'))
    with pytest.raises(dlprim.NotFoundError, match="abacus"):
        dlprim.find("abacus")


@pytest.mark.parametrize("wrong", [None, 3, b"cpu", ["cpu"]])
def test_a_device_is_named_by_text(wrong: object) -> None:
    with pytest.raises(TypeError, match="a device is a str such as .*, not (None|an int|a bytes|a list)$"):
        dlprim.Context(wrong)  # type: ignore[arg-type]


def test_traits_describe_the_device(context: dlprim.Context) -> None:
    traits = context.traits
    assert traits.host == (context.info.kind == "host")
    assert traits.compute_units >= 1
    assert traits.global_bytes >= traits.max_alloc_bytes > 0
    assert traits.gflops > 0
    assert traits.gbytes_per_s > 0
    assert isinstance(traits.fp64, bool)


def test_counters_tell_what_was_done(fresh_context: dlprim.Context) -> None:
    before = fresh_context.counters
    assert (before.launches, before.allocated_bytes) == (0, 0)
    tensor = dlprim.Tensor.zeros(fresh_context, (64, 64))
    done = fresh_context.counters - before
    assert done.allocations == 1
    assert done.allocated_bytes >= 64 * 64 * 4
    tensor += 1
    fresh_context.finish()
    del tensor
    assert fresh_context.counters.waits > before.waits
    # The memory of the first tensor is free again: differences may be negative.
    assert (fresh_context.counters - before).launches >= 1
    assert "launches=" in repr(done)


def test_a_difference_of_counters_may_be_negative(fresh_context: dlprim.Context) -> None:
    tensor = dlprim.Tensor.zeros(fresh_context, 1024)
    before = fresh_context.counters
    del tensor
    assert (fresh_context.counters - before).allocated_bytes == -4096


def test_contexts_are_equal_where_they_share_the_device(device: str) -> None:
    first, second = dlprim.Context(device), dlprim.Context(device)
    assert first != second
    tensor = dlprim.Tensor(first, 1)
    assert tensor.context == first
    assert hash(tensor.context) == hash(first)
    assert {first: 1, second: 2}[tensor.context] == 1
    assert copy.copy(first) == first
    assert copy.deepcopy({"a": first})["a"] == first
    assert first != "cpu"


def test_a_context_is_not_pickled_and_says_what_to_do(context: dlprim.Context) -> None:
    with pytest.raises(TypeError, match=rf"cannot be pickled.*dlprim\.Context\('{context.info.id}'\)$"):
        pickle.dumps(context)


def test_memory_outlives_the_context_object(device: str) -> None:
    context = dlprim.Context(device)
    gone = weakref.ref(context)
    tensor = dlprim.Tensor(context, np.arange(6).reshape(2, 3))
    del context
    gc.collect()
    assert gone() is None
    assert (tensor + 1).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert tensor.context.info.id == device


def test_the_log_goes_to_the_receiver(device: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[str, str]] = []
    monkeypatch.setenv("DLPRIM_CACHE", "1")
    monkeypatch.setenv("DLPRIM_CACHE_DIR", "/dev/null/nowhere")  # which the kernels' cache complains about
    dlprim.set_log(lambda level, line: lines.append((level, line)))
    try:
        tensor = dlprim.Tensor.zeros(dlprim.Context(device), 7)
        (tensor * 3 + tensor).numpy()
    finally:
        dlprim.set_log(None)
    assert all(level in ("debug", "info", "warning") for level, _ in lines)
    if device != "cpu":
        assert any("nowhere" in line for _, line in lines), lines
    seen = len(lines)
    dlprim.Tensor.zeros(dlprim.Context(device), 7) * 5
    assert len(lines) == seen


def test_what_a_log_receiver_raises_stops_nothing(opencl: dlprim.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    caught: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda report: caught.append(report.exc_value))
    monkeypatch.setenv("DLPRIM_CACHE", "1")
    monkeypatch.setenv("DLPRIM_CACHE_DIR", "/dev/null/nowhere")

    def fail(level: str, line: str) -> None:
        raise RuntimeError(line)

    dlprim.set_log(fail)
    try:
        tensor = dlprim.Tensor(dlprim.Context(opencl.info.id), [1.0, 2.0])
        assert (tensor * tensor + 4).tolist() == [5, 8]
    finally:
        dlprim.set_log(None)
    assert caught
    assert all(isinstance(error, RuntimeError) for error in caught)


def test_a_log_receiver_is_callable() -> None:
    with pytest.raises(TypeError, match="the receiver of log lines is a callable or None, not an int$"):
        dlprim.set_log(3)  # type: ignore[arg-type]


def test_waits_for_compilers_are_told(
    opencl: dlprim.Context, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLPRIM_CACHE_DIR", str(tmp_path))
    told: list[tuple[str, int, int, float, bool]] = []
    dlprim.set_compile_wait(lambda *wait: told.append(wait))
    try:
        tensor = dlprim.Tensor(dlprim.Context(opencl.info.id), [1.0, 2.0])
        assert (tensor * 3 - tensor).tolist() == [2, 4]
    finally:
        dlprim.set_compile_wait(None)
    assert told[0][0].startswith("compiling kernels: ")
    assert told[-1][4]
    assert all(0 <= done <= total for _, done, total, _, _ in told)


def test_a_receiver_of_waits_can_end_one(
    opencl: dlprim.Context, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLPRIM_CACHE_DIR", str(tmp_path))

    def refuse(text: str, done: int, total: int, seconds: float, ended: bool) -> None:
        if not ended:
            raise RuntimeError("no more waiting")

    tensor = dlprim.Tensor(dlprim.Context(opencl.info.id), [1.0, 2.0])
    dlprim.set_compile_wait(refuse)
    try:
        with pytest.raises(RuntimeError, match="no more waiting"):
            tensor * 7 - tensor
    finally:
        dlprim.set_compile_wait(None)
    assert (tensor * 7 - tensor).tolist() == [6, 12]


def test_a_receiver_of_waits_is_callable() -> None:
    with pytest.raises(TypeError, match="the receiver of waits for compilers is a callable or None, not an int$"):
        dlprim.set_compile_wait(3)  # type: ignore[arg-type]
