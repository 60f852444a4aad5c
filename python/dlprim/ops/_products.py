# SPDX-License-Identifier: MIT
"""Matrix products."""

from __future__ import annotations

from .._core import Call, Tensor
from ..errors import InvalidArgumentError
from ._machinery import kept, make_call, operator

Sizes = tuple[int, ...]


@kept
def inner_product_call(outputs: int, bias: bool, activation: str | None, precision: str, engine: str | None) -> Call:
    options = {"outputs": outputs, "bias": bias, "activation": activation}
    return make_call("InnerProduct", options, precision=precision, engine=engine)


def first_size(name: str, weight: Sizes) -> int:
    if len(weight) != 2:
        raise InvalidArgumentError(f"{name}: the weight has shape {list(weight)}; [out, in] is needed")
    return weight[0]


@operator
def inner_product(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    activation: str | None = None,
    out: Tensor | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> Tensor:
    """A dense layer over all dimensions but the batch: activation(flatten(input) weight^T + bias).

    input: [N, ...], which is flattened to [N, I]. weight: [O, I]. bias: [O]. The result is [N, O]. `linear` keeps the
    dimensions in between. activation: the name of a function that is applied to the result.

    Raises InvalidArgumentError (a ValueError) if shapes or dtypes do not fit each other.
    """
    outputs = first_size("inner_product", weight.shape)
    kernel = inner_product_call(outputs, bias is not None, activation, precision, engine)
    return kernel.one((input,), (weight,) if bias is None else (weight, bias), out)


@kept
def matmul_call(
    transpose_a: bool, transpose_b: bool, alpha: float, bias: bool, precision: str, engine: str | None
) -> Call:
    options = {"transpose_a": transpose_a, "transpose_b": transpose_b, "alpha": alpha, "bias": bias}
    return make_call("MatMul", options, precision=precision, engine=engine)


@operator
def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    activation: str | None = None,
    out: Tensor | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> Tensor:
    """input weight^T + bias over the last dimension, as torch.nn.functional.linear.

    input: [..., I]. weight: [O, I]. bias: [O]. The result is [..., O].
    activation: the name of a function that is applied to the result. It requires an input of two dimensions.

    Raises InvalidArgumentError (a ValueError) if shapes or dtypes do not fit each other, or if an activation is given
    for an input with another number of dimensions.
    """
    outputs = first_size("linear", weight.shape)
    params = (weight,) if bias is None else (weight, bias)
    if len(input.shape) == 2:
        return inner_product_call(outputs, bias is not None, activation, precision, engine).one((input,), params, out)
    if activation not in (None, "identity"):
        raise InvalidArgumentError(
            f"linear: activation '{activation}' goes with an input of two dimensions, the input is "
            f"{list(input.shape)}; call dlprim.ops.activation on the result"
        )
    return matmul_call(False, True, 1.0, bias is not None, precision, engine).one((input, *params), (), out)


@operator
def matmul(
    input: Tensor,
    other: Tensor,
    bias: Tensor | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    out: Tensor | None = None,
    precision: str = "fp32",
    engine: str | None = None,
) -> Tensor:
    """The matrix product alpha input other + bias. Leading dimensions broadcast as in numpy.

    input: [..., M, K], or [..., K, M] with transpose_a. other: [..., K, N], or [..., N, K] with transpose_b. bias: [N],
    added to each row. The result is [..., M, N]. Vectors are treated as in numpy.matmul.

    Raises InvalidArgumentError (a ValueError) if shapes or dtypes do not fit each other.
    """
    kernel = matmul_call(transpose_a, transpose_b, alpha, bias is not None, precision, engine)
    return kernel.one((input, other) if bias is None else (input, other, bias), (), out)
