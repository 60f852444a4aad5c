# SPDX-License-Identifier: MIT
"""Tables of networks: what ``print(net)`` shows, for Net and for the models of ``dlprim.nn``."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _core
from ._dtypes import itemsize

if TYPE_CHECKING:
    from ._core import NetworkDescription

__all__ = ["LayerRecord", "ParamRecord", "TensorRecord", "count_params", "dtype_name", "records_of", "table"]


def dtype_name(dtype: Any) -> str:
    """Returns ``"float32"`` and so on, from a name of docs/json.md, a numpy or torch dtype or a Python type.

    Raises TypeError on anything else.
    """
    if isinstance(dtype, type) and dtype in (float, int):  # their meaning in a network
        return "float32" if dtype is float else "int32"
    text = str(dtype)
    return _core.dtype_name(text[len("torch.") :] if text.startswith("torch.") else dtype)


@dataclass(frozen=True)
class TensorRecord:
    """A tensor of a network: its name, its sizes and its type."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"


@dataclass(frozen=True)
class ParamRecord:
    """A parameter of a network, and whether solvers change it."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    trainable: bool = True

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Number of bytes of its elements."""
        return self.size * itemsize(self.dtype)


@dataclass(frozen=True)
class LayerRecord:
    """An operator of a network, or with type ``"Input"`` one of the network's inputs."""

    name: str
    type: str
    inputs: Sequence[str] = ()
    outputs: Sequence[TensorRecord] = ()
    params: Sequence[ParamRecord] = field(default_factory=tuple)


def records_of(network: NetworkDescription) -> list[LayerRecord]:
    """The inputs and operators of a result of dlprim.describe() or Net.describe()."""
    records = []
    for x in network.inputs:
        records.append(LayerRecord(x.name, "Input", (), (TensorRecord(x.name, x.shape, x.dtype),)))
    for op in network.operators:
        outputs = tuple(TensorRecord(y.name, y.shape, y.dtype) for y in op.outputs)
        params = tuple(ParamRecord(p.name, p.shape, p.dtype, p.trainable) for p in op.params)
        records.append(LayerRecord(op.name, op.type, tuple(x.name for x in op.inputs), outputs, params))
    return records


def count_params(layers: Iterable[LayerRecord]) -> tuple[int, int]:
    """The numbers of elements of trainable and of other parameters. Shared parameters count once."""
    params = {param.name: param for layer in layers for param in layer.params}
    trainable = sum(param.size for param in params.values() if param.trainable)
    return trainable, sum(param.size for param in params.values()) - trainable


def table(layers: Sequence[LayerRecord], title: str | None = None, *, width: int | None = None) -> str:
    """The network's operators as text, one row each: layer, type, output shape, parameters, inputs.

    Lines have at most `width` characters (default 120), and long cells are cut. Below the rows are the totals of
    trainable and other parameters. Parameters that an earlier row has shown are marked as shared.
    """
    rows = _rows(layers)
    header = ("Layer", "Type", "Output shape", "Parameters", "Connected to")
    widths = _widths([header, *rows], width or 120)
    line = "-" * (sum(widths) + 2 * (len(widths) - 1))
    lines = [title] if title else []
    lines += [line, _line(header, widths), line.replace("-", "=")]
    lines += [_line(row, widths) for row in rows]
    return "\n".join([*lines, line, *_totals(layers)])


def _totals(layers: Sequence[LayerRecord]) -> list[str]:
    params = {param.name: param for layer in layers for param in layer.params}
    trainable, other = count_params(layers)
    total_bytes = sum(param.nbytes for param in params.values())
    other_bytes = sum(param.nbytes for param in params.values() if not param.trainable)
    return [
        f"Parameters: {trainable + other:,} ({_bytes(total_bytes)})",
        f"Trainable:  {trainable:,} ({_bytes(total_bytes - other_bytes)})",
        f"Other:      {other:,} ({_bytes(other_bytes)})",
    ]


def _rows(layers: Sequence[LayerRecord]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    makers: dict[str, str] = {}  # tensor -> the layer that made it last
    seen: set[str] = set()
    for layer in layers:
        own = {param.name: param for param in layer.params}
        shared = own.keys() & seen
        count = f"{sum(param.size for param in own.values()):,}" + (" (shared)" if shared else "")
        shapes = ", ".join(_shape(output) for output in layer.outputs)
        rows.append((layer.name, layer.type, shapes, count, ", ".join(makers.get(x, x) for x in layer.inputs)))
        seen |= own.keys()
        for output in layer.outputs:
            makers[output.name] = layer.name
    return rows


def _shape(tensor: TensorRecord) -> str:
    sizes = f"({', '.join(map(str, tensor.shape))}{',' if len(tensor.shape) == 1 else ''})"
    return sizes if tensor.dtype == "float32" else f"{sizes} {tensor.dtype}"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.2f} {unit}"
        size /= 1024
    return f"{size:.2f} GiB"


def _widths(rows: Sequence[Sequence[str]], limit: int) -> list[int]:
    """Makes columns as wide as their widest cell. If a line would exceed `limit`, the widest columns are cut."""
    widths = [max(_columns(_clean(row[i])) for row in rows) for i in range(len(rows[0]))]
    room = max(limit - 2 * (len(widths) - 1), 8 * len(widths))
    while sum(widths) > room:
        widths[widths.index(max(widths))] -= 1
    return widths


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = []
    for i, (cell, width) in enumerate(zip(row, widths)):
        text = _cut(_clean(cell), width)
        space = " " * (width - _columns(text))
        cells.append(space + text if i == 3 else text + space)
    return "  ".join(cells).rstrip()


def _clean(text: str) -> str:
    """Replaces characters that would move a terminal's cursor by escapes, because names come from files."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, width: int) -> str:
    if _columns(text) <= width:
        return text
    while text and _columns(text) > width - 3:
        text = text[:-1]
    return text + "..."
