# SPDX-License-Identifier: MIT
"""Weights from and to PyTorch's state_dicts, dicts of numpy arrays and safetensors files.

net.weights() returns, and net.set_weights() takes, a dict of arrays by the network's own names. If names differ, this
module finds out which tensor belongs to which parameter.

::

    matches = dlprim.weights.load(net, torchvision_model.state_dict())  # by name, or by order and shape
    print(matches)                                                      # what was matched to what
    dlprim.weights.save_safetensors(net, "net.safetensors")

Networks name their parameters ``conv1.0``, ``conv1.1``. A map may tell the state_dict's tensor for each of them.
Without a map, tensors are matched by name if all names agree. Otherwise an operator that has the name of a module of
the state_dict gets that module's tensors, and the rest is matched by order and shape. Both orders are known: dlprim's
BatchNorm has running mean, running variance, scale, offset; PyTorch's has weight, bias, running_mean, running_var and
num_batches_tracked, which dlprim does not use.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from . import _core, _safetensors
from ._dtypes import widened
from .errors import FileError, FormatError, InvalidArgumentError, UnsupportedError
from .summary import dtype_name

if TYPE_CHECKING:
    import torch

    from . import Net

__all__ = [
    "Match",
    "Matches",
    "load",
    "load_safetensors",
    "match",
    "read_safetensors",
    "save_safetensors",
    "to_state_dict",
    "write_safetensors",
]

Array = npt.NDArray[Any]
Path = Union[str, "os.PathLike[str]"]
NameMap = Union[Mapping[str, str], Callable[[str], str]]

# PyTorch's tensors of one BatchNorm, in dlprim's order.
_BATCH_NORM = ("running_mean", "running_var", "weight", "bias")
_IGNORED = "num_batches_tracked"


class Match(NamedTuple):
    """A parameter of a network, its matching tensor, and the parameter's shape."""

    param: str
    source: str
    shape: tuple[int, ...]


class Matches(list[Match]):
    """Which tensor was matched to which parameter, in the network's order. `print` shows it.

    `ignored` lists tensors that networks do not use (num_batches_tracked, tables of integers). `problems` has one
    sentence for each parameter and each tensor without a match.
    """

    def __init__(
        self, matches: Iterable[Match] = (), ignored: Sequence[str] = (), problems: Sequence[str] = ()
    ) -> None:
        super().__init__(matches)
        self.ignored = list(ignored)
        self.problems = list(problems)

    def __str__(self) -> str:
        width = max((len(m.param) for m in self), default=0)
        lines = [f"{m.param:<{width}}  <-  {m.source}  {list(m.shape)}" for m in self]
        if self.ignored:
            lines.append(f"ignored, since networks have no use for them: {', '.join(self.ignored)}")
        return "\n".join([*lines, *self.problems])


def match(params: Mapping[str, Sequence[int]], state: Mapping[str, Any], names: NameMap | None = None) -> Matches:
    """Finds the tensor of a state_dict for each parameter of a network. Loads nothing.

    `params` has the parameters' shapes by name, in the network's order. `state` has tensors or arrays by name, in
    PyTorch's order. `names` maps a parameter's name to the tensor's name, as a dictionary or a function. Parameters and
    tensors without a match are reported in `problems`.
    """
    shapes = {name: tuple(shape) for name, shape in params.items()}
    tensors = {name: _shape_of(name, value) for name, value in state.items()}
    if names is None and shapes.keys() <= tensors.keys():
        names = {name: name for name in shapes}
    if names is not None:
        found = _by_map(shapes, tensors, names)
    else:
        useful = {name: shape for name, shape in tensors.items() if not _is_index(name, state[name])}
        found = _by_order(shapes, _in_our_order(useful))
    spare = {name: shape for name, shape in tensors.items() if name not in found.told}
    ignored = [name for name in spare if _is_index(name, state[name])]
    unused = [f"the tensor '{n}' {list(shape)} finds no parameter" for n, shape in spare.items() if n not in ignored]
    return Matches(found.pairs, ignored, found.problems + unused)


def load(net: Net, state: Any, names: NameMap | None = None, *, strict: bool = True) -> Matches:
    """Sets a network's parameters to the values of a state_dict, and returns the matches.

    `state` is a state_dict of PyTorch, a PyTorch module, or a dict of numpy arrays. `names` maps the network's
    parameters to its tensors. Without it they are matched by name if all names agree, and otherwise by order and shape.
    Values of half, bfloat16 and double are converted to the parameter's type, and strided ones are copied. If something
    has no match, raises InvalidArgumentError before anything is changed. With `strict` False, parameters without a
    match are initialised instead, and the result's `problems` name them.
    """
    tensors = _state(state)
    shapes = {name: net.param_shape(name) for name in net.param_names}
    found = match(shapes, tensors, names)
    if strict and found.problems:
        raise InvalidArgumentError(_first_problems(found.problems))
    values = {m.param: _converted(m, tensors[m.source], net.param_dtype(m.param)) for m in found}
    net.set_weights(values, missing_ok=not strict)
    return found


def to_state_dict(net: Net, like: Any = None, names: NameMap | None = None) -> dict[str, torch.Tensor]:
    """The network's parameters as a state_dict of PyTorch's tensors.

    `like` is a state_dict or a module. Then the result has its names and order, so that module.load_state_dict()
    accepts it. Parameters are matched as by `load`, and tensors that networks do not use are copied from `like`.
    Without `like` the names are the network's own.
    """
    import torch

    own = net.weights()
    if like is None:
        if names is None:
            return {name: _torch_tensor(param) for name, param in own.items()}
        return {_mapped(names, name) or name: _torch_tensor(param) for name, param in own.items()}
    tensors = _state(like)
    found = match({name: param.shape for name, param in own.items()}, tensors, names)
    if found.problems:
        raise InvalidArgumentError(_first_problems(found.problems))
    partners = {m.source: m.param for m in found}
    result = {}
    for name, value in tensors.items():
        if name in partners:
            result[name] = _torch_tensor(own[partners[name]]).reshape(_shape_of(name, value))
        else:
            result[name] = value.detach().clone() if hasattr(value, "detach") else torch.as_tensor(value)
    return result


def load_safetensors(net: Net, path: Path, names: NameMap | None = None, *, strict: bool = True) -> Matches:
    """Sets a network's parameters to the values of a safetensors file. Matches and reports as `load` does.

    The tensors of such a file have no order, so they are matched by name or by `names`. Raises FileError, FormatError
    and what `load` raises.
    """
    tensors = read_safetensors(path)
    if names is None:
        own = net.param_names
        if own and not any(name in tensors for name in own):
            raise InvalidArgumentError(
                f"'{os.fspath(path)}' has none of the network's names, such as '{own[0]}', and its tensors have no "
                "order to match by: give `names`, a map from the network's names to the file's"
            )
        names = {name: name for name in own}
    return load(net, tensors, names, strict=strict)


def save_safetensors(
    net: Net, path: Path, names: NameMap | None = None, *, metadata: Mapping[str, str] | None = None
) -> None:
    """Writes a network's parameters to a safetensors file, each in its own type.

    The file is written whole or not at all. `names` maps the network's names to the file's. Without it they are the
    network's own.
    """
    own = net.weights()
    tensors = {(_mapped(names, name) if names else name) or name: value for name, value in own.items()}
    if len(tensors) != len(own):
        raise InvalidArgumentError("names gives two parameters one name")
    write_safetensors(path, tensors, metadata=metadata)


def read_safetensors(path: Path) -> dict[str, Array]:
    """The tensors of a safetensors file as numpy arrays, by name. bfloat16, which numpy lacks, becomes float32.

    Raises MissingFileError, FileError, FormatError if it is no such file, UnsupportedError on types that dlprim lacks,
    and DlprimError if the package safetensors is not installed.
    """
    safetensors = _safetensors.package()
    target = os.fspath(path)
    _safetensors.check_regular(target)
    try:
        with safetensors.safe_open(target, framework="numpy") as file:
            kinds = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 - not a dict
            for name, kind in kinds.items():
                if kind not in _safetensors.KINDS:
                    raise UnsupportedError(f"'{target}' holds '{name}' of type {kind}, which dlprim does not have")
            result = {name: file.get_tensor(name) for name, kind in kinds.items() if kind != "BF16"}
    except safetensors.SafetensorError as error:
        raise FormatError(f"'{target}' is no safetensors file: {error}") from error
    except OSError as error:
        raise FileError(f"'{target}' cannot be read: {error}") from error
    if "BF16" in kinds.values():
        result.update(_safetensors.read_bfloat16(target, [name for name, kind in kinds.items() if kind == "BF16"]))
    return {name: result[name] for name in kinds}


def write_safetensors(
    path: Path, arrays: Mapping[str, npt.ArrayLike], *, metadata: Mapping[str, str] | None = None
) -> None:
    """Writes numpy arrays to a safetensors file, which is written whole or not at all."""
    entries = {}
    for name, value in arrays.items():
        array = np.asarray(value)
        entries[name] = _safetensors.entry(_dtype_of(name, array), array.shape, _bits_of(array))
    _safetensors.write(path, entries, metadata)


# Matching ------------------------------------------------------------------------------------------------------------

_Shapes = Mapping[str, tuple[int, ...]]


class _Found:
    """Pairs, problems, and the tensors that either of them names."""

    def __init__(self) -> None:
        self.pairs: list[Match] = []
        self.problems: list[str] = []
        self.told: set[str] = set()

    def pair(self, param: str, source: str, shape: tuple[int, ...]) -> None:
        self.pairs.append(Match(param, source, shape))
        self.told.add(source)

    def differ(self, param: str, shape: Sequence[int], source: str, other: Sequence[int]) -> None:
        self.problems.append(
            f"the parameter '{param}' is {list(shape)}, the tensor '{source}' that it would take is {list(other)}"
        )
        self.told.add(source)


def _by_map(shapes: _Shapes, tensors: _Shapes, names: NameMap) -> _Found:
    found = _Found()
    problems = found.problems
    if isinstance(names, Mapping):
        for name in names:
            if name not in shapes:
                turned = " (its keys are the network's names, its values the state_dict's)" if name in tensors else ""
                problems.append(
                    f"names has '{name}', which is no parameter of the network{_near(name, shapes)}{turned}"
                )
    for name, shape in shapes.items():
        source = _mapped(names, name)
        if source is None:
            problems.append(f"names gives nothing for the parameter '{name}' {list(shape)}")
        elif source not in tensors:
            problems.append(
                f"the parameter '{name}' is to take '{source}', which the state_dict lacks{_near(source, tensors)}"
            )
        elif not _fits(shape, tensors[source]):
            found.differ(name, shape, source, tensors[source])
        else:
            found.pair(name, source, shape)
    return found


def _by_module(shapes: _Shapes, tensors: _Shapes) -> _Found:
    """Matches parameters `a.b.0`, `a.b.1` of operator `a.b` to the tensors of module `a.b`, or to the tensor `a.b`."""
    found = _Found()
    modules = _grouped(tensors)
    for operator, names in _grouped(shapes).items():
        sources = [operator] if operator in tensors else modules.get(operator, [])
        if len(names) == len(sources) and all(_fits(shapes[p], tensors[s]) for p, s in zip(names, sources)):
            for param, source in zip(names, sources):
                found.pair(param, source, shapes[param])
    return found


def _by_order(shapes: _Shapes, tensors: _Shapes) -> _Found:
    """Matches the longest runs of equal shapes, for modules whose names tell nothing."""
    found = _by_module(shapes, tensors)
    known = {pair.param for pair in found.pairs}
    params = [(name, shape) for name, shape in shapes.items() if name not in known]
    sources = [(name, shape) for name, shape in tensors.items() if name not in found.told]
    signatures = [_squeezed(s) for _, s in params], [_squeezed(s) for _, s in sources]
    matcher = difflib.SequenceMatcher(None, signatures[0], signatures[1], autojunk=False)
    for tag, p0, p1, s0, s1 in matcher.get_opcodes():
        for (param, shape), (source, other) in zip(params[p0:p1], sources[s0:s1]):
            if tag == "equal":
                found.pair(param, source, shape)
            else:
                found.differ(param, shape, source, other)
        rest = params[p0 + min(p1 - p0, s1 - s0) : p1]
        found.problems += [f"the parameter '{param}' {list(shape)} finds no tensor" for param, shape in rest]
    place = {name: i for i, name in enumerate(shapes)}
    found.pairs.sort(key=lambda pair: place[pair.param])
    return found


def _in_our_order(tensors: _Shapes) -> dict[str, tuple[int, ...]]:
    """The tensors, with those of each BatchNorm in dlprim's order."""
    result = {}
    for names in _grouped(tensors).values():
        own = {name.rpartition(".")[2]: name for name in names}
        if "running_mean" in own and "running_var" in own:
            first = [own[key] for key in _BATCH_NORM if key in own]
            names = first + [name for name in names if name not in first]
        result.update({name: tensors[name] for name in names})
    return result


def _grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Groups names by the part before their last dot."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rpartition(".")[0], []).append(name)
    return groups


def _is_index(name: str, value: Any) -> bool:
    """Whether it is no weight: num_batches_tracked, or a table of integers that a module computes for itself."""
    return name.rpartition(".")[2] == _IGNORED or "int" in str(getattr(value, "dtype", ""))


def _squeezed(shape: Sequence[int]) -> tuple[int, ...]:
    """The sizes without those of 1, which do not move elements: [C, 1, 1] is [C]."""
    return tuple(size for size in shape if size != 1)


def _fits(a: Sequence[int], b: Sequence[int]) -> bool:
    return _squeezed(a) == _squeezed(b)


def _mapped(names: NameMap, name: str) -> str | None:
    return names.get(name) if isinstance(names, Mapping) else names(name)


def _near(name: str, known: Iterable[str]) -> str:
    return _core.name_hint(name, list(known))


def _first_problems(problems: Sequence[str]) -> str:
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more + " (strict=False leaves these out)"


# Values --------------------------------------------------------------------------------------------------------------


def _state(state: Any) -> Mapping[str, Any]:
    if hasattr(state, "state_dict") and callable(state.state_dict):
        state = state.state_dict()
    if not isinstance(state, Mapping):
        raise TypeError(f"a state_dict, a dict of arrays or a PyTorch module is needed, not a {type(state).__name__}")
    for name, value in state.items():
        if isinstance(name, str) and isinstance(value, Mapping):
            raise TypeError(
                f"the state_dict holds a dict '{name}', no tensor: perhaps state['{name}'] is the state_dict"
            )
        if not isinstance(name, str) or not hasattr(value, "shape"):
            raise TypeError(
                f"the state_dict holds {name!r}, a {type(value).__name__}; tensors or arrays by name are needed"
            )
    return state


def _shape_of(name: str, value: Any) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in value.shape)
    except (AttributeError, TypeError, ValueError):
        raise TypeError(f"'{name}' is a {type(value).__name__}; a tensor or an array is needed") from None


def _converted(m: Match, value: Any, dtype: str) -> Array:
    """Converts the values to an array of the parameter's shape, which it can take."""
    array = _host(m.source, value)
    kind = _dtype_of(m.source, array)
    if _is_float(kind) != _is_float(dtype):
        raise InvalidArgumentError(f"the tensor '{m.source}' is of {kind}, the parameter '{m.param}' of {dtype}")
    if kind == "bfloat16":
        array = widened(array.view(np.uint16))
    if _is_float(dtype) and array.dtype.name != dtype:
        array = _narrowed(m, array, dtype)
    return np.ascontiguousarray(array).reshape(m.shape)


def _host(name: str, value: Any) -> Array:
    """Converts a tensor of PyTorch or an array in host memory to numpy; bfloat16 becomes float32."""
    if not hasattr(value, "detach"):
        array = np.asarray(value)
        if array.dtype == object:
            raise TypeError(f"'{name}' is an array of Python objects; an array of numbers is needed")
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    tensor = value.detach().cpu()
    if getattr(tensor, "is_quantized", False):
        raise InvalidArgumentError(f"the tensor '{name}' is quantized; tensor.dequantize() makes floats of it")
    if str(getattr(tensor, "layout", "torch.strided")) != "torch.strided":
        tensor = tensor.to_dense()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    result: Array = tensor.resolve_conj().resolve_neg().numpy()
    return result


def _narrowed(m: Match, array: Array, dtype: str) -> Array:
    """Converts to `dtype`, or for bfloat16 to float32, which the library rounds. Refuses numbers that are too large."""
    limit = 65504.0 if dtype == "float16" else float(np.finfo(np.float32).max) if dtype != "float64" else np.inf
    if array.size and array.dtype.itemsize > (2 if dtype == "float16" else 4):
        largest = float(np.max(np.abs(array), initial=0, where=np.isfinite(array)))
        if largest > limit:
            raise InvalidArgumentError(
                f"the tensor '{m.source}' holds {largest:g}, which {dtype}, the type of the parameter '{m.param}', "
                f"does not hold (at most {limit:g})"
            )
    return array.astype(np.float32 if dtype == "bfloat16" else dtype)


def _dtype_of(name: str, array: Array) -> str:
    try:
        return dtype_name(array.dtype)
    except TypeError:
        raise UnsupportedError(f"'{name}' is an array of {array.dtype}, a type that dlprim does not have") from None


def _is_float(kind: str) -> bool:
    return kind in ("float32", "float16", "bfloat16", "float64")


def _bits_of(array: Array) -> Array:
    """The values. For bfloat16, which numpy's own types lack, their bits as uint16."""
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def _torch_tensor(array: Array) -> torch.Tensor:
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
