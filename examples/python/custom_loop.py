#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training loop written by hand, over numpy arrays: own learning rates, gradient clipping, evaluation, checkpoints.

    custom_loop.py -d cpu --epochs 10 --out spirals            # writes a checkpoint after each epoch
    custom_loop.py -d cpu --epochs 10 --out again --resume spirals/epoch_4.h5

A small network learns which arm of a spiral a point lies on. Training that goes on from a checkpoint gives the same
bits as training that was never stopped: the checkpoint holds weights, the solver's state, the random state of dropout,
and numbers of the program's own.

Needs numpy.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import dlprim
import numpy as np
from dlprim import nn

ARMS = 3
BATCH = 50


def make_points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points [count, 2] on three spiral arms, with a little noise, and the arms [count]."""
    random = np.random.default_rng(seed)
    arms = random.integers(0, ARMS, count, dtype=np.int32)
    along = np.sqrt(random.uniform(0.01, 1, count))
    angles = 4.5 * along + 2 * np.pi / ARMS * arms + random.normal(0, 0.12, count)
    points = np.stack([along * np.cos(angles), along * np.sin(angles)], axis=1)
    return points.astype(np.float32), arms


def make_model() -> nn.Model:
    x = nn.Input("data", (BATCH, 2))
    y = nn.Linear(64, activation="relu")(x)
    y = nn.Linear(64, activation="relu")(y)
    scores = nn.Linear(ARMS)(nn.dropout(y, 0.1))
    return nn.Model(x, {"scores": scores, "loss": nn.softmax_with_loss(scores)})


def learning_rate(progress: float, highest: float) -> float:
    """A triangle: up to the highest rate in the first third of the training, then down to 0; progress is 0 to 1."""
    return highest * min(progress * 3, (1 - progress) * 1.5)


def train_epoch(
    net: dlprim.Net,
    solver: dlprim.Solver,
    points: np.ndarray,
    arms: np.ndarray,
    epoch: int,
    epochs: int,
    highest: float,
) -> float:
    """One pass over all points in a new order; the mean loss."""
    order = np.random.default_rng([7, epoch]).permutation(len(points))  # of the epoch alone, so that resuming meets it
    batches = order[: len(order) // BATCH * BATCH].reshape(-1, BATCH)
    total = 0.0
    for number, chosen in enumerate(batches):
        solver.learning_rate = learning_rate((epoch + number / len(batches)) / epochs, highest)
        net.set_input("data", points[chosen])
        net.set_input("label", arms[chosen])
        solver.step()  # forward, backward, clipping, update: enqueued, not waited for
        total += net.output("loss").item()  # waits
    return total / len(batches)


def evaluate(net: dlprim.Net, points: np.ndarray, arms: np.ndarray) -> float:
    """The share of points whose arm has the highest score."""
    net.reshape(len(points))
    return float(np.mean(net.run(data=points)["scores"].argmax(axis=1) == arms))


def positive(text: str) -> int:
    """An argument that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--device", default="", help="such as cpu, gpu or 0:0 (default: the best OpenCL device)")
    parser.add_argument("--epochs", type=positive, default=10)
    parser.add_argument("--points", type=positive, default=2000, help="to train with (default: %(default)s)")
    parser.add_argument("--rate", type=float, default=0.01, help="the highest learning rate (default: %(default)s)")
    parser.add_argument("--clip", type=float, default=1.0, help="the largest norm of all gradients together")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("spirals"), help="folder for checkpoints")
    parser.add_argument("--resume", type=pathlib.Path, help="a checkpoint to go on from")
    arguments = parser.parse_args()
    if arguments.points < BATCH:
        parser.error(f"--points {arguments.points} does not fill a batch of {BATCH}")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    context = dlprim.Context(arguments.device)
    print(f"on {context.info}")
    model = make_model()
    net = model.build(context, mode="training", seed=1)
    net.initialize()
    solver = dlprim.Solver(net, "adam", clip_norm=arguments.clip)
    test_net = model.build(context, mode="inference", without_losses=True)

    first = 0
    if arguments.resume:
        first = int(solver.load_checkpoint(arguments.resume).get("epoch", 0))
        print(f"going on after epoch {first} of {arguments.resume}")
    arguments.out.mkdir(parents=True, exist_ok=True)

    train_set, test_set = make_points(arguments.points, seed=1), make_points(1000, seed=2)
    for epoch in range(first, arguments.epochs):
        loss = train_epoch(net, solver, *train_set, epoch, arguments.epochs, arguments.rate)
        test_net.set_weights(net.weights())
        share = evaluate(test_net, *test_set)
        print(f"epoch {epoch + 1}: loss {loss:.9g}, {share:.1%} of the test points right")
        solver.save_checkpoint(arguments.out / f"epoch_{epoch + 1}.h5", {"epoch": epoch + 1})
    net.save_weights(arguments.out / "model.h5")


if __name__ == "__main__":
    try:
        main()
    except (dlprim.DlprimError, OSError) as error:
        sys.exit(f"custom_loop.py: {error}")
