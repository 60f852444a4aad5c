# SPDX-License-Identifier: MIT
"""Operators that move data. Each makes a new tensor; for what needs no copy, Tensor has views."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import DTypeLike

from .._core import Call, Tensor, dtype_name
from ..errors import InvalidArgumentError
from ._machinery import Ints, kept, make_call, operator, tensor_tuple


@kept
def concat_call(dim: int) -> Call:
    return make_call("Concat", {"dim": dim})


@operator
def concat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Concatenates tensors along a dimension (in network JSON its default is 1); a negative dim counts from the end.

    Raises InvalidArgumentError (a ValueError) if dtypes differ, or sizes of another dimension.
    """
    return concat_call(dim).one(tensor_tuple(tensors), (), out)


@kept
def slice_call(dim: int, begin: int, end: int | None) -> Call:
    return make_call("Slice", {"dim": dim, "begin": begin, "end": end})


@operator
def slice(input: Tensor, dim: int, begin: int = 0, end: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """Elements begin to end - 1 of a dimension, as x[begin:end] in Python. Negative numbers count from the end.

    Raises InvalidArgumentError (a ValueError) if the slice is empty or exceeds the dimension.
    """
    if end is not None and end < 0:
        sizes = input.shape
        if not -len(sizes) <= dim < len(sizes):
            raise InvalidArgumentError(f"slice: dim {dim} is not a dimension of input {list(sizes)}")
        end += sizes[dim]
        if end < 0:
            raise InvalidArgumentError(f"slice: end is {-end} before the first element of dimension {dim}")
    return slice_call(dim, begin, end).one((input,), (), out)


@kept
def split_call(parts: int, dim: int) -> Call:
    return make_call("Split", {"parts": parts, "dim": dim})


@operator
def split(input: Tensor, parts: int, dim: int = 0, *, out: Sequence[Tensor | None] | None = None) -> tuple[Tensor, ...]:
    """Cuts a tensor into `parts` equal parts along a dimension, as numpy.split; a negative dim counts from the end.

    Raises InvalidArgumentError (a ValueError) if the parts would not be equal.
    """
    return split_call(parts, dim).all((input,), (), out)


FLATTEN = Call("Flatten")


@operator
def flatten(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """[N, ...] -> [N, product of the rest]. Raises InvalidArgumentError on a scalar."""
    return FLATTEN.one((input,), (), out)


@kept
def reshape_call(dims: Ints) -> Call:
    return make_call("Reshape", {"dims": dims})


@operator
def reshape(input: Tensor, shape: Ints, *, out: Tensor | None = None) -> Tensor:
    """The same elements in the same order, in another shape.

    0 keeps the input's size, and one entry may be -1, which is deduced. Raises InvalidArgumentError (a ValueError) if
    the numbers of elements differ.
    """
    return reshape_call(shape).one((input,), (), out)


@kept
def squeeze_call(dims: Ints | None) -> Call:
    return make_call("Squeeze", {"dims": dims})


@operator
def squeeze(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """Drops dimensions of size 1: all, or those in dim. Dimensions of other sizes stay.

    Raises InvalidArgumentError (a ValueError) if the input has no such dimension.
    """
    return squeeze_call(dim).one((input,), (), out)


@kept
def transpose_call(dims: tuple[int, ...] | None, dim0: int | None, dim1: int | None) -> Call:
    return make_call("Transpose", {"dims": dims, "dim0": dim0, "dim1": dim1})


@operator
def transpose(input: Tensor, dim0: int = -2, dim1: int = -1, *, out: Tensor | None = None) -> Tensor:
    """Exchanges two dimensions, in new memory. Raises InvalidArgumentError if the input lacks one of them."""
    return transpose_call(None, dim0, dim1).one((input,), (), out)


@operator
def permute(input: Tensor, dims: Sequence[int], *, out: Tensor | None = None) -> Tensor:
    """Permutes dimensions, in new memory: dimension i of the result is dimension dims[i] of the input.

    Raises InvalidArgumentError (a ValueError) if dims is not a permutation of the input's dimensions.
    """
    return transpose_call(dims, None, None).one((input,), (), out)


@kept
def flip_call(dims: Ints) -> Call:
    return make_call("Flip", {"dims": dims})


@operator
def flip(input: Tensor, dims: Ints, *, out: Tensor | None = None) -> Tensor:
    """Reverses the order of elements along one or more dimensions, as torch.flip; negative ones count from the end.

    Raises InvalidArgumentError (a ValueError) if the input has no such dimension, or a dimension is given twice.
    """
    return flip_call(dims).one((input,), (), out)


@kept
def pad_call(pads: Sequence[int], mode: str, value: str) -> Call:
    return make_call("Pad", {"pads": pads, "mode": mode, "value": float(value)})


@operator
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float = 0.0, *, out: Tensor | None = None
) -> Tensor:
    """Adds elements around a tensor, as torch.nn.functional.pad.

    pad: the numbers of elements before and after the last dimension, then those of the dimension before it, and so on.
    Negative numbers crop. mode: "constant" (value), "reflect", "replicate" or "circular".

    Raises InvalidArgumentError (a ValueError) if the mode or the input does not allow such numbers.
    """
    # As text, because 0.0 and -0.0 are equal but not the same.
    return pad_call(pad, mode, repr(float(value))).one((input,), (), out)


@kept
def cast_call(dtype: str) -> Call:
    return make_call("Cast", {"dtype": dtype})


@operator
def cast(input: Tensor, dtype: DTypeLike, *, out: Tensor | None = None) -> Tensor:
    """Converts values to another dtype ("float32", numpy.float16, ...) as C does, but floats saturate as integers.

    Raises TypeError if tensors do not have that dtype.
    """
    return cast_call(dtype_name(dtype)).one((input,), (), out)


@kept
def gather_call(mode: str, dim: int, batch_dims: int) -> Call:
    return make_call("Gather", {"mode": mode, "dim": dim, "batch_dims": batch_dims})


@operator
def gather(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements at positions along a dimension, as torch.gather. An index below 0 counts from the end.

    Raises InvalidArgumentError (a ValueError) on other shapes or dtypes, and for an index out of range. On OpenCL
    devices the next call that waits raises the latter, such as numpy() of the result.
    """
    return gather_call("elements", dim, 0).one((input, index), (), out)


@operator
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Rows of a dimension, as torch.index_select; the index may have any shape, which takes the dimension's place.

    Raises InvalidArgumentError (a ValueError) as gather.
    """
    return gather_call("rows", dim, 0).one((input, index), (), out)


@operator
def gather_nd(input: Tensor, index: Tensor, *, batch_dims: int = 0, out: Tensor | None = None) -> Tensor:
    """Slices at the tuples in the index's last dimension, as input[tuple(index.unbind(-1))] in PyTorch.

    batch_dims: leading dimensions that input and index have in common.

    Raises InvalidArgumentError (a ValueError) as gather.
    """
    return gather_call("tuples", 0, batch_dims).one((input, index), (), out)


@kept
def scatter_call(mode: str, dim: int, batch_dims: int, reduction: str) -> Call:
    return make_call("Scatter", {"mode": mode, "dim": dim, "batch_dims": batch_dims, "reduction": reduction})


@operator
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Tensor, *, reduction: str = "none", out: Tensor | None = None
) -> Tensor:
    """A copy of the input with elements of src at positions along a dimension, as torch.scatter.

    reduction: "none" (of several elements for one place the last counts), "add", "mul", "max" or "min". Results are the
    same in every run.

    Raises InvalidArgumentError (a ValueError) as gather.
    """
    return scatter_call("elements", dim, 0, reduction).one((input, index, src), (), out)


@operator
def scatter_nd(
    input: Tensor,
    index: Tensor,
    src: Tensor,
    *,
    batch_dims: int = 0,
    reduction: str = "none",
    out: Tensor | None = None,
) -> Tensor:
    """The same of slices at the tuples in the index's last dimension.

    Raises InvalidArgumentError (a ValueError) as scatter.
    """
    return scatter_call("tuples", 0, batch_dims, reduction).one((input, index, src), (), out)


@kept
def topk_call(k: int, dim: int, largest: bool, ordered: bool) -> Call:
    return make_call("TopK", {"k": k, "dim": dim, "largest": largest, "sorted": ordered})


@operator
def topk(
    input: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Sequence[Tensor | None] | None = None,
) -> tuple[Tensor, ...]:
    """The largest or smallest k elements along a dimension and their positions, as torch.topk.

    They come in order, and of equal elements the one in front comes first.

    Raises InvalidArgumentError (a ValueError) if there are fewer than k.
    """
    return topk_call(k, dim, largest, sorted).all((input,), (), out)


@kept
def sort_call(dim: int, descending: bool) -> Call:
    return make_call("Sort", {"dim": dim, "descending": descending})


@operator
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, *, out: Sequence[Tensor | None] | None = None
) -> tuple[Tensor, ...]:
    """Sorted elements along a dimension and their positions, as torch.sort with stable=True.

    Raises InvalidArgumentError (a ValueError) if there is no such dimension.
    """
    return sort_call(dim, descending).all((input,), (), out)


@kept
def embedding_call(weight: tuple[int, ...], padding_idx: int | None) -> Call:
    if len(weight) != 2:
        raise InvalidArgumentError(f"embedding: the weight has shape {list(weight)}; [rows, features] is needed")
    return make_call("Embedding", {"num_embeddings": weight[0], "embedding_dim": weight[1], "padding_idx": padding_idx})


@operator
def embedding(input: Tensor, weight: Tensor, *, padding_idx: int | None = None, out: Tensor | None = None) -> Tensor:
    """Looks up rows of a table, as torch.nn.functional.embedding.

    input: indices of rows, of an integer dtype and any shape [...]. weight: [rows, features]. The result is
    [..., features]. padding_idx: a row that gets no gradient; negative numbers count from the last row.

    Raises InvalidArgumentError (a ValueError) as gather. An index below 0 is out of range, too.
    """
    return embedding_call(weight.shape, padding_idx).one((input,), (weight,), out)
