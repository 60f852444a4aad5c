# SPDX-License-Identifier: MIT
"""Tensor: from and to numpy, views, and what bad input gets."""

from __future__ import annotations

import builtins
import copy
import pickle
import sys
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import Tensor

DTYPES = ["float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool"]


def ramp(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


# From and to numpy.


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_to_the_device_and_back(context: dlprim.Context, dtype: str) -> None:
    array = ramp(2, 3, 4, dtype=dtype)
    tensor = Tensor(context, array)
    assert (tensor.dtype, tensor.shape, tensor.ndim, tensor.size) == (dtype, (2, 3, 4), 3, 24)
    assert (tensor.strides, tensor.nbytes, tensor.contiguous) == ((12, 4, 1), array.nbytes, True)
    back = tensor.numpy()
    assert back.dtype == array.dtype
    assert back.flags.writeable
    np.testing.assert_array_equal(back, array)
    np.testing.assert_array_equal(np.asarray(tensor), array)


def test_bfloat16_is_that_of_ml_dtypes(context: dlprim.Context) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = ramp(3, 4).astype(ml_dtypes.bfloat16)
    tensor = Tensor(context, array)
    assert tensor.dtype == "bfloat16"
    assert tensor.numpy().dtype == ml_dtypes.bfloat16
    assert np.asarray(tensor).dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(tensor.numpy(), array)
    assert Tensor(context, [0.1], dtype=ml_dtypes.bfloat16).item() == float(ml_dtypes.bfloat16(0.1))
    out = np.empty((3, 4), ml_dtypes.bfloat16)
    tensor.copy_to(out)
    np.testing.assert_array_equal(out, array)


def test_bfloat16_without_ml_dtypes_is_its_bits(context: dlprim.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # importing it fails
    tensor = Tensor(context, [1.0, -2.0], dtype="bfloat16")
    bits = tensor.numpy()
    assert bits.dtype == np.uint16
    assert bits.tolist() == [0x3F80, 0xC000]
    assert tensor.tolist() == [1.0, -2.0]
    assert Tensor(context, bits, dtype="bfloat16").tolist() == [1.0, -2.0]
    assert "bfloat16" in repr(tensor)
    assert "-2." in repr(tensor)


def test_what_python_has_becomes_tensors(context: dlprim.Context) -> None:
    assert Tensor(context, 1.5).dtype == "float32"
    assert Tensor(context, [[1.5, 2], [3, 4]]).dtype == "float32"
    assert Tensor(context, 3).dtype == "int64"
    assert Tensor(context, (1, 2)).dtype == "int64"
    assert Tensor(context, [True, False]).dtype == "bool"
    assert Tensor(context, np.float64(1)).dtype == "float64"
    assert Tensor(context, [[1, 2], [3, 4]], dtype="half").tolist() == [[1, 2], [3, 4]]
    assert Tensor(context, range(3), dtype=np.int8).dtype == "int8"
    assert Tensor(context, 1.5).shape == ()
    other = Tensor(context, [1.0, 2.0])
    assert Tensor(context, other).tolist() == [1, 2]


def test_values_are_converted_to_the_dtype(context: dlprim.Context) -> None:
    values = np.array([-1.7, 300.2, np.nan])
    assert Tensor(context, values, dtype="int8").tolist() == [-1, 127, 0]
    assert Tensor(context, values, dtype="bool").tolist() == [True, True, True]
    assert Tensor(context, [2**53 + 1], dtype="int64").item() == 2**53 + 1


@pytest.mark.parametrize(
    "layout",
    [
        pytest.param(lambda a: a[::-1], id="negative strides"),
        pytest.param(lambda a: a[:, ::-2], id="negative steps"),
        pytest.param(lambda a: a.T, id="transposed"),
        pytest.param(lambda a: a[:, 1:3], id="gaps"),
        pytest.param(lambda a: np.asfortranarray(a), id="column-major"),
        pytest.param(lambda a: a.astype(">f4"), id="big-endian"),
        pytest.param(lambda a: a.astype("<f4"), id="little-endian"),
        pytest.param(lambda a: np.broadcast_to(a[0], (3, 5)), id="broadcast"),
        pytest.param(lambda a: a[:0], id="empty"),
        pytest.param(lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view("f4"), id="unaligned, read-only"),
    ],
)
def test_any_layout_of_an_array_is_copied(context: dlprim.Context, layout: Any) -> None:
    array = layout(ramp(4, 5))
    np.testing.assert_array_equal(Tensor(context, array).numpy(), array)
    tensor = Tensor.zeros(context, array.shape)
    tensor.copy_from(array)
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_empty_zeros_and_full(context: dlprim.Context) -> None:
    assert Tensor.empty(context, 5).shape == (5,)
    assert Tensor.empty(context, [2, 3], dtype="int8").dtype == "int8"
    assert Tensor.empty(context, np.array([2, 3])).shape == (2, 3)
    assert Tensor.zeros(context, (2, 2), "int32").tolist() == [[0, 0], [0, 0]]
    assert Tensor.full(context, 3, 0.5).tolist() == [0.5, 0.5, 0.5]
    assert Tensor.full(context, (), 2**62 + 1, "int64").item() == 2**62 + 1
    assert Tensor.zeros(context, (0, 3)).numpy().shape == (0, 3)


def test_copies_into_what_is_there(context: dlprim.Context) -> None:
    tensor = Tensor.zeros(context, (2, 3))
    tensor.copy_from([[1, 2, 3], [4, 5, 6]])
    tensor[1].copy_from(Tensor(context, [7, 8, 9]))
    array = np.zeros((2, 3), "float32")
    tensor.copy_to(array)
    assert array.tolist() == [[1, 2, 3], [7, 8, 9]]
    tensor.T.copy_to(fitting := np.zeros((3, 2), "float32"))
    assert fitting.tolist() == [[1, 7], [2, 8], [3, 9]]


def test_copies_between_tensors(context: dlprim.Context) -> None:
    source = Tensor(context, ramp(3, 4))
    tensor = Tensor.zeros(context, (3, 4), "int32")
    tensor.copy_from(source)  # converted
    assert tensor.tolist() == source.tolist()
    square = Tensor(context, ramp(3, 3))
    square.copy_from(square.T)  # onto itself
    np.testing.assert_array_equal(square.numpy(), ramp(3, 3).T)
    line = Tensor(context, ramp(6))
    line[1:] = line[:-1]  # overlapping
    assert line.tolist() == [0, 0, 1, 2, 3, 4]
    line[::2] = line[3:]  # into a view with gaps
    assert line.tolist() == [2, 0, 3, 2, 4, 4]
    other = dlprim.Context("cpu")
    line.copy_from(Tensor(other, ramp(6)))
    assert line.tolist() == ramp(6).tolist()


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 2), "f4"),
        np.zeros((2, 3), "f8"),
        np.zeros((2, 3), ">f4"),
        np.zeros((3, 2), "f4").T,
        np.broadcast_to(np.float32(0), (2, 3)),
    ],
    ids=["shape", "dtype", "byte order", "strides", "read-only"],
)
def test_what_takes_a_copy_must_fit(context: dlprim.Context, array: Any) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match=r"float32 and shape \[2, 3\] must be .* writable$"):
        Tensor.zeros(context, (2, 3)).copy_to(array)
    with pytest.raises(TypeError, match="is a numpy array, not a list$"):
        Tensor.zeros(context, (2, 3)).copy_to([0])  # type: ignore[arg-type]


def test_numbers_out_of_tensors(context: dlprim.Context) -> None:
    assert Tensor(context, 2.5).item() == 2.5
    assert Tensor(context, [[7]]).item() == 7
    assert Tensor(context, True).item() is True
    assert float(Tensor(context, 2.5)) == 2.5
    assert int(Tensor(context, 7)) == 7
    assert [10, 20, 30][Tensor(context, 1)] == 20
    assert not Tensor(context, [0.0])
    assert f"{Tensor(context, 2.5):.2f}" == "2.50"
    assert Tensor(context, np.array([2**40 + 1])).item() == 2**40 + 1
    assert Tensor(context, [[1, 2]]).tolist() == [[1, 2]]
    with pytest.raises(ValueError, match=r"only a tensor of one element is a number, not one of shape \[2\]"):
        bool(Tensor(context, [1, 2]))
    with pytest.raises(TypeError, match="a tensor of floats is no index"):
        [10][Tensor(context, 0.0)]


# Views.


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        (1, 2),
        (0, -1, 3),
        slice(1, 2),
        (slice(None), 1),
        (Ellipsis, 2),
        (0, Ellipsis, slice(1, 3)),
        (slice(None), slice(-2, None), slice(None, -1)),
        (slice(None), slice(None), slice(0, 4, 2)),
        (slice(0, 9, 5), None, slice(1, 1)),
        (None, 1, Ellipsis, None),
        (),
        Ellipsis,
        np.int64(1),
        (slice(None, None, 7),),
    ],
)
def test_indexing_is_numpys(context: dlprim.Context, index: Any) -> None:
    array = ramp(2, 3, 4)
    view = Tensor(context, array)[index]
    assert view.shape == array[index].shape
    np.testing.assert_array_equal(view.numpy(), array[index])
    np.testing.assert_array_equal((view + 1).numpy(), array[index] + 1)


def test_views_share_memory(context: dlprim.Context) -> None:
    tensor = Tensor(context, ramp(4, 6))
    expected = ramp(4, 6)
    tensor[1:3, ::2].fill(-1)
    expected[1:3, ::2] = -1
    tensor.T[0].copy_from([10, 20, 30, 40])
    expected.T[0] = [10, 20, 30, 40]
    tensor.reshape(2, 12)[0, -1:].fill(5)
    expected.reshape(2, 12)[0, -1:] = 5
    tensor[3] = 8
    expected[3] = 8
    tensor[:, 4:] = ramp(4, 2)
    expected[:, 4:] = ramp(4, 2)
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_reshape_and_transpose(context: dlprim.Context) -> None:
    array = ramp(2, 3, 4)
    tensor = Tensor(context, array)
    assert tensor.reshape(6, 4).shape == tensor.reshape((6, 4)).shape == tensor.reshape([6, -1]).shape == (6, 4)
    assert tensor.reshape(-1).shape == (24,)
    assert tensor.transpose().shape == tensor.T.shape == (4, 3, 2)
    assert Tensor(context, 3.0).reshape(()).reshape(1, 1).shape == (1, 1)
    for permutation in [(0, 2, 1), (1, 2, 0), (-1, 0, 1)]:
        expected = array.transpose(permutation)
        view = tensor.transpose(*permutation)
        assert view.strides == tuple(stride // 4 for stride in expected.strides)
        np.testing.assert_array_equal(view.numpy(), expected)
        np.testing.assert_array_equal(view.to_contiguous().numpy(), expected)
        np.testing.assert_array_equal(view.copy().numpy(), expected)
    np.testing.assert_array_equal(tensor.swapaxes(0, -1).numpy(), array.swapaxes(0, -1))


def test_iteration_goes_over_the_first_dimension(context: dlprim.Context) -> None:
    tensor = Tensor(context, ramp(3, 2))
    assert len(tensor) == 3
    assert [row.tolist() for row in tensor] == [[0, 1], [2, 3], [4, 5]]
    first, *_, last = tensor
    assert (first.tolist(), last.tolist()) == ([0, 1], [4, 5])
    for use in (len, iter):
        with pytest.raises(TypeError, match="a tensor without dimensions has no length"):
            use(Tensor(context, 1.0))  # type: ignore[operator]


def test_a_copy_has_memory_of_its_own(context: dlprim.Context) -> None:
    for shape in [(), (3,), (2, 3), (0, 2)]:
        tensor = Tensor(context, ramp(*shape))
        for make in (Tensor.copy, copy.copy, copy.deepcopy):
            other = make(tensor)
            other.fill(9)
            np.testing.assert_array_equal(tensor.numpy(), ramp(*shape))
    contiguous = Tensor(context, ramp(2, 3))
    contiguous.to_contiguous().fill(1)  # which is the tensor itself
    assert contiguous.tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize("source", [*DTYPES, "bfloat16"])
@pytest.mark.parametrize("target", [*DTYPES, "bfloat16"])
def test_astype(context: dlprim.Context, source: str, target: str) -> None:
    tensor = Tensor(context, [[0, 1, 2], [3, 4, 100]], dtype=source)
    expected = [[bool(value) if "bool" in (source, target) else value for value in row] for row in tensor.tolist()]
    for view, values in [(tensor, expected), (tensor.T, [list(column) for column in zip(*expected)])]:
        converted = view.astype(target)
        assert converted.dtype == target
        assert converted.tolist() == values
        converted.fill(0)
    assert tensor.tolist() == Tensor(context, [[0, 1, 2], [3, 4, 100]], dtype=source).tolist()


# repr.


def test_repr_shows_values(context: dlprim.Context) -> None:
    place = f"device='{context.info.id}')"
    assert repr(Tensor(context, [1.0, 2.5])) == f"Tensor([1. , 2.5], dtype=float32, {place}"
    assert repr(Tensor(context, [[1], [2]])) == f"Tensor([[1],\n        [2]], dtype=int64, {place}"
    assert repr(Tensor(context, True)) == f"Tensor(True, dtype=bool, {place}"
    assert repr(Tensor.zeros(context, (0, 3))) == f"Tensor([], shape=(0, 3), dtype=float32, {place}"


@pytest.mark.parametrize("shape", [(5000,), (100, 200), (3, 70, 50), (2, 2, 600)])
def test_repr_of_large_tensors_is_truncated_as_numpys(context: dlprim.Context, shape: tuple[int, ...]) -> None:
    array = ramp(*shape, dtype="int32")
    text = np.array2string(array, separator=", ", prefix="Tensor(", threshold=100)
    assert repr(Tensor(context, array)).startswith(f"Tensor({text}, shape={shape}, dtype=int32")


def test_repr_of_a_large_tensor_copies_what_it_shows(
    fresh_context: dlprim.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = Tensor.zeros(fresh_context, (1000, 1000, 10))
    copied = []
    real = Tensor.numpy
    monkeypatch.setattr(Tensor, "numpy", lambda self: copied.append(self.nbytes) or real(self))
    assert "..." in repr(tensor)
    assert sum(copied) < 1 << 20


# What bad input gets.


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([{}, None]), "tensors have no element type 'object', but float32, .*an array of numbers has"),
        (object(), "element type 'object'"),
        (None, "element type 'object'"),
        (np.array([1 + 2j]), "element type 'complex128'.*its .real and .imag have one"),
        (np.array(["a"]), "element type 'str"),
        (np.array(["2026-01-01"], "datetime64[D]"), "element type 'datetime64"),
        (np.zeros(2, [("a", "f4")]), "element type 'void"),
        ("text", "element type 'str"),
    ],
)
def test_elements_without_a_dtype_are_refused(context: dlprim.Context, values: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        Tensor(context, values)
    assert "\n" not in str(caught.value)


def test_unknown_dtypes_are_refused(context: dlprim.Context) -> None:
    for dtype in ("float33", "complex64", object, 3.5, [1]):
        with pytest.raises(TypeError, match="tensors have no element type"):
            Tensor.empty(context, 3, dtype=dtype)  # type: ignore[arg-type]


def test_ragged_lists_are_refused(context: dlprim.Context) -> None:
    with pytest.raises(ValueError, match="inhomogeneous"):
        Tensor(context, [[1, 2], [3]])


def test_shapes_must_agree(context: dlprim.Context) -> None:
    tensor = Tensor.zeros(context, (2, 3))
    with pytest.raises(dlprim.InvalidArgumentError, match=r"shape \[2, 3\] cannot take values of shape \[3, 2\]"):
        tensor.copy_from(np.zeros((3, 2)))
    with pytest.raises(dlprim.InvalidArgumentError, match=r"cannot be seen as \[7\]"):
        tensor.reshape(7)
    with pytest.raises(dlprim.InvalidArgumentError, match=r"no size in place of -1 gives \[4, 1\] the 6 elements"):
        tensor.reshape(4, -1)
    with pytest.raises(dlprim.InvalidArgumentError, match="one size of -1 at most"):
        tensor.reshape(-1, -1)
    with pytest.raises(dlprim.InvalidArgumentError, match=r"to_contiguous\(\).reshape"):
        tensor.T.reshape(6)
    with pytest.raises(ValueError, match=r"\[2, 3\].*\[2\]|\[2\].*\[2, 3\]"):
        tensor + np.zeros(2, "float32")


@pytest.mark.parametrize("shape", [-1, (2, -3), (2**31, 2**31)])
def test_impossible_shapes(context: dlprim.Context, shape: Any) -> None:
    with pytest.raises(dlprim.InvalidArgumentError):
        Tensor.empty(context, shape)


@pytest.mark.parametrize("shape", ["34", 2.5, (2, "3"), None, (2, 3.0)])
def test_shapes_are_ints(context: dlprim.Context, shape: Any) -> None:
    with pytest.raises(TypeError, match="^(a shape|a size in a shape) is an int"):
        Tensor.empty(context, shape)


def test_more_memory_than_there_is(context: dlprim.Context) -> None:
    with pytest.raises(dlprim.OutOfMemoryError, match="cannot allocate .* MiB") as caught:
        Tensor.empty(context, (1 << 20, 1 << 20))
    assert isinstance(caught.value, MemoryError)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (2, IndexError, r"index 2 is out of range for dimension 0 of shape \[2, 3\]"),
        ((0, -4), IndexError, "index -4 is out of range for dimension 1"),
        ((0, 0, 0), IndexError, "an index of 3 dimensions is too long"),
        ((Ellipsis, Ellipsis), IndexError, "one Ellipsis"),
        (slice(None, None, -1), ValueError, r"a view cannot run backwards.*tensor\.numpy\(\)\[\.\.\.\] can"),
        (slice(None, None, 0), ValueError, "step cannot be zero"),
        (1.0, TypeError, r"not a float; tensor\.numpy\(\)\[index\] takes arrays"),
        ([0, 1], TypeError, "not a list"),
        (np.array([True, False]), TypeError, "not a numpy.ndarray"),
        (True, TypeError, "not a bool"),
    ],
)
def test_indices_that_make_no_view(context: dlprim.Context, index: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        Tensor.zeros(context, (2, 3))[index]


def test_permutations_are_checked(context: dlprim.Context) -> None:
    tensor = Tensor.zeros(context, (2, 3))
    for dims in [(0,), (0, 0), (0, 2), (0, 1, 2)]:
        with pytest.raises(dlprim.InvalidArgumentError, match="every dimension once"):
            tensor.transpose(*dims)
    with pytest.raises(TypeError, match="a dimension is an int, not a float"):
        tensor.transpose(0.0, 1)  # type: ignore[arg-type]


def test_what_does_not_fit_is_not_filled_in(context: dlprim.Context) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match="a tensor of int8 does not hold 300"):
        Tensor.full(context, 3, 300, "int8")
    with pytest.raises(dlprim.InvalidArgumentError, match="of int64 does not hold an int of more than 64 bits"):
        Tensor.zeros(context, 3, "int64").fill(2**64)
    with pytest.raises(TypeError, match="what fills a tensor is a number, not a str"):
        Tensor.zeros(context, 3).fill("1")  # type: ignore[arg-type]


def test_a_context_is_asked_for() -> None:
    with pytest.raises(TypeError, match="^a context is a dlprim.Context, not a str$"):
        Tensor("cpu", [1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^a context is a dlprim.Context, not None$"):
        Tensor.zeros(None, 3)  # type: ignore[arg-type]


def test_a_tensor_is_not_pickled_and_says_what_to_do(context: dlprim.Context) -> None:
    tensor = Tensor(context, [1, 2])
    with pytest.raises(TypeError, match=r"cannot be pickled.*pickle tensor\.numpy\(\), and make dlprim\.Tensor"):
        pickle.dumps(tensor)
    restored = pickle.loads(pickle.dumps(tensor.numpy()))
    assert Tensor(context, restored).tolist() == [1, 2]


def test_every_builtin_error_is_a_child_of_valueerror_and_its_like() -> None:
    for name in ("ValueError", "KeyError", "MemoryError", "OSError", "NotImplementedError", "ArithmeticError"):
        kind = getattr(builtins, name)
        assert any(
            issubclass(getattr(dlprim, child), kind) and issubclass(getattr(dlprim, child), dlprim.DlprimError)
            for child in dir(dlprim)
            if child.endswith("Error")
        )
