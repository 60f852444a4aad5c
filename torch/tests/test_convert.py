# SPDX-License-Identifier: MIT
"""Programs of torch.export.save() as networks, by dlprim_torch.convert and by the command dlprim_convert."""

from __future__ import annotations

import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_export import Exported, relative
from torch import nn

from dlprim_torch import convert


def model() -> nn.Module:
    """Convolutions, a norm, attention and a product."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU(), nn.Flatten(2),
        nn.TransformerEncoderLayer(36, 2, 16, 0.0, batch_first=True), nn.Flatten(), nn.Linear(288, 5),
    )  # fmt: skip


@pytest.fixture
def saved(tmp_path: pathlib.Path) -> tuple[pathlib.Path, nn.Module]:
    """A program in a file, and its model."""
    made = model().eval()
    x = torch.randn(4, 3, 8, 8)
    program = torch.export.export(made, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, tmp_path / "model.pt2")
    return tmp_path / "model.pt2", made


def test_converted(saved: tuple[pathlib.Path, nn.Module], tmp_path: pathlib.Path) -> None:
    """The command's network does what the program does, also for other batches."""
    path, made = saved
    exported = Exported(tmp_path)
    tool = exported.tool.with_name("dlprim_convert")
    command = [str(x) for x in (tool, path, exported.net, exported.weights)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PATH": f"{pathlib.Path(sys.executable).parent}:"}
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    name = json.loads(exported.net.read_text())["inputs"][0]["name"]
    for batch in (4, 1, 7):
        x = torch.randn(batch, 3, 8, 8)
        assert relative(exported.run({name: x})["output"], made(x)) < 1e-4
    done = subprocess.run(
        command[:-1] + [command[-2]], capture_output=True, text=True, env=os.environ | {"PATH": "/nowhere"}
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PATH": "/nowhere"})
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "python3" in done.stderr


def test_loss(saved: tuple[pathlib.Path, nn.Module], tmp_path: pathlib.Path) -> None:
    """A loss on top, for dlprim_train."""
    net = tmp_path / "net.json"
    assert convert.main([str(saved[0]), str(net), str(tmp_path / "w.h5"), "--loss", "cross_entropy"]) == 0
    assert [entry["name"] for entry in json.loads(net.read_text())["inputs"]][1:] == ["label"]


def refused(path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of a file: one sentence, with exit code 1 and nothing written."""
    folder = path.parent / "made"
    folder.mkdir(exist_ok=True)
    assert convert.main([str(path), str(folder / "net.json"), str(folder / "w.h5")]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.endswith(".\n") and not list(folder.iterdir())
    return said


class Evil:
    """A pickle that makes a file."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def changed(path: pathlib.Path, change: Callable[[dict[str, Any]], None]) -> pathlib.Path:
    """The archive with another graph, or other lists of tensors."""
    made = path.with_name("changed.pt2")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        parts: dict[str, Any] = {name: old.read(name) for name in old.namelist()}
        parts = {name: json.loads(data) if name.endswith(".json") else data for name, data in parts.items()}
        change(parts)
        for name, data in parts.items():
            new.writestr(name, data if isinstance(data, bytes) else json.dumps(data))
    return made


def graph(parts: dict[str, Any]) -> dict[str, Any]:
    return next(data for name, data in parts.items() if name.endswith("models/model.json"))["graph_module"]["graph"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["target", "operator", "size", "name", "pickle", "example", "compressed", "file"])
def test_hostile(
    kind: str, saved: tuple[pathlib.Path, nn.Module], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files that would run code of theirs, for which torch.export.load() is no guard."""
    bad = tmp_path / "bad"
    code = f"__import__('os').mkdir('{bad}')"

    def change(parts: dict[str, Any]) -> None:
        if kind == "target":
            graph(parts)["nodes"][0]["target"] = "torch.hub.download_url_to_file"
        elif kind == "operator":
            graph(parts)["nodes"][0]["target"] = "torch.ops.aten.add.__class__"
        elif kind == "file":
            graph(parts)["nodes"][0]["target"] = "torch.ops.aten.from_file.default"
        elif kind == "size":
            sizes = [s for key, s in convert.nested(graph(parts)) if key == "as_expr"]
            sizes[0]["expr_str"] = code
        elif kind == "name":
            graph(parts)["inputs"][0]["as_tensor"]["name"] = f"x={code}"
        elif kind == "pickle":
            name, payloads = next(row for row in parts.items() if row[0].endswith("weights_config.json"))
            payload = next(iter(payloads["config"].values()))
            payload["use_pickle"] = True
            parts[name.replace("model_weights_config.json", payload["path_name"])] = pickle.dumps(Evil(bad))
        elif kind == "example":
            buffer = io.BytesIO()
            torch.save(Evil(bad), buffer)
            parts[next(name for name in parts if "sample_inputs" in name)] = buffer.getvalue()

    path = changed(saved[0], change)
    if kind == "compressed":
        with zipfile.ZipFile(saved[0]) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
    if kind == "example":  # it is not read
        assert convert.main([str(path), str(tmp_path / "net.json"), str(tmp_path / "w.h5")]) == 0
    else:
        assert str(path) in refused(path, capsys)
    assert not bad.exists()


def test_broken(
    saved: tuple[pathlib.Path, nn.Module], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files that are cut off, changed, of another kind or not there."""
    data = saved[0].read_bytes()
    path = tmp_path / "broken.pt2"
    for end in [0, 1, 100, *range(1000, len(data), len(data) // 12)]:
        path.write_bytes(data[:end])
        refused(path, capsys)
    begin = data.index(b'"graph_module"')
    for at in range(begin, begin + 4000, 311):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x15]) + data[at + 1 :])
        refused(path, capsys)

    def without_weights(parts: dict[str, Any]) -> None:
        del parts[next(name for name in parts if name.endswith("weight_0"))]

    def short_weights(parts: dict[str, Any]) -> None:
        parts[next(name for name in parts if name.endswith("weight_0"))] = b"1234"

    for change in (without_weights, short_weights, lambda parts: graph(parts)["nodes"].pop()):
        refused(changed(saved[0], change), capsys)
    assert "No such file" in refused(tmp_path / "none.pt2", capsys)


def test_no_form(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program with an operator that networks lack."""

    class Inverse(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(x)

    path = tmp_path / "inverse.pt2"
    torch.export.save(torch.export.export(Inverse(), (torch.eye(3),)), path)
    assert "aten.linalg_inv_ex" in refused(path, capsys)
