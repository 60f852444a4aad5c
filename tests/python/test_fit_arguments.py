# SPDX-License-Identifier: MIT
"""What fit() and run() say to arguments that make no sense, before anything is trained."""

from __future__ import annotations

from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import nn
from small_networks import initialized


def made(context: dlprim.Context) -> tuple[dlprim.Net, dlprim.Solver]:
    net = initialized(context)
    return net, dlprim.Solver(net)


SAMPLES = np.zeros((40, 8)), np.zeros(40)


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"epochs": -1}, ValueError, "epochs of at least 0, not -1"),
        ({"batch": -4}, ValueError, "batch of at least 0, not -4"),
        ({"epochs": 1.5}, TypeError, "float"),
        ({"schedule": 0.1}, TypeError, "schedule takes a callable of the epoch, not a float"),
    ],
)
def test_numbers_that_make_no_sense(host: dlprim.Context, given: Any, error: type[Exception], sentence: str) -> None:
    net, solver = made(host)
    with pytest.raises(error, match=sentence):
        dlprim.fit(net, solver, *SAMPLES, **given)
    assert solver.steps == 0


def test_a_solver_of_another_net_is_refused(host: dlprim.Context) -> None:
    net, other = made(host)[0], made(host)[1]
    with pytest.raises(ValueError, match="this one is another net's"):
        dlprim.fit(net, other, *SAMPLES)
    assert other.steps == 0


def test_a_model_that_is_not_built_is_refused(host: dlprim.Context) -> None:
    model = nn.Sequential([nn.Input("data", (4, 8)), nn.Linear(3), nn.SoftmaxWithLoss()])
    with pytest.raises(TypeError, match="fit\\(\\) trains a dlprim.Net, not a Sequential"):
        dlprim.fit(model, made(host)[1], *SAMPLES)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not as a Sequential; its build\\(context\\) makes a net"):
        dlprim.Net(host, model)  # type: ignore[arg-type]


def test_a_callback_needs_no_list(host: dlprim.Context) -> None:
    told: list[dlprim.FitProgress] = []
    dlprim.fit(*made(host), *SAMPLES, epochs=2, callbacks=told.append)
    assert [progress.batch for progress in told] == [*range(1, 11)] * 2
    losses = [progress.loss for progress in told]
    assert all(np.isfinite(losses)) and told[9].epoch_done


def test_run_takes_arrays_by_name(host: dlprim.Context) -> None:
    net = made(host)[0]
    with pytest.raises(TypeError, match="run\\(\\) takes a dict of arrays by input, not a ndarray"):
        net.run(SAMPLES[0][:4])  # type: ignore[arg-type]
