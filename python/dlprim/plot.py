# SPDX-License-Identifier: MIT
"""Pictures of networks: ``net.plot()`` and what notebooks show. Graphviz's program ``dot`` draws them."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from . import _core
from .errors import DlprimError, FileError, InvalidArgumentError
from .summary import LayerRecord, TensorRecord, table

__all__ = ["Drawing", "Shown", "dot_source", "draw"]

# The colour of a box by the group that the operator declares.
_COLOURS = {
    "source": "#d5e8d4",
    "convolution": "#dae8fc",
    "product": "#dae8fc",
    "normalisation": "#ffe6cc",
    "elementwise": "#fff2cc",
    "pooling": "#e1d5e7",
    "loss": "#f8cecc",
}
_LONG = 10_000  # operators that arrows may pass before dot becomes slow, because it makes a node for each
_SECONDS = 120.0  # the time limit of dot
_FORMATS = ("svg", "png", "pdf", "ps", "jpg", "gif", "dot", "gv")


class Drawing:
    """A network's picture. Notebooks show it, `save` writes it, and `source` is its text for graphviz."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._svg: str | None = None

    def __repr__(self) -> str:
        return f"<Drawing of {self.source.count(', fillcolor=') - 1} boxes and {self.source.count(' -> ')} arrows>"

    @property
    def svg(self) -> str:
        """The picture as SVG text. Raises DlprimError if graphviz's dot is not installed."""
        return self._draw(_SECONDS)

    def _draw(self, seconds: float) -> str:
        if self._svg is None:
            self._svg = _run(self.source, "svg", seconds).decode("utf-8")
        return self._svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture as .svg, .png, .pdf, .ps, .jpg or .gif, or with .dot or .gv as graphviz's text."""
        target = Path(path)
        kind = target.suffix[1:].lower()
        if kind not in _FORMATS:
            raise InvalidArgumentError(
                f"'{target}' ends in no kind of picture; {', '.join('.' + f for f in _FORMATS)} are possible"
            )
        data = self.source.encode("utf-8") if kind in ("dot", "gv") else _run(self.source, kind)
        try:
            target.write_bytes(data)
        except OSError as error:
            raise FileError(f"'{target}' cannot be written: {error.strerror or error}") from error

    def _repr_svg_(self) -> str | None:
        return self.svg if shutil.which("dot") else None


def draw(
    layers: Sequence[LayerRecord],
    path: str | os.PathLike[str] | None = None,
    *,
    outputs: Iterable[str] = (),
    shapes: bool = True,
    rankdir: str = "TB",
) -> Drawing:
    """Draws a network's operators and the tensors between them.

    If `path` is given, the picture is written there, in the format of its suffix. `outputs` are the network's outputs.
    With `shapes`, each arrow is labelled with the sizes of its tensor. `rankdir` is graphviz's: "TB" draws from top to
    bottom, "LR" from left to right.
    """
    if rankdir not in ("TB", "LR", "BT", "RL"):
        raise InvalidArgumentError(f"rankdir is {rankdir!r}; 'TB', 'LR', 'BT' and 'RL' are possible")
    drawing = Drawing(dot_source(layers, outputs=outputs, shapes=shapes, rankdir=rankdir))
    if path is not None:
        drawing.save(path)
    return drawing


class Shown:
    """What networks have in common for inspection: a table, a picture, and what print and notebooks show."""

    def _layers(self) -> list[LayerRecord]:
        """The inputs and operators, in the order in which they run."""
        raise NotImplementedError

    def _outputs_shown(self) -> list[str]:
        """The names of the outputs."""
        raise NotImplementedError

    def _title(self) -> str:
        return ""

    def summary(self, width: int | None = None) -> str:
        """The table that `print` shows: layer, type, output shape, parameters, inputs. Totals are below it.

        Lines have at most `width` characters; the default is 120.
        """
        return table(self._layers(), self._title(), width=width)

    def plot(self, path: str | os.PathLike[str] | None = None, *, shapes: bool = True, rankdir: str = "TB") -> Drawing:
        """Draws the network by graphviz; see dlprim.plot.draw.

        If `path` is given, the picture is written there, in the format of its suffix: .svg, .png, .pdf, .dot. Raises
        DlprimError if a picture is needed and graphviz's program dot is not installed.
        """
        return draw(self._layers(), path, outputs=self._outputs_shown(), shapes=shapes, rankdir=rankdir)

    def __str__(self) -> str:
        return self.summary()

    def _repr_svg_(self) -> str | None:
        """The picture for a notebook. If dot is missing or takes too long, None, so that the notebook shows text."""
        if not shutil.which("dot"):
            return None
        try:
            return self.plot()._draw(30)
        except DlprimError:
            return None


def dot_source(
    layers: Sequence[LayerRecord], *, outputs: Iterable[str] = (), shapes: bool = True, rankdir: str = "TB"
) -> str:
    """The network in graphviz's language.

    If arrows pass many operators, as in a DenseNet, dot would take minutes. Then it is told to optimise less, and sizes
    are in the boxes rather than at the arrows.
    """
    arrows, ends = _arrows(layers, outputs)
    long = sum(reader - maker for maker, reader, _ in arrows) > _LONG
    lines = [
        "digraph network {",
        f"  rankdir={rankdir};" + (" nslimit=0.1; nslimit1=0.1; mclimit=0.01; remincross=false; splines=line;" * long),
        '  node [shape=box, style="rounded,filled", fillcolor="#f5f5f5", color="#666666", fontname="Helvetica", '
        "fontsize=11, margin=0.12];",
        '  edge [color="#666666", fontname="Helvetica", fontsize=9];',
    ]
    for i, layer in enumerate(layers):
        label = _label(layer, shapes and long)
        lines.append(f"  n{i} [label={_quoted(label)}, fillcolor={_quoted(_colour(layer))}];")
    for i, (_, name) in enumerate(ends):
        lines.append(f'  out{i} [label={_quoted(name)}, shape=plaintext, style="", fontsize=10];')
    for maker, reader, tensor in arrows:
        to = f"n{reader}" if reader < len(layers) else f"out{reader - len(layers)}"
        size = f" [label={_quoted(_size(tensor))}]" if shapes and not long else ""
        lines.append(f"  n{maker} -> {to}{size};")
    return "\n".join([*lines, "}"]) + "\n"


_Arrow = tuple[int, int, TensorRecord]


def _arrows(layers: Sequence[LayerRecord], outputs: Iterable[str]) -> tuple[list[_Arrow], list[tuple[int, str]]]:
    """Maps each pair of maker and reader to the tensors between them. Outputs count as readers after the last layer."""
    makers: dict[str, tuple[int, TensorRecord]] = {}  # tensor -> the operator that made it last
    arrows = []
    for i, layer in enumerate(layers):
        arrows += [(makers[name][0], i, makers[name][1]) for name in layer.inputs if name in makers]
        makers.update({tensor.name: (i, tensor) for tensor in layer.outputs})
    ends = [(makers[name][0], name) for name in outputs if name in makers]
    arrows += [(maker, len(layers) + i, makers[name][1]) for i, (maker, name) in enumerate(ends)]
    return arrows, ends


def _label(layer: LayerRecord, shapes: bool) -> str:
    count = sum(param.size for param in {param.name: param for param in layer.params}.values())
    sizes = "".join(f"\n{_size(tensor)}" for tensor in layer.outputs) if shapes else ""
    return f"{layer.name}\n{layer.type}{sizes}" + (f"\n{count:,} parameters" if count else "")


def _size(tensor: TensorRecord) -> str:
    sizes = " x ".join(map(str, tensor.shape)) or "scalar"
    return sizes if tensor.dtype == "float32" else f"{sizes} {tensor.dtype}"


@functools.cache
def _groups() -> dict[str, str]:
    declared = json.loads(_core.operator_declarations())
    names = {name: one["group"] for kind, one in declared.items() for name in [kind, *one.get("other_names", [])]}
    return {"Input": "source"} | names


def _colour(layer: LayerRecord) -> str:
    return _COLOURS.get(_groups().get(layer.type, ""), "#f5f5f5")


def _quoted(text: str) -> str:
    """A string of graphviz's language. Names come from files, so all special characters are escaped."""
    lines = text.split("\n")
    safe = ["".join(c if c.isprintable() else "?" for c in line[:200]) for line in lines]
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") for line in safe) + '"'


def _run(source: str, kind: str, seconds: float = _SECONDS) -> bytes:
    dot = shutil.which("dot")
    if dot is None:
        raise DlprimError(
            "drawing a network needs graphviz's program dot, which is not on the PATH: install graphviz "
            "(apt-get install graphviz, brew install graphviz, conda install graphviz)"
        )
    try:
        done = subprocess.run([dot, f"-T{kind}"], input=source.encode("utf-8"), capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise DlprimError(
            f"graphviz's dot draws this network for more than {seconds:g} s; its text can be had as .dot"
        ) from error
    except OSError as error:
        raise DlprimError(f"graphviz's dot ('{dot}') cannot be started: {error.strerror or error}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [
            f"it ended with status {done.returncode}"
        ]
        raise DlprimError(f"graphviz's dot cannot draw the network as {kind}: {said[0]}")
    return done.stdout
