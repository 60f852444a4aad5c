# SPDX-License-Identifier: MIT
"""Runs of dlprim_train as its tests share them: classifiers, sets of pictures, and whether two runs are the same."""
import csv
import pathlib
from typing import Any

import numpy as np
from commands import CommandTest, Result, idx, network, operator

TRAIN_SET = {"images": "train-images", "labels": "train-labels"}
TEST_SET = {"images": "test-images", "labels": "test-labels"}
Tensors = dict[str, Any]


def classifier(shape: list[int], classes: int, *body: dict[str, Any], data: str = "image", last: str = "fc") -> dict[str, Any]:
    """A network whose operator `last` gives the scores of classes to `prob` and `loss`, behind the operators of its body."""
    return network({data: shape, "label": (shape[:1], "int")}, ["prob", "loss"], *body,
                   operator("InnerProduct", last, body[-1]["outputs"][0] if body else data, outputs=classes),
                   operator("Softmax", "prob", last), operator("SoftmaxWithLoss", "loss", f"{last} label"))


def regression(batch: int, outputs: int, features: int = 6) -> dict[str, Any]:
    """A network that finds numbers y of numbers x."""
    return network({"x": [batch, features], "y": [batch, outputs]}, ["found", "loss"],
                   operator("InnerProduct", "found", "x", outputs=outputs), operator("MSELoss", "loss", "found y"))


def several_labels(batch: int, labels: int, features: int = 6) -> dict[str, Any]:
    """A network that says of several labels whether each is right."""
    loss = "y0 = mean[](max(x0, 0) - x0 * x1 + log1p(exp(-abs(x0))))"
    return network({"x": [batch, features], "y": [batch, labels]}, ["found", "loss"],
                   operator("InnerProduct", "logits", "x", outputs=labels),
                   operator("Activation", "found", "logits", activation="sigmoid"),
                   operator("Pointwise", "each", "logits y", code=loss), operator("Reshape", "loss", "each", dims=[1]))


def quarters(count: int, seed: int) -> tuple[Any, Any]:
    """Pictures of 8 x 8 pixels and their labels: a bright quarter of a noisy picture is the class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, count).astype(np.uint8)
    pictures = random.integers(0, 130, (count, 8, 8)).astype(np.uint8)
    for picture, label in zip(pictures, labels):
        y, x = 4 * (label // 2), 4 * (label % 2)
        picture[y:y + 4, x:x + 4] += 70
    return pictures, labels


class Training(CommandTest):
    """Runs of the configuration CONFIG, of which a test names what differs."""
    CONFIG: dict[str, Any] = {}
    # Tensors of a checkpoint that two runs may have different and still be the same.
    MAY_DIFFER: frozenset[str] = frozenset()

    def config(self, **more: Any) -> pathlib.Path:
        """The file of a configuration; a key that is None is left out."""
        content = self.CONFIG | more
        return self.write("train.json", {key: value for key, value in content.items() if value is not None})

    def train(self, out: str, *arguments: Any, **more: Any) -> Result:
        return self.succeed("train", self.config(**more), "--out", self.folder / out, "--replace", *arguments)

    def refuse_training(self, words: list[str], *arguments: Any, out: str = "no", code: int = 1, **more: Any) -> Result:
        return self.refuse(words, "train", self.config(**more), "--out", self.folder / out, *arguments, code=code)

    def write_set(self, name: str, pictures: Any, labels: Any) -> None:
        self.write(f"{name}-images", idx(pictures))
        self.write(f"{name}-labels", idx(labels))

    def rows(self, out: str) -> list[dict[str, str]]:
        """Of metrics.csv, without the seconds."""
        with open(self.folder / out / "metrics.csv", newline="") as file:
            return [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(file)]

    def bits(self, name: str) -> dict[str, bytes]:
        return {key: values.tobytes() for key, values in self.read_tensors(name).items()}

    def assert_same_run(self, one: str, other: str, last: str = "") -> None:
        """Models, last checkpoints and metrics agree in all but the time."""
        for name in ("model.h5", last or f"checkpoint_{self.CONFIG['epochs']}.h5"):
            first, second = self.bits(f"{one}/{name}"), self.bits(f"{other}/{name}")
            self.assertEqual(sorted(first), sorted(second))
            self.assertEqual([key for key in first if first[key] != second[key] and key not in self.MAY_DIFFER], [], name)
        self.assertEqual(self.rows(one), self.rows(other))


def write_smallest(test: CommandTest, **more: Any) -> pathlib.Path:
    """A configuration that trains in no time: eight pictures of three classes, in files i and l, and net.json."""
    test.write("net.json", network({"x": [4, 1, 4, 4], "label": ([4], "int")}, ["score", "loss"],
                                   operator("InnerProduct", "fc", "x", "score", outputs=3),
                                   operator("SoftmaxWithLoss", "l", "score label", "loss")))
    test.write("i", idx(np.zeros((8, 4, 4), np.uint8)))
    test.write("l", idx(np.arange(8, dtype=np.uint8) % 3))
    return test.write("train.json", {"net": "net.json", "batch": 4, "epochs": 1, "data": {"train": {"images": "i", "labels": "l"}}} | more)
