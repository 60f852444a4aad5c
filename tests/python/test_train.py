# SPDX-License-Identifier: MIT
"""train(): from a configuration, with callbacks, to weights that a Net takes."""

from __future__ import annotations

import json
import pathlib
import struct
import threading
import time
from typing import Any

import dlprim
import numpy as np
import pytest
from small_networks import classifier


def write_idx(path: pathlib.Path, array: np.ndarray) -> None:
    """IDX, as of MNIST: two zeros, the type (8: bytes), the rank, the sizes."""
    path.write_bytes(struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes())


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    rng = np.random.default_rng(1)
    pictures = rng.integers(0, 256, (64, 4, 2), dtype=np.uint8)
    labels = pictures.reshape(64, 8)[:, :3].argmax(axis=1).astype(np.uint8)
    write_idx(tmp_path / "images", pictures)
    write_idx(tmp_path / "labels", labels)
    network = classifier()
    network["inputs"][0]["shape"] = [4, 1, 4, 2]
    (tmp_path / "net.json").write_text(json.dumps(network))
    return tmp_path


def configuration(folder: pathlib.Path | str = "") -> dict[str, Any]:
    prefix = f"{folder}/" if folder else ""
    files = {"images": f"{prefix}images", "labels": f"{prefix}labels"}
    return {
        "net": f"{prefix}net.json",
        "batch": 4,
        "epochs": 3,
        "data": {"train": files, "test": files},
        "solver": {"learning_rate": 0.02},
        "schedule": {"type": "cosine"},
    }


def test_a_training_tells_and_leaves_weights(context: dlprim.Context, folder: pathlib.Path) -> None:
    told: list[dlprim.TrainProgress] = []
    result = dlprim.train(context, configuration(folder), out=folder / "out", on_progress=told.append)
    assert len(told) == 3 * (16 + 1)
    assert [p.epoch for p in told if p.epoch_done] == [1, 2, 3]
    last = told[-1]
    assert (last.epochs, last.batch, last.batches) == (3, 16, 16)
    assert last.test_accuracy == result.test_accuracy
    assert isinstance(result, dlprim.TrainResult)
    assert result.epochs == 3
    assert result.train_loss < told[0].loss
    assert result.train_accuracy > 0.5
    assert last.images_per_second > 0 and 0 <= last.learning_rate <= 0.02 and last.accuracy > 0 and last.test_loss > 0
    assert dict(last.metrics)["accuracy"] == last.accuracy
    assert dict(last.test_metrics)["accuracy"] == last.test_accuracy
    assert pathlib.Path(result.checkpoint).is_file()
    assert "epoch=3/3" in repr(last)
    assert result.model in repr(result)
    net = dlprim.Net.from_json(context, folder / "net.json", "inference")
    net.load_weights(result.model)


def test_a_configuration_is_a_dict_a_text_or_a_file(
    host: dlprim.Context, folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "train.json").write_text(json.dumps(configuration()))  # paths relative to its folder
    of_file = dlprim.train(host, folder / "train.json", out=folder / "a").train_loss
    assert dlprim.train(host, str(folder / "train.json"), out=folder / "b").train_loss == of_file
    assert dlprim.train(host, json.dumps(configuration(folder)), out=folder / "c").train_loss == of_file
    monkeypatch.chdir(folder)
    assert dlprim.train(host, configuration(), out="d").train_loss == of_file


def test_a_training_is_resumed(host: dlprim.Context, folder: pathlib.Path) -> None:
    whole = dlprim.train(host, configuration(folder), out=folder / "whole")

    def stop(progress: dlprim.TrainProgress) -> None:
        if progress.epoch == 3:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        dlprim.train(host, configuration(folder), out=folder / "half", on_progress=stop)
    told: list[dlprim.TrainProgress] = []
    resumed = dlprim.train(
        host, configuration(folder), out=folder / "rest", resume=folder / "half" / "checkpoint_2.h5",
        on_progress=told.append)  # fmt: skip
    assert told[0].epoch == 3
    assert resumed.train_loss == whole.train_loss


def test_options_go_over_the_configuration(host: dlprim.Context, folder: pathlib.Path) -> None:
    notes: list[str] = []
    planning: list[tuple[str, int, int]] = []
    result = dlprim.train(
        host,
        configuration(folder),
        out=folder / "out",
        epochs=1,
        precision="tf32",
        precisions={"Convolution2D": "fp32"},
        on_note=notes.append,
        on_planning=lambda *told: planning.append(told),
    )
    assert result.epochs == 1
    assert any("Convolution2D" in note for note in notes)
    with pytest.raises(dlprim.InvalidArgumentError, match="fp8"):
        dlprim.train(host, configuration(folder), precision="fp8")


def test_any_callback_that_throws_ends_it(host: dlprim.Context, folder: pathlib.Path) -> None:
    def fails(*told: object) -> None:
        raise LookupError("stop")

    config = configuration(folder)
    with pytest.raises(LookupError, match="stop"):
        dlprim.train(host, config, out=folder / "a", on_progress=fails)
    with pytest.raises(LookupError, match="stop"):
        dlprim.train(host, config, out=folder / "b", precisions={"Convolution2D": "fp32"}, on_note=fails)
    assert dlprim.train(host, config, out=folder / "c").epochs == 3  # the context serves on


def test_other_threads_run_beside_a_training(host: dlprim.Context, folder: pathlib.Path) -> None:
    config = {**configuration(folder), "epochs": 30}
    thread = threading.Thread(target=dlprim.train, args=(host, config), kwargs={"out": folder / "out"})
    turns = 0
    thread.start()
    while thread.is_alive():
        turns += 1
        time.sleep(0.001)
    assert turns > 10


def test_planning_is_ended_by_its_callback(fresh_context: dlprim.Context, folder: pathlib.Path) -> None:
    if fresh_context.info.id == "cpu":
        pytest.skip("the host compiles nothing")

    def fails(what: str, done: int, total: int) -> None:
        raise LookupError(what)

    with pytest.raises(LookupError):
        dlprim.train(fresh_context, configuration(folder), out=folder / "out", on_planning=fails)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"epoch": 3}, dlprim.FormatError, "epochs"),
        ({"batch": 0}, dlprim.FormatError, "batch"),
        ({"net": "gone.json"}, FileNotFoundError, "gone.json"),
        ({"solver": {"type": "adagrad"}}, dlprim.FormatError, "adagrad"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(
    host: dlprim.Context, folder: pathlib.Path, change: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        dlprim.train(host, {**configuration(folder), **change}, out=folder / "out")


def test_a_loss_that_is_not_finite_is_a_numeric_error(host: dlprim.Context, folder: pathlib.Path) -> None:
    config = {**configuration(folder), "solver": {"type": "sgd", "learning_rate": 1e30}}
    with pytest.raises(dlprim.NumericError, match="learning rate"):
        dlprim.train(host, config, out=folder / "out")
