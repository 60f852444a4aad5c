# SPDX-License-Identifier: MIT
"""Symbols, layers, and the operators that layers make from symbols. A Model is collected from them."""

from __future__ import annotations

import difflib
import inspect
import itertools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Union

from .. import _core
from .._arguments import unknown_argument
from ..errors import InvalidArgumentError
from ..summary import ParamRecord, TensorRecord, dtype_name
from ._infer import infer

Number = Union[int, float]
IntOrPair = Union[int, Sequence[int]]
_serials = itertools.count()
#: Parameters of a layer's `__init__` that are none of its options.
NOT_OPTIONS = ("self", "common", "more")


class LayerOptions(TypedDict, total=False):
    """Keywords of every layer and every function of ``dlprim.nn``, in addition to its own.

    - ``name``: of the operator, unique in a model. By default the model numbers it: ``conv2d_1``.
    - ``frozen``: excluded from training. A frozen BatchNorm uses its running statistics and does not change them.
    - ``recompute``: in training, its results are not kept for backward, but computed again there.
    - ``engine``: the engine that must compute it, such as ``"conv2d.reference"``.
    - ``precision``: of its products: ``"fp32"``, ``"tf32"``, ``"fp16"`` or ``"bf16"``.
    - ``params``: names of its parameters, in the order of docs/json.md. By default ``NAME.0``, ``NAME.1``, ...
    """

    name: str
    frozen: bool
    recompute: bool
    engine: str
    precision: str
    params: Sequence[str]


class Symbol:
    """A tensor of a network that is being described. It has a shape and a type, but no values yet.

    ``nn.Input`` and calls of layers and functions return symbols. Symbols can be used in ``+ - * / **``, ``@``, unary
    ``-``, ``abs()`` and slices ``x[:, 1:3, -1]``; the result is another symbol.
    """

    __array_ufunc__ = None  # makes numpy call __rmul__ for `array * symbol`, which raises a helpful error

    def __init__(self, record: TensorRecord, call: Call | None, index: int = 0) -> None:
        self._record = record
        self._call = call
        self._index = index
        self._name = record.name if call is None else None
        self._loss_weight: float | None = None
        self._implicit = False  # whether a loss made this input for its labels

    @property
    def name(self) -> str | None:
        """The tensor's name in the model that used it last. Before that, the name that it was given, or None."""
        return self._name or (self._call.layer.name if self._call and self._index == 0 else None)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, with the batch first, as they follow from the declared shapes of the inputs."""
        return self._record.shape

    @property
    def dtype(self) -> str:
        """The name of the type: ``"float32"``, ``"int32"``, ..."""
        return self._record.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<Symbol {self.name or (self._call.layer.prefix if self._call else '')}: {self.dtype} {self.shape}>"

    def __bool__(self) -> bool:
        raise TypeError("a symbolic tensor has no values, so it is neither true nor false")

    def __iter__(self) -> Any:
        raise TypeError("a symbolic tensor cannot be iterated over; nn.split cuts one into parts")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a symbolic tensor has no values; those of a net come from net.output(name)")

    def __add__(self, other: Symbol | Number) -> Symbol:
        return _made("add", self, other)

    def __radd__(self, other: Number) -> Symbol:
        return _made("add", self, other)

    def __sub__(self, other: Symbol | Number) -> Symbol:
        return _made("sub", self, other)

    def __rsub__(self, other: Number) -> Symbol:
        return _made("sub", other, self)

    def __mul__(self, other: Symbol | Number) -> Symbol:
        return _made("mul", self, other)

    def __rmul__(self, other: Number) -> Symbol:
        return _made("mul", self, other)

    def __truediv__(self, other: Symbol | Number) -> Symbol:
        return _made("div", self, other)

    def __rtruediv__(self, other: Number) -> Symbol:
        return _made("div", other, self)

    def __pow__(self, exponent: Number) -> Symbol:
        return _made("pow", self, exponent)

    def __neg__(self) -> Symbol:
        return _made("neg", self)

    def __abs__(self) -> Symbol:
        return _made("abs", self)

    def __matmul__(self, other: Symbol) -> Symbol:
        return _made("matmul", self, other)

    def __getitem__(self, key: Any) -> Symbol:
        return _made("getitem", self, key)


def _function(name: str) -> Callable[..., Any]:
    """A function of nn. They are in modules that need this one."""
    from . import _declared, _functions

    found: Callable[..., Any] = getattr(_functions, name, None) or getattr(_declared, name)
    return found


def _made(function: str, *arguments: Any) -> Symbol:
    made: Symbol = _function(function)(*arguments)
    return made


class Call:
    """One operator: a layer applied to symbols."""

    def __init__(self, layer: Layer, inputs: tuple[Symbol, ...]) -> None:
        for x in inputs:
            if not isinstance(x, Symbol):
                raise TypeError(
                    f"{layer.title} is called with {describe_value(x)}; symbolic tensors are needed: nn.Input makes one"
                )
        self.layer = layer
        self.inputs = inputs
        self.serial = next(_serials)
        self.given_names = self._names()
        shown = layer.name or layer.prefix
        records = [x._record for x in inputs]
        outputs, params = infer(shown, layer.type, layer.options, records, layer.outputs, layer.frozen)
        if "activation" in layer.options and layer.type != "Activation":  # which operators look at when they run
            infer(shown, "Activation", {"activation": layer.options["activation"]}, outputs[:1], 1)
        self.params = layer._take_params(params)
        self.outputs = tuple(Symbol(record, self, index) for index, record in enumerate(outputs))

    def _names(self) -> Mapping[str, object]:
        """The names that the user gave to this operator and those before it, each with its layer or input."""
        above: dict[str, object] = {}
        shared: Mapping[str, object] | None = None  # a chain of unnamed layers has one mapping
        for x in self.inputs:
            names = x._call.given_names if x._call else {x._record.name: x}
            shared = names if len(self.inputs) == 1 else None
            for name, owner in names.items():
                _claim(above, name, owner)
        if self.layer.name is None:
            return shared if shared is not None else above
        _claim(above, self.layer.name, self.layer)
        return above


def _claim(names: dict[str, object], name: str, owner: object) -> None:
    """Raises an error if another layer or input has the name. Equal inputs that losses made for labels may share it."""
    other = names.setdefault(name, owner)
    if other is owner:
        return
    if not (isinstance(other, Symbol) and isinstance(owner, Symbol) and same_labels(other, owner)):
        kinds = sorted({"an input" if isinstance(x, Symbol) else f"a {type(x).__name__}" for x in (other, owner)})
        what = f"{kinds[0]} and {kinds[1]}" if len(kinds) == 2 else f"two {kinds[0].split(' ', 1)[1]}s"
        raise InvalidArgumentError(f"the name '{name}' is given twice, to {what}; each name stands for one")


def same_labels(a: Symbol, b: Symbol) -> bool:
    """Whether both stand for the same labels: they are equal, and a loss made at least one of them."""
    return a._record == b._record and (a._implicit or b._implicit)


def describe_value(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


class Layer:
    """An operator with its options, to be called with symbols. Further calls share its parameters."""

    type: str = ""  # the operator's type in docs/json.md
    prefix: str = ""  # the beginning of generated names
    outputs: int = 1  # number of tensors that it makes

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "prefix" not in cls.__dict__:
            cls.prefix = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower().lstrip("_")

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        """Names an option that the layer does not have, before Python complains of arguments that are missing."""
        for option in options:
            if option not in _option_names(cls):
                raise TypeError(_unknown_option(cls, option))
        return super().__new__(cls)

    def __init__(self, options: Mapping[str, Any], common: LayerOptions) -> None:
        for option in common:
            if option not in LayerOptions.__annotations__:
                raise TypeError(self._unknown_option(option))
        self.name = common.get("name")
        if self.name is not None:
            check_name(type(self).__name__, self.name)
        self.options = {key: _plain(self.title, key, value) for key, value in options.items() if value is not None}
        self._take_common(common)
        self._params: tuple[ParamRecord, ...] | None = None
        self._generated: str | None = None  # the name that a model gave it

    def _unknown_option(self, option: str) -> str:
        return _unknown_option(type(self), option)

    def _take_common(self, common: LayerOptions) -> None:
        self.frozen = bool(common.get("frozen", False))
        self.recompute = bool(common.get("recompute", False))
        self.engine = common.get("engine")
        self.precision = common.get("precision")
        given = common.get("params")
        if self.engine is not None and not isinstance(self.engine, str):
            raise TypeError(f"{self.title}: engine is {describe_value(self.engine)}; a name is needed")
        if self.precision not in (None, "fp32", "tf32", "fp16", "bf16"):
            raise InvalidArgumentError(
                f"{self.title}: precision is {self.precision!r}; it is 'fp32', 'tf32', 'fp16' or 'bf16'"
            )
        if given is not None and (isinstance(given, str) or not isinstance(given, Sequence)):
            raise TypeError(f"{self.title}: params is {describe_value(given)}; a list of names is needed")
        self._given_params = None if given is None else list(given)

    @property
    def title(self) -> str:
        """The layer's name in messages."""
        return f"{type(self).__name__} '{self.name}'" if self.name else type(self).__name__

    def __repr__(self) -> str:
        options = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"<{self.title}: {self.type} with {options}>" if options else f"<{self.title}: {self.type}>"

    def apply(self, *inputs: Symbol) -> tuple[Symbol, ...]:
        """Adds the operator and returns all its outputs. Raises InvalidArgumentError if the shapes do not fit."""
        return Call(self, inputs).outputs

    def _take_params(self, params: Sequence[ParamRecord]) -> tuple[ParamRecord, ...]:
        found = tuple(params)
        if self._given_params is not None and len(self._given_params) != len(found):
            raise InvalidArgumentError(
                f"{self.title} has {len(found)} parameters, params names {len(self._given_params)}"
            )
        if self._params is None:
            self._params = found
        for first, now in zip(self._params, found):
            if first.shape != now.shape or first.dtype != now.dtype:
                raise InvalidArgumentError(
                    f"{self.title} was called with a tensor that led to a parameter {first.dtype} {list(first.shape)}, "
                    f"which this call would share but wants as {now.dtype} {list(now.shape)}; "
                    "another layer has parameters of its own"
                )
        return found

    def param_names(self, name: str) -> list[str]:
        """The names of its parameters in a network in which its first operator is called `name`."""
        return self._given_params or [f"{name}.{i}" for i in range(len(self._params or ()))]


class SingleLayer(Layer):
    """A layer with one input and one output, which may be part of a Sequential."""

    def __call__(self, x: Symbol) -> Symbol:
        """Applies the operator to `x`. Raises InvalidArgumentError if its shape or type does not fit."""
        return self.apply(x)[0]


class Generic(Layer):
    """Any operator by its JSON type and options, which functions use."""

    def __init__(
        self, kind: str, prefix: str, options: Mapping[str, Any], common: LayerOptions, outputs: int = 1
    ) -> None:
        self.type = kind
        self.prefix = prefix
        self.outputs = outputs
        super().__init__(options, common)

    def _unknown_option(self, option: str) -> str:
        known = inspect.signature(_function(self.prefix)).parameters if self.prefix != "loss" else ()
        names = [*(name for name in known if name != "common"), *LayerOptions.__annotations__]
        return unknown_argument(f"nn.{self.prefix}", option, names, "option")

    @property
    def title(self) -> str:
        return f"nn.{self.prefix} '{self.name}'" if self.name else f"nn.{self.prefix}"


def make_input(name: str, shape: Sequence[int], dtype: Any = "float32") -> Symbol:
    check_name("nn.Input", name)
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
        raise TypeError(f"nn.Input '{name}': the shape is {shape!r}; a tuple of integers is needed, the batch first")
    sizes = []
    for size in shape:
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            raise TypeError(
                f"nn.Input '{name}': the shape {tuple(shape)!r} holds {size!r}; sizes are integers, the batch first"
            )
        sizes.append(size.__index__())
        if sizes[-1] < 1:
            raise InvalidArgumentError(
                f"nn.Input '{name}': the shape {tuple(shape)!r} holds {size!r}; sizes are at least 1"
            )
    if math.prod(sizes) > 1 << 60:
        raise InvalidArgumentError(f"nn.Input '{name}': the shape {tuple(shape)!r} has more than 2^60 elements")
    return Symbol(TensorRecord(name, tuple(sizes), dtype_name(dtype)), None)


def check_name(of: str, name: object) -> None:
    """Raises an error if the name of a layer or an input is not allowed in a network."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"{of}: the name is {name!r}; a string of at least one character is needed")
    if len(name.encode("utf-8", "surrogatepass")) > 512:
        raise InvalidArgumentError(f"{of}: the name '{name[:20]}...' is longer than 512 bytes")


def _plain(layer: str, option: str, value: Any) -> Any:
    """Converts an option to JSON's types: numpy's scalars and tuples become Python's numbers and lists."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgumentError(f"{layer}: {option} is {value}; a finite number is needed")
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Sequence):
        return [_plain(layer, option, v) for v in value]
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return _plain(layer, option, value.tolist())
    raise TypeError(f"{layer}: {option} is {value!r}; numbers, strings, booleans and lists of them are possible")


def _option_names(cls: type[Layer]) -> list[str]:
    own = [name for name in inspect.signature(cls.__init__).parameters if name not in NOT_OPTIONS]
    return own + list(LayerOptions.__annotations__)


def _unknown_option(cls: type[Layer], option: str) -> str:
    return unknown_argument(cls.__name__, option, _option_names(cls), "option")


def unknown_layer(name: str, known: Mapping[str, Any]) -> str:
    """A sentence that offers the layer or function of `known` that other frameworks call `name`."""

    def plain(text: str) -> str:
        return text.lower().replace("_", "")

    declared = json.loads(_core.operator_declarations())

    def operator(kind: Any) -> Any:
        return declared.get(kind, {}).get("alias_of", kind)

    kind = operator(_core.operator_type_of(name))
    of_type = [each for each, value in known.items() if kind and operator(getattr(value, "type", None)) == kind]
    same = [each for each in known if plain(each) == plain(name)]
    near = same or difflib.get_close_matches(name, of_type, 1, 0)
    hint = f"; did you mean '{near[0]}'?" if near else _core.name_hint(name, list(known))
    return f"dlprim.nn has no '{name}'{hint}"
