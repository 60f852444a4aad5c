# SPDX-License-Identifier: MIT
"""DLPack and __array__: memory of the host is shared, memory of OpenCL devices is copied."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import Tensor


def ramp() -> np.ndarray[Any, Any]:
    return np.arange(6, dtype="float32").reshape(2, 3)


def test_export_is_memory_of_the_host(context: dlprim.Context) -> None:
    tensor = Tensor(context, ramp())
    assert tensor.__dlpack_device__() == (1, 0)
    for exported in (np.from_dlpack(tensor), np.from_dlpack(tensor[:, 1:].T), np.asarray(tensor.T)):
        assert isinstance(exported, np.ndarray)
    np.testing.assert_array_equal(np.from_dlpack(tensor), ramp())
    np.testing.assert_array_equal(np.from_dlpack(tensor[:, 1:].T), ramp()[:, 1:].T)
    np.testing.assert_array_equal(np.from_dlpack(tensor, copy=True), ramp())


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool"]
)
def test_every_dtype_goes_both_ways(context: dlprim.Context, dtype: str) -> None:
    array = ramp().astype(dtype)
    exported = np.from_dlpack(Tensor(context, array))
    assert exported.dtype == array.dtype
    np.testing.assert_array_equal(exported, array)
    imported = dlprim.from_dlpack(context, array)
    assert imported.dtype == dtype
    np.testing.assert_array_equal(imported.numpy(), array)


def test_pytorch_takes_and_gives(context: dlprim.Context, torch: Any) -> None:
    taken = torch.from_dlpack(Tensor(context, ramp())[1])
    assert taken.tolist() == [3, 4, 5]
    brain = torch.arange(6).reshape(2, 3).to(torch.bfloat16)
    imported = dlprim.from_dlpack(context, brain.T)
    assert (imported.dtype, imported.tolist()) == ("bfloat16", [[0, 3], [1, 4], [2, 5]])
    assert Tensor(context, brain).tolist() == [[0, 1, 2], [3, 4, 5]]  # numpy has no such type
    assert torch.from_dlpack(imported).dtype == torch.bfloat16
    assert Tensor(context, torch.ones(2, 2)).tolist() == [[1, 1], [1, 1]]


def test_the_hosts_memory_is_shared_out(host: dlprim.Context, torch: Any) -> None:
    tensor = Tensor(host, ramp())
    for shared in (np.from_dlpack(tensor), np.asarray(tensor), torch.from_dlpack(tensor)):
        tensor[0, 0] = float(shared[0, 0]) + 10
        assert shared[0, 0] == tensor[0, 0].item()
    column = np.asarray(tensor[:, 1])
    column[:] = 7
    assert tensor[:, 1].tolist() == [7, 7]
    # What an operator has made of the memory before does not count any more.
    weights = np.asarray(square := Tensor(host, np.eye(2, dtype="float32")))
    for factor in (1, 2, 3):
        weights[:] = np.eye(2) * factor
        assert (square @ square).tolist() == [[factor**2, 0], [0, factor**2]]


def test_shared_memory_outlives_its_tensor(host: dlprim.Context) -> None:
    exported = [np.from_dlpack(Tensor(host, ramp())) for _ in range(50)]
    gc.collect()
    for array in exported:
        np.testing.assert_array_equal(array, ramp())


def test_the_hosts_memory_is_shared_in(host: dlprim.Context, torch: Any) -> None:
    array = ramp()
    tensor = dlprim.from_dlpack(host, array)
    array[0, 0] = 20
    assert tensor[0, 0].item() == 20
    tensor[1] = 5
    assert array[1].tolist() == [5, 5, 5]
    for view in (array.T, array[:, ::2], array[:, 1], array[:1]):
        shared = dlprim.from_dlpack(host, view, copy=False)
        view[0] += 1
        np.testing.assert_array_equal(shared.numpy(), view)
        np.testing.assert_array_equal((shared + 1).numpy(), view + 1)
    columns = torch.zeros(2, 3).T
    dlprim.from_dlpack(host, columns, copy=False).fill(3)
    assert columns.tolist() == [[3, 3]] * 3
    apart = dlprim.from_dlpack(host, array, copy=True)
    array[:] = 0
    assert apart[0, 0].item() != 0


class Kept:
    """An array whose end can be watched."""

    def __init__(self) -> None:
        self.array = np.ones((4, 4), "float32")

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_shared_memory_is_kept_by_tensors_on_it(host: dlprim.Context) -> None:
    source = np.ones((4, 4), "float32")
    ended = weakref.ref(source)
    view = dlprim.from_dlpack(host, source)[1:, 2]
    del source
    gc.collect()
    assert ended() is not None
    assert (view * 2).tolist() == [2, 2, 2]
    del view
    gc.collect()
    assert ended() is None
    assert dlprim.from_dlpack(host, Kept()).shape == (4, 4)


def test_an_opencl_devices_memory_is_copied(opencl: dlprim.Context) -> None:
    tensor = Tensor(opencl, ramp())
    array = np.array(np.asarray(tensor))
    tensor.fill(0)
    np.testing.assert_array_equal(array, ramp())
    with pytest.raises(BufferError, match=r"lies on an OpenCL device.*tensor\.numpy\(\)"):
        np.from_dlpack(tensor, copy=False)
    with pytest.raises(ValueError, match=r"lies on an OpenCL device.*tensor\.numpy\(\)"):
        tensor.__array__(copy=False)
    with pytest.raises(BufferError, match="cannot be shared: that takes the host's context"):
        dlprim.from_dlpack(opencl, ramp(), copy=False)


def test_array_knows_numpys_keywords(context: dlprim.Context) -> None:
    tensor = Tensor(context, ramp())
    assert np.asarray(tensor, dtype="float64").dtype == np.float64
    copied = tensor.__array__(copy=True)
    copied[:] = 0
    np.testing.assert_array_equal(tensor.numpy(), ramp())
    with pytest.raises(ValueError):
        tensor.__array__("float64", copy=False)
    assert np.concatenate([tensor, ramp()]).shape == (4, 3)
    assert np.mean(tensor) == 2.5


# What bad input gets.


def test_what_cannot_be_shared_is_copied(host: dlprim.Context) -> None:
    read_only = ramp()
    read_only.flags.writeable = False
    for array in (read_only, ramp()[::-1], ramp()[:, ::-1]):
        with pytest.raises(BufferError, match="cannot be shared.*allow a copy"):
            dlprim.from_dlpack(host, array, copy=False)
        np.testing.assert_array_equal(dlprim.from_dlpack(host, array).numpy(), array)


@pytest.mark.parametrize("array", [3, "text", None, [1.0]])
def test_what_offers_no_dlpack(context: dlprim.Context, array: Any) -> None:
    with pytest.raises(TypeError, match="what from_dlpack takes is an array that offers __dlpack__, not "):
        dlprim.from_dlpack(context, array)


def test_elements_that_tensors_do_not_have(context: dlprim.Context) -> None:
    for array in (np.zeros(2, "complex64"), np.zeros(2, "complex128")):
        with pytest.raises(TypeError, match="tensors have no element type"):
            dlprim.from_dlpack(context, array)


def test_exports_to_other_places(context: dlprim.Context) -> None:
    tensor = Tensor(context, ramp())
    with pytest.raises(BufferError, match=r"exported to the host, device \(1, 0\), alone"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="which has no streams"):
        tensor.__dlpack__(stream=1)
    assert tensor.__dlpack__(dl_device=(1, 0), max_version=(1, 0), copy=None) is not None
