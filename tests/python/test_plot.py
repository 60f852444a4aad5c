# SPDX-License-Identifier: MIT
"""Networks as pictures: model.plot(), net.plot() and what notebooks show."""

from __future__ import annotations

import pathlib
import shutil
import xml.etree.ElementTree as ET

import dlprim
import pytest
from dlprim import nn
from dlprim.plot import dot_source, draw
from dlprim.summary import LayerRecord, TensorRecord

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="graphviz is not installed")


def small_model() -> nn.Model:
    x = nn.Input("data", (4, 3, 8, 8))
    y = nn.relu(nn.Conv2d(6, 3, padding=1)(x))
    logits = nn.Linear(10, name="fc")(nn.flatten(y))
    return nn.Model(x, {"logits": logits, "loss": nn.softmax_with_loss(logits)})


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_source_holds_operators_shapes_and_outputs() -> None:
    source = small_model().plot().source
    assert 'label="conv2d_1\\nConvolution\\n168 parameters"' in source
    assert 'label="4 x 6 x 8 x 8"' in source and 'label="4 int32"' in source
    assert 'out0 [label="logits"' in source and 'out1 [label="loss"' in source
    assert source.count(" -> ") == 6 + 2


def test_shapes_and_direction_are_a_choice() -> None:
    source = small_model().plot(shapes=False, rankdir="LR").source
    assert "rankdir=LR" in source and "4 x 6" not in source
    with pytest.raises(dlprim.InvalidArgumentError, match="rankdir is 'UP'"):
        small_model().plot(rankdir="UP")


@needs_dot
def test_svg_in_notebooks() -> None:
    model = small_model()
    svg = model._repr_svg_()
    assert svg is not None
    assert {"conv2d_1", "Convolution", "4 x 6 x 8 x 8", "logits"} <= set(texts(svg))
    assert model.plot()._repr_svg_() == svg


@needs_dot
@pytest.mark.parametrize(
    ("suffix", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph")]
)
def test_files_of_each_kind(tmp_path: pathlib.Path, suffix: str, begins: bytes) -> None:
    path = tmp_path / f"net.{suffix}"
    small_model().plot(path)
    assert path.read_bytes().startswith(begins)


def test_files_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match="ends in no kind of picture; .svg, .png"):
        small_model().plot(tmp_path / "net.bmp2")
    with pytest.raises(dlprim.FileError, match="cannot be written"):
        small_model().plot(tmp_path / "no folder" / "net.dot")


@needs_dot
def test_names_mean_nothing_to_graphviz_or_to_a_browser() -> None:
    hostile = 'a"]; b -> c; <script>alert(1)</script> \\N \\" &amp; \x00\x1b%s {|}'
    tensor = TensorRecord(hostile, (2, 3))
    layers = [LayerRecord(hostile, "Input", (), (tensor,)), LayerRecord("b", "<b>", (hostile,), (tensor,))]
    svg = draw(layers, outputs=[hostile]).svg
    shown = hostile.replace("\x00", "?").replace("\x1b", "?")
    assert texts(svg).count(shown) == 2  # its box, and the output
    assert "<script" not in svg


@needs_dot
def test_networks_with_many_long_arrows_take_no_minutes() -> None:
    """Each layer reads all before it."""
    x = nn.Input("data", (2, 3))
    made = [x]
    for _ in range(34):
        made.append(nn.Linear(3)(nn.concat(made)))
    drawing = nn.Model(x, made[-1]).plot()
    assert 'label="linear_1\\nInnerProduct\\n2 x 3\\n12 parameters"' in drawing.source  # sizes stand in the boxes
    assert repr(drawing) == "<Drawing of 69 boxes and 630 arrows>"
    assert "linear_34" in texts(drawing.svg)


def test_operators_in_place_are_drawn_one_behind_the_other() -> None:
    tensor = TensorRecord("x", (2, 3))
    layers = [LayerRecord("x", "Input", (), (tensor,))]
    layers += [LayerRecord(name, "Activation", ("x",), (tensor,)) for name in ("first", "second")]
    source = dot_source(layers, outputs=["x"])
    assert [line.split(" [")[0].strip() for line in source.splitlines() if "->" in line] == [
        "n0 -> n1",
        "n1 -> n2",
        "n2 -> out0",
    ]


def test_without_graphviz_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    model = small_model()
    assert model._repr_svg_() is None  # a notebook shows the table
    assert model.plot()._repr_svg_() is None
    model.plot(tmp_path / "net.dot")  # which needs no program
    with pytest.raises(dlprim.DlprimError, match="dot, which is not on the PATH: install graphviz"):
        model.plot(tmp_path / "net.svg")


def test_what_dot_says_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    broken = tmp_path / "dot"
    broken.write_text("#!/bin/sh\necho 'no fonts here' >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + ":/bin:/usr/bin")
    with pytest.raises(dlprim.DlprimError, match="dot cannot draw the network as svg: no fonts here"):
        assert small_model().plot().svg
    assert small_model()._repr_svg_() is None


@needs_dot
def test_a_net_is_drawn_as_its_model_is(host: dlprim.Context) -> None:
    model = small_model()
    net = model.build(host, mode="training")
    assert net.plot().source == model.plot().source
    assert net._repr_svg_() == model._repr_svg_()
