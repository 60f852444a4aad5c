# SPDX-License-Identifier: MIT
"""PlacedNet and PlacedSolver: they compute what Net and Solver do on one device."""

from __future__ import annotations

import pathlib
import pickle

import dlprim
import numpy as np
import pytest
from small_networks import assert_same_weights, classifier, samples, set_batch


def placed(second: str = "b") -> dict:
    net = classifier()
    net["operators"][1]["device"] = second
    return net


def two_like(context: dlprim.Context) -> dict[str, dlprim.Context]:
    return {"a": context, "b": dlprim.Context(context.info.id)}


def test_training_has_the_bits_of_one_device(context: dlprim.Context, tmp_path: pathlib.Path) -> None:
    data, labels = samples()
    one = dlprim.Net(context, classifier())
    two = dlprim.PlacedNet(two_like(context), placed())
    assert [part.device for part in two.parts()] == ["a", "b", "a"]
    assert isinstance(two.parts()[1], dlprim.PlacedPart) and two.parts()[1].operators == ["fc2"]
    assert two.device_names == ["a", "b"]
    assert two.input_shape("data") == (4, 8)
    one.initialize()
    two.initialize()
    solver = dlprim.Solver(one, learning_rate=0.01)
    placed_solver = dlprim.PlacedSolver(two, learning_rate=0.01)
    for step in range(3):
        if step == 2:
            placed_solver.save_checkpoint(tmp_path / "two.h5", {"epoch": 2})
        for net in (one, two):
            set_batch(net, data, labels)
        solver.step()
        placed_solver.step()
    assert placed_solver.steps == 3
    assert all(isinstance(move, dlprim.PlacedMove) and move.times == 3 for move in two.moves())
    assert {(move.value, move.source, move.target) for move in two.moves()} == {
        ("h", "a", "b"), ("h", "b", "a"), ("scores", "b", "a"), ("scores", "a", "b")}  # fmt: skip
    assert_same_weights(two.weights(), one.weights())
    # A run on one device goes on from the checkpoint.
    resumed = dlprim.Solver(dlprim.Net(context, classifier()), learning_rate=0.5)
    assert resumed.load_checkpoint(tmp_path / "two.h5") == {"epoch": 2}
    resumed.net.forward(data=data, label=labels)
    resumed.step()
    assert_same_weights(resumed.net.weights(), one.weights())
    assert "3" in repr(placed_solver) and "PlacedNet" in repr(two)


def test_outputs_of_all_shards(context: dlprim.Context) -> None:
    data, labels = samples()
    net = dlprim.PlacedNet(two_like(context), placed())
    net.initialize()
    solver = dlprim.PlacedSolver(net, learning_rate=0, shards=2)
    scores = solver.output_of_batch("prob")
    for shard in (data, 2 * data):
        set_batch(net, shard, labels)
        solver.step()
    assert scores.shape == (8, *net.output("prob").shape[1:])
    one = dlprim.Net(context, classifier(), "inference")
    one.set_weights(net.weights())
    want = [one.run(data=shard, label=labels)["prob"] for shard in (data, 2 * data)]
    np.testing.assert_allclose(scores.numpy(), np.concatenate(want), rtol=1e-5)
    with pytest.raises(dlprim.NotFoundError, match="prop"):
        solver.output_of_batch("prop")


def test_a_loss_that_is_not_finite(context: dlprim.Context) -> None:
    data, labels = samples()
    net = dlprim.PlacedNet(two_like(context), placed())
    net.initialize()
    before = net.weights()
    solver = dlprim.PlacedSolver(net, guard_loss=True)
    bad = data.copy()
    bad[0, 0] = np.inf
    for given in (bad, data):  # the second step follows the bad one, and changes nothing
        set_batch(net, given, labels)
        solver.step()
        assert_same_weights(net.weights(), before)
    with pytest.raises(dlprim.InvalidArgumentError, match="are 2, and not 1"):
        solver.call_off()
    solver.call_off(2)
    assert solver.steps == 0 and net.first_nan() == ""
    net.set_input("data", bad)
    assert net.first_nan() == "fc1"
    net.set_input("data", data)
    solver.step()
    assert solver.steps == 1 and any((net.weights()[name] != want).any() for name, want in before.items())


def test_inference_and_files(context: dlprim.Context, tmp_path: pathlib.Path) -> None:
    data, labels = samples()
    one = dlprim.Net(context, classifier(), "inference")
    one.initialize()
    one.save_weights(tmp_path / "w.h5")
    two = dlprim.PlacedNet({"a": context, "b": dlprim.Context("cpu")}, placed(), "inference")
    two.load_weights(tmp_path / "w.h5")
    want = one.run(data=data, label=labels)
    found = two.run({"data": data}, label=labels)
    np.testing.assert_allclose(found["prob"], want["prob"], rtol=1e-5)
    assert set(two.planned_peak_bytes()) == {"a", "b"}


def test_automatic(context: dlprim.Context) -> None:
    devices = two_like(context)
    for place in ("auto", "measured"):
        net = dlprim.PlacedNet(devices, classifier(), place=place, solver={"kind": "sgd", "momentum": 0.9})
        assert all(part.estimated_ms > 0 and part.estimated_bytes > 0 for part in net.parts())
        assert any("part 1 of" in note for note in net.notes())
    with pytest.raises(dlprim.OutOfMemoryError, match="fits on no device"):
        dlprim.PlacedNet(devices, classifier(), place="auto", memory_limits={"a": 64, "b": 64})


def test_mistakes(context: dlprim.Context) -> None:
    with pytest.raises(dlprim.InvalidArgumentError, match="nobody has bound"):
        dlprim.PlacedNet({"a": context}, placed())
    with pytest.raises(TypeError, match="dict of contexts"):
        dlprim.PlacedNet([context], placed())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="place is 'best'"):
        dlprim.PlacedNet({"a": context}, placed(), place="best")
    net = dlprim.PlacedNet(two_like(context), placed())
    with pytest.raises(dlprim.InvalidArgumentError, match="shape"):
        net.set_input("data", np.zeros((2, 2)))
    with pytest.raises(TypeError, match="no option 'rate'"):
        dlprim.PlacedSolver(net, rate=1)
    with pytest.raises(dlprim.InvalidArgumentError, match="'adagrad'"):
        dlprim.PlacedSolver(net, "adagrad")
    with pytest.raises(TypeError, match="PlacedNet"):
        dlprim.PlacedSolver(dlprim.Net(context, classifier()))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(net)
