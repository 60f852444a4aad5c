# SPDX-License-Identifier: MIT
"""Schedules: the learning rate as a function of the epoch, as in training configurations.

A schedule is called with the epoch, counted from 0. A fraction of an epoch counts batches:

    schedule = schedules.cosine(0.1, epochs=30, warmup_epochs=1)
    solver.learning_rate = schedule(epoch + batch / batches)

With warmup_epochs, the rate first rises from 0 to the full rate. Every function raises InvalidArgumentError on invalid
numbers.
"""

from __future__ import annotations

from ._arguments import offers_names
from ._core import Schedule

__all__ = ["Schedule", "constant", "cosine", "plateau", "step"]


@offers_names
def constant(learning_rate: float, *, warmup_epochs: float = 0) -> Schedule:
    """Return a schedule with a constant rate."""
    return Schedule("constant", learning_rate, 0, warmup_epochs=warmup_epochs)


@offers_names
def step(learning_rate: float, step_epochs: float, gamma: float = 0.1, *, warmup_epochs: float = 0) -> Schedule:
    """Return a schedule that multiplies the rate by `gamma` every `step_epochs` epochs."""
    return Schedule("step", learning_rate, 0, step_epochs=step_epochs, gamma=gamma, warmup_epochs=warmup_epochs)


@offers_names
def cosine(learning_rate: float, epochs: float, minimum: float = 0, *, warmup_epochs: float = 0) -> Schedule:
    """Return a schedule that falls along a cosine to `minimum` at the end of `epochs` epochs."""
    return Schedule("cosine", learning_rate, epochs, minimum=minimum, warmup_epochs=warmup_epochs)


@offers_names
def plateau(learning_rate: float, patience: int = 5, gamma: float = 0.1, *, warmup_epochs: float = 0) -> Schedule:
    """Return a schedule that multiplies the rate by `gamma` when the loss has stopped falling.

    Call report(loss) after each epoch. The rate falls when more than `patience` epochs in a row have brought no new
    lowest loss. state() and set_state() save and restore the schedule's state for checkpoints.
    """
    return Schedule("plateau", learning_rate, 0, patience=patience, gamma=gamma, warmup_epochs=warmup_epochs)
