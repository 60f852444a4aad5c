# SPDX-License-Identifier: MIT
"""Solver: steps against PyTorch, options, schedules, checkpoints, lifetimes, and fit()."""

from __future__ import annotations

import copy
import gc
import math
import pathlib
import pickle
from typing import Any

import dlprim
import numpy as np
import pytest
from dlprim import schedules
from small_networks import assert_same_weights, classifier, initialized, samples, set_batch


def feed(net: dlprim.Net, number: int) -> None:
    set_batch(net, *samples(seed=number))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("sgd", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
        ("adam", {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-6, "weight_decay": 0.01}),
        ("adamw", {"weight_decay": 0.1}),
    ],
)
def test_steps_are_those_of_pytorch(context: dlprim.Context, torch: Any, kind: str, options: dict[str, Any]) -> None:
    net = initialized(context)
    params = {name: torch.tensor(array, requires_grad=True) for name, array in net.weights().items()}
    solver = dlprim.Solver(net, kind, learning_rate=0.05, **options)
    theirs = dict(options)
    if kind != "sgd":
        theirs["betas"] = (theirs.pop("beta1", 0.9), theirs.pop("beta2", 0.999))
        theirs["eps"] = theirs.pop("epsilon", 1e-8)
    optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind](
        params.values(), lr=0.05, **theirs
    )
    for number in range(5):
        feed(net, number)
        solver.step()
        data, labels = (torch.from_numpy(array) for array in samples(seed=number))
        hidden = torch.relu(torch.nn.functional.linear(data, params["fc1.0"], params["fc1.1"]))
        scores = torch.nn.functional.linear(hidden, params["fc2.0"], params["fc2.1"])
        loss = torch.nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        np.testing.assert_allclose(net.output("loss").numpy()[0], loss.item(), rtol=1e-4)
    for name, array in net.weights().items():
        np.testing.assert_allclose(array, params[name].detach().numpy(), rtol=1e-3, atol=1e-5)
    assert solver.steps == 5


def test_every_option_is_a_keyword(host: dlprim.Context) -> None:
    options = {
        "kind": "sgd",
        "learning_rate": 0.5,
        "momentum": 0.9,
        "nesterov": True,
        "beta1": 0.8,
        "beta2": 0.9,
        "epsilon": 1e-3,
        "weight_decay": 0.1,
        "clip_norm": 1.0,
        "clip_value": 2.0,
        "accumulate": 2,
        "shards": 1,
        "loss_scale": 128.0,
        "loss_scale_steps": 3,
        "average": 0.5,
        "guard_loss": True,
    }
    net = initialized(host)
    solver = dlprim.Solver(net, **options)
    assert solver.options == options
    assert solver.net is net
    assert solver.loss_scale() == 1
    feed(net, 0)
    solver.step()
    assert solver.steps == 0  # accumulates
    solver.step()
    assert solver.steps == 1
    assert "sgd" in repr(solver)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"kind": "adagrad"}, ValueError, "'adagrad' is none of"),
        ({"learning_rate": -1}, ValueError, "learning rate -1"),
        ({"learning_rate": float("nan")}, ValueError, "(?i)learning rate .*nan"),
        ({"beta1": 1}, ValueError, "beta1"),
        ({"accumulate": 0}, ValueError, "accumulate"),
        ({"shards": 0}, ValueError, "shards"),
        ({"shards": 2, "accumulate": 2}, ValueError, "only one of them"),
        ({"nesterov": True}, ValueError, "momentum"),
        ({"learning_rate": "fast"}, TypeError, "learning_rate takes a number"),
        ({"momentun": 1}, TypeError, "momentun"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    host: dlprim.Context, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        dlprim.Solver(initialized(host), **options)


def test_shards_are_added_before_an_update(context: dlprim.Context) -> None:
    """Two shards are two accumulated batches, bit for bit: dividing by 2 rounds nothing."""
    results = []
    ways: list[dict[str, Any]] = [{"shards": 2}, {"accumulate": 2}]
    for options in ways:
        net = initialized(context)
        solver = dlprim.Solver(net, "sgd", learning_rate=0.1, **options)
        for step in range(4):
            feed(net, step)
            solver.step()
        assert solver.steps == 2
        results.append(net.weights())
    assert_same_weights(*results)


def test_a_solver_wants_a_net_in_training(host: dlprim.Context) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match="training mode"):
        dlprim.Solver(initialized(host, mode="inference"))
    with pytest.raises(TypeError, match="dlprim.Net, not on a str"):
        dlprim.Solver("net")


def test_the_learning_rate_is_a_property(context: dlprim.Context) -> None:
    net = initialized(context)
    solver = dlprim.Solver(net, "sgd", learning_rate=0.1)
    assert solver.learning_rate == 0.1
    solver.learning_rate = 0
    before = net.weights()
    feed(net, 0)
    solver.step()
    assert_same_weights(net.weights(), before)
    for wrong in (-1, math.inf):
        with pytest.raises(ValueError, match="learning rate"):
            solver.learning_rate = wrong
    assert solver.learning_rate == 0


def test_step_if_asks_and_passes_on_exceptions(context: dlprim.Context) -> None:
    net = initialized(context)
    solver = dlprim.Solver(net, learning_rate=0.1)
    feed(net, 0)
    before = net.weights()
    assert solver.step_if(lambda: net.output("loss").numpy()[0] < 0) is False
    with pytest.raises(LookupError, match="no"):
        solver.step_if(lambda: {}["no"])
    assert_same_weights(net.weights(), before)
    assert solver.steps == 0
    assert solver.step_if(lambda: True) is True
    assert solver.steps == 1
    assert np.any(net.weights()["fc1.0"] != before["fc1.0"])


def test_a_guarded_step_is_called_off(context: dlprim.Context) -> None:
    net = initialized(context)
    solver = dlprim.Solver(net, guard_loss=True)
    feed(net, 0)
    solver.step()
    before = net.weights()
    net.set_input("data", np.full((4, 8), np.nan))
    solver.step()
    solver.call_off()
    assert_same_weights(net.weights(), before)
    assert solver.steps == 1
    with pytest.raises(dlprim.InvalidArgumentError, match="call_off"):
        solver.call_off(2)


def test_averages_are_those_of_the_rule(context: dlprim.Context) -> None:
    net = initialized(context)
    solver = dlprim.Solver(net, "sgd", learning_rate=0.1, average=0.9)
    with pytest.raises(dlprim.InvalidArgumentError):
        solver.use_averages()
    averages: dict[str, Any] = {}
    for step in range(5):
        feed(net, step)
        solver.step()
        keep = min(0.9, (1 + step) / (10 + step)) if step else 0
        for name, now in net.weights().items():
            averages[name] = keep * averages.get(name, now) + (1 - keep) * now
    solver.use_averages()
    for name, array in net.weights().items():
        np.testing.assert_allclose(array, averages[name], rtol=1e-5, atol=1e-6)


def test_a_solver_keeps_a_net_that_is_deleted(context: dlprim.Context) -> None:
    net = initialized(context)
    solver = dlprim.Solver(net)
    feed(net, 0)
    del net
    gc.collect()
    solver.step()
    output = solver.net.output("loss")
    assert np.isfinite(output.numpy()[0])
    solver.net.set_input("data", np.zeros((4, 8)))
    solver.step()
    assert solver.steps == 2


def test_a_net_outlives_its_solver(context: dlprim.Context) -> None:
    net = initialized(context)
    dlprim.Solver(net)
    gc.collect()
    feed(net, 0)
    net.forward()
    assert np.isfinite(net.output("loss").numpy()[0])


def test_a_checkpoint_goes_on_bit_by_bit(context: dlprim.Context, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "checkpoint.h5"
    net = initialized(context)
    solver = dlprim.Solver(net, learning_rate=0.02)
    for number in range(6):
        if number == 3:
            solver.save_checkpoint(path, {"epoch": 2, "best": 0.25})
        feed(net, number)
        solver.step()
    other = initialized(context, seed=9)
    resumed = dlprim.Solver(other)
    assert resumed.load_checkpoint(str(path)) == {"epoch": 2.0, "best": 0.25}
    assert (resumed.steps, resumed.learning_rate) == (3, 0.02)
    for number in range(3, 6):
        feed(other, number)
        resumed.step()
    assert_same_weights(other.weights(), net.weights())
    with pytest.raises(FileNotFoundError):
        resumed.load_checkpoint(tmp_path / "gone.h5")
    net.save_weights(tmp_path / "weights.h5")
    with pytest.raises(dlprim.FormatError, match="not a checkpoint"):
        resumed.load_checkpoint(tmp_path / "weights.h5")
    with pytest.raises(ValueError, match="a,b"):
        solver.save_checkpoint(path, {"a,b": 1})


def test_a_solver_is_not_pickled_but_says_what_is(host: dlprim.Context) -> None:
    solver = dlprim.Solver(initialized(host))
    for refused in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="save_checkpoint"):
            refused(solver)


def test_schedules_are_functions_of_the_epoch(torch: Any) -> None:
    cosine = schedules.cosine(0.1, epochs=10, minimum=0.01, warmup_epochs=2)
    assert cosine(0) == 0
    assert cosine(1) == pytest.approx(0.05)
    assert cosine(2) == pytest.approx(0.1)
    assert cosine(6) == pytest.approx(0.055)
    assert cosine.rate(10) == pytest.approx(0.01)
    assert schedules.constant(0.3)(7.5) == 0.3
    step = schedules.step(1.0, step_epochs=3, gamma=0.5)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    theirs = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    for epoch in range(9):
        assert step(epoch) == pytest.approx(theirs.get_last_lr()[0])
        optimizer.step()
        theirs.step()


def test_a_plateau_learns_from_losses_and_is_kept() -> None:
    plateau = schedules.plateau(1.0, patience=1, gamma=0.5)
    for loss in (3.0, 2.0, 2.0):
        plateau.report(loss)
    assert plateau(3) == 1.0
    kept = schedules.plateau(1.0, patience=1, gamma=0.5)
    kept.set_state({**plateau.state(), "epoch": 3.0})
    for schedule in (plateau, kept):
        schedule.report(2.5)
        assert schedule(4) == 0.5


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: schedules.constant(-1), "rate of -1"),
        (lambda: schedules.cosine(1, float("nan")), "epochs"),
        (lambda: schedules.step(1, 0), "step_epochs is 0"),
        (lambda: schedules.plateau(1, patience=-1), "patience is -1"),
        (lambda: schedules.Schedule("linear", 1, 1), "'linear' is none of"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(make: Any, says: str) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match=says):
        make()


def test_fit_learns_and_tells(context: dlprim.Context) -> None:
    net = initialized(context)
    solver = dlprim.Solver(net, learning_rate=0.02)
    data, labels = samples(402)
    told: list[dlprim.FitProgress] = []
    schedule = schedules.cosine(0.02, epochs=4)
    history = dlprim.fit(net, solver, data, labels, epochs=4, batch=20, schedule=schedule, callbacks=[told.append])
    assert len(told) == 4 * 20
    assert [progress.epoch for progress in history] == [1, 2, 3, 4]
    assert all(progress.epoch_done and progress.batch == progress.batches == 20 for progress in history)
    assert history[-1].loss < 0.5 * history[0].loss
    assert told[0].learning_rate == 0.02
    assert history[-1].learning_rate == schedule(3 + 19 / 20)
    right = net(data[:20], labels[:20])["prob"].argmax(axis=1) == labels[:20]
    assert right.mean() > 0.8


def test_fit_is_what_a_loop_by_hand_does(context: dlprim.Context) -> None:
    fitted, plain = initialized(context), initialized(context)
    data, labels = samples(12)
    dlprim.fit(fitted, dlprim.Solver(fitted), {"data": data, "label": labels}, epochs=2, shuffle=False)
    solver = dlprim.Solver(plain)
    for number in range(6):
        batch = slice(4 * (number % 3), 4 * (number % 3) + 4)
        set_batch(plain, data[batch], labels[batch])
        solver.step()
    assert_same_weights(fitted.weights(), plain.weights())


def test_callbacks_end_a_fit(host: dlprim.Context) -> None:
    net = initialized(host)
    solver = dlprim.Solver(net)
    data, labels = samples(40)
    history = dlprim.fit(
        net, solver, data, labels, epochs=9, callbacks=[lambda p: p.epoch == 2 and p.epoch_done, lambda p: None]
    )
    assert len(history) == 2

    def fails(progress: dlprim.FitProgress) -> None:
        raise LookupError(progress.batch)

    before = solver.steps
    with pytest.raises(LookupError):
        dlprim.fit(net, solver, data, labels, callbacks=[fails])
    assert solver.steps == before + 1
    assert dlprim.fit(net, solver, data, labels)


def test_fit_refuses_what_makes_no_sense(host: dlprim.Context) -> None:
    net = initialized(host)
    solver = dlprim.Solver(net)
    data, labels = samples(8)
    for x, y, says in (
        (data, labels[:7], "'label' has 7 samples"),
        (data[:3], labels[:3], "3 samples are fewer than a batch of 4"),
        (data, None, "samples for input 'label'"),
        (data, 3, "'label' is given a single number"),
        (data, np.full(8, np.nan), "nan at position"),
        (data, np.full(8, 5), "label 5"),
    ):
        with pytest.raises(ValueError, match=says):
            dlprim.fit(net, solver, x, y)
    with pytest.raises(TypeError, match="dict holds all inputs"):
        dlprim.fit(net, solver, {"data": data}, labels)
    with pytest.raises(dlprim.NumericError, match="loss is nan in epoch 1, batch 2.*'fc1'"):
        data[5] = np.nan
        dlprim.fit(net, solver, data, labels, shuffle=False)


def test_fit_refuses_the_solver_of_another_net(host: dlprim.Context) -> None:
    """Its steps would train that one, and the loss be one that nobody computed."""
    data, labels = samples(8)
    net, other = dlprim.Net(host, classifier()), dlprim.Net(host, classifier())
    with pytest.raises(ValueError, match="a solver of the net that it trains"):
        dlprim.fit(net, dlprim.Solver(other), data, labels)


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("adam", {"momentum": 9}, "momentum is 9"),
        ("sgd", {"momentum": 1}, "momentum is 1"),
        ("sgd", {"learning_rate": -1}, "learning rate -1"),
        ("sgd", {"learning_rate": math.nan}, "learning rate nan"),
        ("adam", {"beta1": 1}, "beta1 is 1"),
        ("adamw", {"beta2": -0.1}, "beta2 is -0.1"),
        ("adamw", {"weight_decay": -0.1}, "weight_decay is -0.1"),
        ("adamw", {"weight_decay": math.inf}, "weight_decay is inf"),
        ("adam", {"epsilon": 0}, "epsilon is 0"),
    ],
)
def test_numbers_out_of_range_are_refused(host: dlprim.Context, kind: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match=says):
        dlprim.Solver(initialized(host), kind, **options)


def test_a_momentum_without_effect_is_noted(host: dlprim.Context) -> None:
    for kind, noted in (("sgd", False), ("adam", True)):
        net = initialized(host)
        dlprim.Solver(net, kind, momentum=0.9)
        assert any("momentum of 0.9 has no effect" in note for note in net.notes()) == noted


def test_a_warm_up_longer_than_the_run_is_refused(host: dlprim.Context) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match="warmup_epochs is 5, but the run has 2 epochs"):
        schedules.cosine(0.1, epochs=2, warmup_epochs=5)
    net = initialized(host)
    with pytest.raises(ValueError, match="warmup_epochs is 3, but the run has 2 epochs"):
        dlprim.fit(net, dlprim.Solver(net), *samples(), epochs=2, schedule=schedules.constant(0.1, warmup_epochs=3))
