# SPDX-License-Identifier: MIT
"""train(): what the command dlprim_train does; fit(): a training loop over numpy arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._core import TrainProgress, TrainResult
from ._source import JsonSource, json_source
from .errors import NumericError
from .net import Net, Pairs, Progress
from .solver import Solver

__all__ = ["FitProgress", "TrainProgress", "TrainResult", "fit", "train"]

PathLike = Union[str, "os.PathLike[str]"]


def train(
    context: _core.Context,
    config: JsonSource,
    *,
    out: PathLike = "training",
    resume: PathLike | None = None,
    epochs: int = 0,
    precision: str | None = None,
    precisions: Pairs = (),
    on_progress: Callable[[TrainProgress], object] | None = None,
    on_note: Callable[[str], object] | None = None,
    on_planning: Progress | None = None,
) -> TrainResult:
    """Train a network from a training configuration (docs/json.md).

    Other threads' calls on the context's nets wait until it is done. Ctrl-C ends it after the batch with
    KeyboardInterrupt, and so does an exception of a callback, which arrives as it was raised; checkpoints
    of the epochs before are there, and resume goes on from them.

    Args:
        context: the device.
        config: the configuration as a text, a dict, or a path: a str that ends in ".json", or an
            os.PathLike. Paths in it are relative to the file's folder; those of a text or dict to the
            working folder.
        out: folder, made if need be: checkpoints, model.h5, metrics.csv, report.html.
        resume: checkpoint to go on from.
        epochs: instead of the configuration's, when above 0.
        precision: "fp32", "tf32", "fp16" or "bf16", over the configuration's.
        precisions: by operator name or type: a dict or pairs.
        on_progress: called with a TrainProgress after each batch, and after each epoch with epoch_done.
        on_note: called with remarks before it trains.
        on_planning: called as (what, done, total) while nets plan and compile.

    Raises:
        FormatError: what is wrong in configuration or data.
        NumericError: a loss that is not finite; it names the first operator whose output is not.
    """
    text, is_path = json_source(config, "a training configuration")
    return _core.train(
        context,
        config=text if is_path else "",
        text="" if is_path else text,
        out=os.fspath(out),
        resume="" if resume is None else os.fspath(resume),
        epochs=epochs,
        precision=precision,
        precisions=list(precisions.items() if isinstance(precisions, Mapping) else precisions),
        on_note=on_note,
        on_progress=on_progress,
        on_planning=on_planning,
    )


@dataclass(frozen=True)
class FitProgress:
    """How far fit() is: told after each batch, and after each epoch with epoch_done."""

    epoch: int  #: the epoch that runs, from 1
    epochs: int
    batch: int  #: batches of the epoch that are done
    batches: int  #: batches of an epoch
    loss: float  #: the network's losses by their weights, mean over the epoch's batches so far
    learning_rate: float
    epoch_done: bool = False


def fit(
    net: Net,
    solver: Solver,
    x: ArrayLike | Mapping[str, ArrayLike],
    y: ArrayLike | None = None,
    *,
    epochs: int = 1,
    batch: int = 0,
    shuffle: bool = True,
    seed: int = 0,
    schedule: Callable[[float], float] | None = None,
    callbacks: Iterable[Callable[[FitProgress], object]] = (),
) -> list[FitProgress]:
    """Train a net on arrays whose first dimension counts samples, and return what each epoch led to.

    Each batch waits for its loss. Samples at an epoch's end that fill no batch are left out; with shuffle
    these are others in every epoch. An exception of a callback ends the training and arrives.

    Args:
        net: in training mode, with a loss and values of its parameters.
        solver: of this net.
        x: samples of the first input, or a dict of all inputs' samples by name.
        y: samples of the second input, such as labels.
        epochs: how often all samples are seen.
        batch: samples per step; 0: as many as the net's inputs have.
        shuffle: whether each epoch has an order of its own, which `seed` decides.
        seed: of the orders.
        schedule: the learning rate by epoch, counted from 0, such as dlprim.schedules make.
        callbacks: each is called with a FitProgress; one that returns True ends the training.

    Raises:
        InvalidArgumentError: as Net.set_input(); there is also no loss.
        ValueError: arrays of other lengths than the first, fewer samples than a batch, or another net's solver.
        NumericError: a loss that is not finite.
    """
    if solver.net is not net:
        raise ValueError("fit() needs the solver of the net that it trains: dlprim.Solver(net, ...)")
    inputs = _named(net, x, y)
    if batch > 0 and any(net.input_shape(name)[0] != batch for name in inputs):
        net.reshape(batch)
    order = _Order(inputs, net.input_shape(next(iter(inputs)))[0], seed if shuffle else None)
    callbacks = list(callbacks)
    history: list[FitProgress] = []
    for epoch in range(epochs):
        losses: list[float] = []
        for number, samples in enumerate(order.batches(epoch)):
            if schedule is not None:
                solver.learning_rate = schedule(epoch + number / order.count)
            for name, array in inputs.items():
                net.set_input(name, array[samples])
            solver.step()
            losses.append(_loss_of(net, epoch, number))
            done = number + 1 == order.count
            mean = float(np.mean(losses))
            progress = FitProgress(epoch + 1, epochs, number + 1, order.count, mean, solver.learning_rate, done)
            if done:
                history.append(progress)
            answers = [callback(progress) for callback in callbacks]
            if any(answer is True for answer in answers):
                return history
    return history


def _named(net: Net, x: ArrayLike | Mapping[str, ArrayLike], y: ArrayLike | None) -> dict[str, NDArray[Any]]:
    """Arrays by the names of inputs."""
    given = dict(x) if isinstance(x, Mapping) else dict(zip(net.input_names, [x] if y is None else [x, y]))
    if isinstance(x, Mapping) and y is not None:
        raise TypeError("fit() takes y only where x is no dict: the dict holds all inputs")
    missing = [name for name in net.input_names if name not in given]
    if missing:
        raise ValueError(f"fit() needs samples for input '{missing[0]}'")
    if not net.has_loss:
        raise ValueError("fit() needs a network with a loss: an output named 'loss...', or one with a loss_weight")
    arrays = {name: np.asarray(array) for name, array in given.items()}
    for name, array in arrays.items():
        if array.ndim == 0:
            raise ValueError(f"input '{name}' is given a single number: its first dimension counts samples")
    return arrays


class _Order:
    """Which samples each batch of an epoch holds."""

    def __init__(self, inputs: Mapping[str, NDArray[Any]], batch: int, seed: int | None) -> None:
        lengths = {name: len(array) for name, array in inputs.items()}
        self._samples = next(iter(lengths.values()))
        for name, length in lengths.items():
            if length != self._samples:
                raise ValueError(f"input '{name}' has {length} samples, the first input has {self._samples}")
        self.count = self._samples // batch
        if self.count == 0:
            raise ValueError(f"{self._samples} samples are fewer than a batch of {batch}")
        self._batch = batch
        self._seed = seed

    def batches(self, epoch: int) -> Iterator[Any]:
        """Indices or slices, batch by batch."""
        if self._seed is None:
            for first in range(0, self.count * self._batch, self._batch):
                yield slice(first, first + self._batch)
            return
        order = np.random.default_rng([self._seed, epoch]).permutation(self._samples)
        for number in range(self.count):
            yield order[number * self._batch : (number + 1) * self._batch]


def _loss_of(net: Net, epoch: int, number: int) -> float:
    """The last step's losses by their weights; waits."""
    total = 0.0
    for name, weight in net.loss_weights.items():
        total += weight * float(np.sum(net.output(name).numpy(), dtype=np.float64))
    if not np.isfinite(total):
        origin = net.first_nan()
        raise NumericError(
            f"the loss is {abs(total)} in epoch {epoch + 1}, batch {number + 1}"
            + (f"; the first operator whose output is not finite is '{origin}'" if origin else "")
            + "; a lower learning rate or gradient clipping may help"
        )
    return total
