# SPDX-License-Identifier: MIT
"""The common parts of dlprim.ops: cached calls, messages about arguments, gradients.

A function converts its keywords to a `Call` (an operator's type, its options as JSON text, how to run it). Calls are
cached by the keywords' values, so a second call with the same keywords is a lookup. The last thing that a function does
is to run its Call and return the result. `grad` relies on that: it calls the same function with a `Gradient` in place
of `out`, which makes the Call return gradients.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast

import numpy

from .._arguments import Ints as Ints
from .._arguments import Scale as Scale
from .._arguments import unknown_argument
from .._core import Call, Gradient, Tensor

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

Outs = Union[Tensor, Sequence[Union[Tensor, None]], None]
F = TypeVar("F", bound=Callable[..., object])

#: Number of calls that are cached for each function. A context caches as many of the plans that they run.
MOST_KEPT = 4096
kept = functools.lru_cache(maxsize=MOST_KEPT)


def plain(value: Any) -> Any:
    """Converts an option's value to Python's types for JSON: numpy's numbers and arrays become numbers and lists."""
    if isinstance(value, (numpy.generic, numpy.ndarray)):
        return value.tolist()
    raise TypeError(
        f"an option holds a {type(value).__name__}; numbers, strings, booleans and lists of these are taken"
    )


def options_text(options: Mapping[str, Any]) -> str:
    """Options as JSON. Options that are None are left out."""
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        for number in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise ValueError(f"option {name} is {number}; a finite number is needed")
    return json.dumps(given, default=plain)


def make_call(
    operator_type: str,
    options: Mapping[str, Any],
    *,
    training: bool = False,
    precision: str = "fp32",
    engine: str | None = None,
    engines: Sequence[tuple[str, str]] = (),
) -> Call:
    """A Call of an operator. `call` describes the keywords."""
    for what, given in (("precision", precision), ("engine", engine or "")):
        if not isinstance(given, str):
            raise TypeError(f"{what} is a {type(given).__name__}; a string is needed")
    return Call(operator_type, options_text(options), bool(training), precision, engine or "", list(engines))


def tensor_tuple(given: Tensor | Iterable[Tensor]) -> tuple[Tensor, ...]:
    """A single tensor means a tuple of one."""
    if isinstance(given, Tensor):
        return (given,)
    try:
        return tuple(given)
    except TypeError:
        kind = type(given).__name__
        raise TypeError(f"tensors are given as a dlprim.Tensor or a sequence of them, not a {kind}") from None


def hashable(value: Any) -> Any:
    """Converts a list or an array to a tuple, which can be a key of the cache."""
    items = value.tolist() if isinstance(value, numpy.ndarray) else value
    if not isinstance(items, list):  # an array without dimensions
        return items
    return tuple([hashable(item) if type(item) in UNHASHABLE else item for item in items])


UNHASHABLE = frozenset({list, numpy.ndarray})


def operator(function: F) -> F:
    """Makes a function part of dlprim.ops: lists become tuples, and wrong arguments raise an error of one sentence."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> object:
        for value in kwargs.values():  # most lists are keywords, and checking is cheaper than a failed call
            if type(value) is list:
                return with_tuples(function, args, kwargs)
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            if not str(error).startswith("unhashable type"):
                explain(function, args, kwargs)
                raise
        except AttributeError:
            explain(function, args, kwargs)
            raise
        return with_tuples(function, args, kwargs)

    wrapper.is_dlprim_operator = True  # type: ignore[attr-defined]
    return cast(F, wrapper)


def with_tuples(function: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
    """Calls the function, with lists among its arguments converted to tuples."""
    args = tuple([hashable(value) if type(value) in UNHASHABLE else value for value in args])
    for name, value in kwargs.items():
        if type(value) in UNHASHABLE:
            kwargs[name] = hashable(value)
    try:
        return function(*args, **kwargs)
    except (TypeError, AttributeError):
        explain(function, args, kwargs)
        raise


def explain(function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Raises a TypeError of one sentence if the arguments are the mistake. Otherwise returns."""
    parameters = inspect.signature(function).parameters
    name = function.__name__
    if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        for given in kwargs:
            if given not in parameters:
                raise TypeError(unknown_option(name, given, list(parameters))) from None
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as missing:
        raise TypeError(f"{name}(): {missing}") from None
    for argument, value in bound.arguments.items():
        wanted = str(parameters[argument].annotation)
        fits = isinstance(value, (Tensor, Gradient)) or (value is None and wanted == "Tensor | None")
        if wanted in ("Tensor", "Tensor | None") and not fits:
            raise TypeError(
                f"{name}() takes a dlprim.Tensor as {argument}, got a {type(value).__name__}; "
                "dlprim.Tensor(context, array) makes one of an array"
            ) from None


def unknown_option(name: str, given: str, known: list[str]) -> str:
    """A sentence that offers the nearest option, or lists all."""
    return unknown_argument(f"{name}()", given, known, "option")


def engine_pairs(engines: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple(engines.items()) if engines else ()


@kept
def general_call(
    operator_type: str,
    training: bool,
    precision: str,
    engine: str | None,
    engines: tuple[tuple[str, str], ...],
    options: tuple[tuple[str, object], ...],
) -> Call:
    return make_call(
        operator_type, dict(options), training=training, precision=precision, engine=engine, engines=engines
    )


def given_options(options: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    return tuple([(name, hashable(value) if type(value) in UNHASHABLE else value) for name, value in options.items()])


def call(
    type: str,
    inputs: Tensor | Sequence[Tensor],
    params: Sequence[Tensor] = (),
    /,
    *,
    training: bool = False,
    seed: int = 1,
    step: int = 0,
    precision: str = "fp32",
    engine: str | None = None,
    engines: Mapping[str, str] | None = None,
    out: Outs = None,
    **options: Any,
) -> tuple[Tensor, ...]:
    """Calls an operator by its type, with options as in network JSON.

    `dlprim.ops.call("Convolution", [x], [weight, bias], channels_out=64, kernel=3, pad=1)`

    `inputs` are the tensors and `params` the parameters, in the operator's order (docs/json.md). Strided views among
    them are copied. On OpenCL devices work is asynchronous: the call returns when the work is enqueued.

    training: training-mode semantics. BatchNorm then updates its running statistics, which are params, in place.
    seed, step: for random operators (Dropout), integers from 0 to 2^64 - 1.
    precision: "fp32", "tf32", "fp16" or "bf16". It permits products to round their factors.
    engine: the engine that must compute the operator.
    engines: engines by type, for the operator and those that it consists of, used where they apply.
    out: a tensor, or a sequence of tensors and None, to which results are written. Without it results are new tensors.

    Returns a tuple of the results. Raises InvalidArgumentError (a ValueError) if a type, option, engine, shape or dtype
    is invalid, or if tensors belong to two contexts. Raises TypeError on arguments that are no tensors.
    """
    prepared = general_call(type, training, precision, engine, engine_pairs(engines), given_options(options))
    return prepared.all(tensor_tuple(inputs), tensor_tuple(params), out, seed, step)


def backward(
    type: str,
    inputs: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    output_gradients: Tensor | Sequence[Tensor],
    /,
    *,
    training: bool = False,
    seed: int = 1,
    step: int = 0,
    precision: str = "fp32",
    engines: Mapping[str, str] | None = None,
    out: Sequence[Tensor | None] | None = None,
    **options: Any,
) -> tuple[Tensor | None, ...]:
    """Gradients of `call` with respect to inputs and params, in that order, from the gradients of its outputs.

    `output_gradients` has one tensor per output, of its shape and dtype. The result has None for operands without a
    gradient, such as integers and running statistics. `out` contains tensors to which gradients are written, or None
    for gradients that should be new tensors. The other keywords and the errors are those of `call`. training, seed and
    step must be those of the forward call.
    """
    prepared = general_call(type, training, precision, None, engine_pairs(engines), given_options(options))
    return prepared.backward(
        tensor_tuple(inputs), tensor_tuple(params), tensor_tuple(output_gradients), out, seed, step
    )


def grad(
    function: Callable[P, object],
    output_gradients: Tensor | Sequence[Tensor],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> tuple[Tensor | None, ...]:
    """Gradients of a function of this module with respect to its tensors.

    `dx, dweight = dlprim.ops.grad(dlprim.ops.conv2d, dy, x, weight, stride=2)` returns the gradients of `y =
    dlprim.ops.conv2d(x, weight, stride=2)`, where `dy` is the gradient of `y`, of its shape and dtype. For a function
    with several results, pass a sequence of gradients, one for each. The arguments are those of the function.

    Returns a tuple with one entry per given tensor, in the order of the function's signature. The tensors of a sequence
    have one entry each, and optional tensors that are not given have none. An entry is the gradient, a new tensor of
    the tensor's shape and dtype, or None if there is no gradient, as for integers and running statistics. If `engine`
    is given, it applies only to the forward call; `backward` takes `engines`.

    Raises TypeError if the function is not part of this module or `out` is given, InvalidArgumentError if a shape or
    dtype is wrong, and UnsupportedError (a NotImplementedError) if there is no gradient.
    """
    if not getattr(function, "is_dlprim_operator", False):
        name = getattr(function, "__name__", function)
        raise TypeError(f"grad() takes a function of dlprim.ops that computes an operator, got {name}")
    if "out" in kwargs:
        raise TypeError("grad() takes no out; dlprim.ops.backward() writes gradients to tensors that it is given")
    gradients: Any = function
    marked = Gradient(tensor_tuple(output_gradients))
    return gradients(*args, **kwargs, out=marked)  # type: ignore[no-any-return]
