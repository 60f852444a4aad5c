# SPDX-License-Identifier: MIT
"""Net: copies that are refused, calls back to Python, threads, fork, and what outlives a net."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
import weakref

import dlprim
import numpy as np
import pytest
from small_networks import classifier, initialized, probabilities, samples, set_batch


def test_a_net_is_not_pickled_but_says_what_is(net: dlprim.Net) -> None:
    for refused in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"net\.weights\(\).*save_weights\(\)"):
            refused(net)


def test_progress_is_called_and_does_not_keep_the_net(fresh_context: dlprim.Context) -> None:
    seen = []

    class Watcher:
        net: dlprim.Net

        def __call__(self, what: str, done: int, total: int) -> None:
            seen.append((what, done, total))

    watcher = Watcher()
    watcher.net = dlprim.Net.from_json(fresh_context, classifier(), progress=watcher)
    watcher.net.initialize()
    watcher.net.profile()
    assert any(what.startswith("profiling ") for what, _, _ in seen)
    assert all(0 <= done <= total for _, done, total in seen)
    reference = weakref.ref(watcher.net)
    del watcher
    gc.collect()
    assert reference() is None


def test_what_progress_raises_arrives_and_the_net_serves_on(context: dlprim.Context) -> None:
    raises = True

    def progress(what: str, done: int, total: int) -> None:
        if raises and "fc2" in what:
            raise LookupError(what)

    net = initialized(context, progress=progress)
    with pytest.raises(LookupError, match="fc2"):
        net.profile()
        net.profile()
    raises = False
    data, labels = samples()
    np.testing.assert_allclose(net(data, labels)["prob"], probabilities(net.weights(), data), rtol=1e-5)
    assert net.profile()


def test_threads_run_nets_of_one_context(context: dlprim.Context) -> None:
    nets = []
    for seed in range(2):
        net = initialized(context, seed=seed)
        nets.append((net, dlprim.Solver(net, "sgd", learning_rate=0.0)))
    wrong = []

    def work(index: int) -> None:
        net, solver = nets[index]
        for number in range(60):
            data, labels = samples(seed=1000 * index + number)
            set_batch(net, data, labels)
            solver.step()
            found = net.output("prob").numpy()
            expected = probabilities(net.weights(), data)
            if not np.allclose(found, expected, rtol=1e-4):
                wrong.append((index, number))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert [solver.steps for _, solver in nets] == [60, 60]


def test_nets_are_made_and_dropped_beside_one_that_runs(context: dlprim.Context) -> None:
    net = initialized(context)
    data, labels = samples()
    expected = net(data, labels)["prob"]
    runs = threading.Event()
    runs.set()

    def make_and_drop() -> None:
        while runs.is_set():
            other = dlprim.Net.from_json(context, classifier(batch=2), seed=3)
            other.initialize()
            solver = dlprim.Solver(other)
            set_batch(other, np.zeros((2, 8)), np.zeros(2, np.int32))
            solver.step()

    thread = threading.Thread(target=make_and_drop)
    thread.start()
    try:
        for _ in range(50):
            np.testing.assert_array_equal(net(data, labels)["prob"], expected)
    finally:
        runs.clear()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork() here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_of_fork_is_told_and_drops_nets_without_harm(net: dlprim.Net) -> None:
    solver = dlprim.Solver(net)
    child = os.fork()
    if child == 0:
        told = 0
        for call in (net.enqueue_forward, solver.step, net.weights):
            try:
                call()
            except dlprim.DeviceError:
                told += 1
        del call, net, solver
        gc.collect()
        os._exit(0 if told == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_tensors_outlive_their_net(context: dlprim.Context) -> None:
    net = initialized(context)
    data, labels = samples()
    output = net.forward(data, labels)["prob"]
    expected = output.numpy()
    del net
    gc.collect()
    np.testing.assert_array_equal(output.numpy(), expected)
