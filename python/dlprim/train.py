# SPDX-License-Identifier: MIT
"""train(): the same as the command dlprim_train. fit(): a training loop over numpy arrays."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._arguments import offers_names
from ._core import Schedule, TrainProgress, TrainResult
from ._source import JsonSource, json_source
from .errors import NumericError
from .net import Net, Pairs, Progress
from .solver import Solver

__all__ = ["FitProgress", "TrainProgress", "TrainResult", "fit", "train"]

PathLike = Union[str, "os.PathLike[str]"]


@offers_names
def train(
    context: _core.Context,
    config: JsonSource,
    *,
    out: PathLike = "training",
    resume: PathLike | None = None,
    replace: bool = False,
    epochs: int = 0,
    precision: str | None = None,
    precisions: Pairs = (),
    on_progress: Callable[[TrainProgress], object] | None = None,
    on_note: Callable[[str], object] | None = None,
    on_planning: Progress | None = None,
) -> TrainResult:
    """Train a network from a training configuration (docs/json.md).

    Calls of other threads on nets of the context wait until it ends. Ctrl-C ends it after the batch with
    KeyboardInterrupt. An exception of a callback also ends it, and is raised unchanged. Checkpoints of the earlier
    epochs exist then, and resume continues from them.

    Args:
        context: the device.
        config: the configuration as a text, a dict, or a path: a str that ends in ".json", or an os.PathLike. Paths in
            it are relative to the file's folder, or for a text or dict to the working folder.
        out: folder for checkpoints, model.h5, metrics.csv and report.html. It is created if necessary.
        resume: checkpoint from which to continue; "latest" is the last one in `out`, if there is any.
        replace: whether results of an earlier run in `out` are removed. Without it they are an error, unless the
            training continues from the last checkpoint among them.
        epochs: if positive, replaces the configuration's number.
        precision: "fp32", "tf32", "fp16" or "bf16"; takes precedence over the configuration.
        precisions: by operator name or type: a dict or pairs.
        on_progress: called with a TrainProgress after each batch, and after each epoch with epoch_done.
        on_note: called with remarks before, during and after the training.
        on_planning: called with (what, done, total) while nets plan and compile.

    Raises:
        FormatError: the configuration or the data are wrong.
        NumericError: a loss is not finite. The message names the first operator whose output is not finite.
    """
    text, is_path = json_source(config, "a training configuration")
    return _core.train(
        context,
        config=text if is_path else "",
        text="" if is_path else text,
        out=os.fspath(out),
        resume="" if resume is None else os.fspath(resume),
        replace=replace,
        epochs=epochs,
        precision=precision,
        precisions=list(precisions.items() if isinstance(precisions, Mapping) else precisions),
        on_note=on_note,
        on_progress=on_progress,
        on_planning=on_planning,
    )


@dataclass(frozen=True)
class FitProgress:
    """The progress of fit(), after each batch, and after each epoch with epoch_done."""

    epoch: int  #: the current epoch, from 1
    epochs: int
    batch: int  #: number of finished batches of the epoch
    batches: int  #: number of batches per epoch
    loss: float  #: sum of the network's losses times their weights, mean over the epoch's batches so far
    learning_rate: float
    epoch_done: bool = False


@offers_names
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
    callbacks: Callable[[FitProgress], object] | Iterable[Callable[[FitProgress], object]] = (),
) -> list[FitProgress]:
    """Train a net on arrays whose first dimension counts samples. Return the results of each epoch.

    Each batch waits for its loss. Samples at the end of an epoch that do not fill a batch are left out; with shuffle
    these are others in every epoch. An exception of a callback ends the training and is passed on.

    Args:
        net: in training mode, with a loss and with values of its parameters.
        solver: of this net.
        x: samples of the first input, or a dict with the samples of all inputs by name.
        y: samples of the second input, such as labels.
        epochs: how often all samples are used.
        batch: samples per step; 0 means as many as the net's inputs have.
        shuffle: whether each epoch has an order of its own, which depends on `seed`.
        seed: of the orders.
        schedule: the learning rate as a function of the epoch, counted from 0, such as those of dlprim.schedules.
        callbacks: one or several, each called with a FitProgress. One that returns True ends the training.

    Raises:
        InvalidArgumentError: as Net.set_input(), or the net has no loss.
        ValueError: arrays have different lengths, there are fewer samples than a batch, the number of epochs or samples
            is negative, the schedule's warm-up is longer than the run, or the solver belongs to another net.
        NumericError: a loss is not finite.
    """
    _check(net, solver, epochs, batch, schedule)
    inputs = _named(net, x, y)
    if batch > 0 and any(net.input_shape(name)[0] != batch for name in inputs):
        net.reshape(batch)
    order = _Order(inputs, net.input_shape(next(iter(inputs)))[0], seed if shuffle else None)
    called = [callbacks] if callable(callbacks) else list(callbacks)
    history: list[FitProgress] = []
    for epoch in range(epochs):
        total = 0.0
        for number, samples in enumerate(order.batches(epoch)):
            if schedule is not None:
                solver.learning_rate = schedule(epoch + number / order.count)
            for name, array in inputs.items():
                net.set_input(name, array[samples])
            solver.step()
            total += _loss_of(net, epoch, number)
            done = number + 1 == order.count
            mean = total / (number + 1)
            progress = FitProgress(epoch + 1, epochs, number + 1, order.count, mean, solver.learning_rate, done)
            if done:
                history.append(progress)
            answers = [callback(progress) for callback in called]
            if any(answer is True for answer in answers):
                return history
    return history


def _check(net: Net, solver: Solver, epochs: int, batch: int, schedule: object) -> None:
    """Checks the arguments, so that errors are not raised in the middle of a training."""
    if not isinstance(net, Net):
        raise TypeError(f"fit() trains a dlprim.Net, not a {type(net).__name__}")
    if not isinstance(solver, Solver):
        raise TypeError(f"fit() takes a dlprim.Solver of the net, not a {type(solver).__name__}")
    if solver.net is not net:
        raise ValueError("fit() takes a solver of the net that it trains; this one is another net's")
    for name, value in (("epochs", epochs), ("batch", batch)):
        if operator.index(value) < 0:
            raise ValueError(f"fit() takes {name} of at least 0, not {value}")
    if schedule is not None and not callable(schedule):
        raise TypeError(
            f"schedule takes a callable of the epoch, not a {type(schedule).__name__}; dlprim.schedules makes some"
        )
    if isinstance(schedule, Schedule) and schedule.warmup_epochs > epochs:
        raise ValueError(
            f"the schedule's warmup_epochs is {schedule.warmup_epochs:g}, but the run has {epochs} epochs: "
            "the learning rate would never be reached"
        )


def _named(net: Net, x: ArrayLike | Mapping[str, ArrayLike], y: ArrayLike | None) -> dict[str, NDArray[Any]]:
    """Arrays by input name."""
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
    """The samples of each batch of an epoch."""

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
        """Indices or slices, one per batch."""
        if self._seed is None:
            for first in range(0, self.count * self._batch, self._batch):
                yield slice(first, first + self._batch)
            return
        order = np.random.default_rng([self._seed, epoch]).permutation(self._samples)
        for number in range(self.count):
            yield order[number * self._batch : (number + 1) * self._batch]


def _loss_of(net: Net, epoch: int, number: int) -> float:
    """The sum of the last step's losses times their weights. Waits."""
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
