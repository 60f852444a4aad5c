#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small convolutional network on Fashion-MNIST, with a progress bar, and draws loss and accuracy.

    train_fashion_mnist.py -d gpu --epochs 6 --plot fashion_mnist.png

Fashion-MNIST is 60,000 grey pictures of clothes to train with and 10,000 to test with, in ten classes. On Debian and
Ubuntu the package dataset-fashion-mnist has its four files; --data names a folder where they lie otherwise. About 92 %
of the test pictures come out right after six epochs.

Needs numpy, tqdm and matplotlib.
"""

from __future__ import annotations

import argparse
import gzip
import pathlib
import sys

import dlprim
import numpy as np
from dlprim import nn
from matplotlib.figure import Figure
from tqdm import tqdm

CLASSES = 10
MEAN, DEVIATION = 0.286, 0.353  # of all training pictures' pixels, which lie in 0 to 1


def read_idx(path: pathlib.Path) -> np.ndarray:
    """The array in an IDX file of bytes: four bytes of magic, the last of them the rank, then the sizes."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if raw[:3] != b"\0\0\x08":
        raise ValueError(f"'{path}' is no IDX file of bytes")
    rank = raw[3]
    sizes = np.frombuffer(raw, ">u4", count=rank, offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(sizes)


def load(folder: pathlib.Path, part: str, limit: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Pictures [N, 1, 28, 28] with mean 0 and deviation 1, and their classes [N]; `part` is "train" or "t10k"."""
    images, labels = (read_idx(folder / f"{part}-{what}-ubyte.gz")[:limit] for what in ("images-idx3", "labels-idx1"))
    pixels = (images.astype(np.float32) / 255 - MEAN) / DEVIATION
    return pixels[:, np.newaxis], labels.astype(np.int32)


def make_model(batch: int) -> nn.Model:
    """Three convolutions, each with batch norm and pooling, then two fully connected layers."""
    x = y = nn.Input("data", (batch, 1, 28, 28))
    for channels in (16, 32, 64):
        y = nn.Conv2d(channels, 3, padding=1, bias=False)(y)
        y = nn.max_pool2d(nn.relu(nn.BatchNorm()(y)), 2)
    y = nn.Linear(128, activation="relu")(nn.flatten(y))
    scores = nn.Linear(CLASSES)(nn.dropout(y, 0.25))
    return nn.Model(x, {"scores": scores, "loss": nn.softmax_with_loss(scores)}, name="fashion_mnist")


def accuracy(net: dlprim.Net, images: np.ndarray, labels: np.ndarray, batch: int = 500) -> float:
    """The share of pictures whose highest score is that of their class."""
    right = 0
    for first in range(0, len(images), batch):
        part = images[first : first + batch]
        net.reshape(len(part))  # the last batch may be smaller; plans for both sizes are kept
        scores = net.run(data=part)["scores"]
        right += int((scores.argmax(axis=1) == labels[first : first + batch]).sum())
    return right / len(images)


def train(
    net: dlprim.Net,
    test_net: dlprim.Net,
    train_set: tuple[np.ndarray, np.ndarray],
    test_set: tuple[np.ndarray, np.ndarray],
    epochs: int,
    learning_rate: float,
) -> list[tuple[float, float, float]]:
    """Trains, and returns loss, accuracy of training and accuracy of testing for each epoch."""
    solver = dlprim.Solver(net, "adamw", learning_rate=learning_rate, weight_decay=0.01)
    history: list[tuple[float, float, float]] = []
    shares: list[float] = []
    batch = net.input_shape("data")[0]

    with tqdm(total=epochs * (len(train_set[0]) // batch), unit="batch") as bar:

        def watch(progress: dlprim.FitProgress) -> None:
            """Is called after each batch, whose tensors the net still holds."""
            chosen = net.output("scores").numpy().argmax(axis=1)
            shares.append(float(np.mean(chosen == net.input("label").numpy())))
            bar.update()
            bar.set_postfix(epoch=progress.epoch, loss=f"{progress.loss:.3f}", accuracy=f"{np.mean(shares):.1%}")
            if progress.epoch_done:
                test_net.set_weights(net.weights())
                history.append((progress.loss, float(np.mean(shares)), accuracy(test_net, *test_set)))
                bar.write(
                    f"epoch {progress.epoch}: loss {progress.loss:.3f}, accuracy {history[-1][1]:.1%}, "
                    f"on the test pictures {history[-1][2]:.1%}"
                )
                shares.clear()

        schedule = dlprim.schedules.cosine(learning_rate, epochs, warmup_epochs=min(1, epochs / 4))
        dlprim.fit(net, solver, *train_set, epochs=epochs, schedule=schedule, callbacks=[watch])
    return history


def draw(history: list[tuple[float, float, float]], path: pathlib.Path) -> None:
    """Loss and accuracy by epoch, side by side."""
    losses, train_shares, test_shares = zip(*history)
    epochs = range(1, len(history) + 1)
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(epochs, losses, marker="o")
    left.set(title="Loss", xlabel="epoch", ylim=(0, None))
    right.plot(epochs, train_shares, marker="o", label="training")
    right.plot(epochs, test_shares, marker="o", label="test")
    right.set(title="Accuracy", xlabel="epoch", ylim=(None, 1))
    right.legend()
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
    figure.savefig(path)


def positive(text: str) -> int:
    """An argument that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--device", default="", help="such as cpu, gpu or 0:0 (default: the best OpenCL device)")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--epochs", type=positive, default=6)
    parser.add_argument("--batch", type=positive, default=100)
    parser.add_argument("--rate", type=float, default=0.002, help="the highest learning rate (default: %(default)s)")
    parser.add_argument("--limit", type=positive, help="take this many pictures of each set alone")
    parser.add_argument("--seed", type=int, default=1, help="of the first weights and of dropout")
    parser.add_argument("--plot", type=pathlib.Path, default=pathlib.Path("fashion_mnist.png"))
    parser.add_argument("--save", type=pathlib.Path, help="write the weights to this file (.h5)")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        parser.error(f"there is no folder '{arguments.data}': install dataset-fashion-mnist, or name one by --data")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    train_set = load(arguments.data, "train", arguments.limit)
    test_set = load(arguments.data, "t10k", arguments.limit)

    context = dlprim.Context(arguments.device)
    print(f"on {context.info}")
    model = make_model(arguments.batch)
    print(model)
    net = model.build(context, mode="training", seed=arguments.seed)
    net.initialize()
    test_net = model.build(context, mode="inference", without_losses=True)

    history = train(net, test_net, train_set, test_set, arguments.epochs, arguments.rate)
    draw(history, arguments.plot)
    print(f"{history[-1][2]:.1%} of the test pictures are right; the curves are in {arguments.plot}")
    if arguments.save:
        net.save_weights(arguments.save)


if __name__ == "__main__":
    try:
        main()
    except (dlprim.DlprimError, OSError, ValueError) as error:
        sys.exit(f"train_fashion_mnist.py: {error}")
