# SPDX-License-Identifier: MIT
"""Ctrl-C: a long call ends with KeyboardInterrupt at its next callback, and what it was about serves on.

Each test is a program of its own, which sends itself the signal while it is in the middle of the call.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import dlprim
import pytest

TESTS = pathlib.Path(__file__).resolve().parent

# A thread sends the signal, which the main thread, in the library's code, has to look for.
PROLOGUE = f"""
import os, pathlib, signal, sys, threading, time
sys.path.insert(0, {str(TESTS)!r})
import numpy as np
import dlprim
from small_networks import classifier, convolutions, samples

context = dlprim.Context(sys.argv[1])

def interrupt_when(ready):
    def wait():
        while not ready():
            time.sleep(0.0005)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=wait, daemon=True).start()

def interrupted(call):
    try:
        call()
    except KeyboardInterrupt:
        return
    sys.exit("the call was not interrupted")
"""


def run(device: str, program: str, cwd: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROLOGUE + textwrap.dedent(program), device],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(pathlib.Path(dlprim.__file__).absolute().parents[1])},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "done\n"


def test_a_training_is_interrupted(device: str, tmp_path: pathlib.Path) -> None:
    run(
        device,
        """
        import json
        from test_train import configuration, write_idx
        folder = pathlib.Path(".").resolve()
        write_idx(folder / "images", np.zeros((4000, 4, 2), np.uint8))
        write_idx(folder / "labels", np.zeros(4000, np.uint8))
        network = classifier()
        network["inputs"][0]["shape"] = [4, 1, 4, 2]
        (folder / "net.json").write_text(json.dumps(network))
        config = configuration(folder)
        begun = threading.Event()
        interrupt_when(begun.is_set)
        told = []
        def progress(p):
            told.append(p.batch)
            begun.set()
        interrupted(lambda: dlprim.train(context, config, epochs=200, on_progress=progress))
        assert len(told) < 200 * 1000
        quiet = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        quiet.start()
        interrupted(lambda: dlprim.train(context, config, epochs=100000, replace=True))  # without a callback, too
        assert dlprim.train(context, config, epochs=1, replace=True).epochs == 1
        print("done")
        """,
        tmp_path,
    )


def test_a_profile_is_interrupted_and_the_net_serves_on(device: str, tmp_path: pathlib.Path) -> None:
    run(
        device,
        """
        net = dlprim.Net.from_json(context, classifier())
        net.initialize()
        solver = dlprim.Solver(net)
        data, labels = samples()
        net.forward(data, labels)
        before = net.weights()
        begun = threading.Event()
        interrupt_when(begun.is_set)
        def profiles():
            begun.set()
            while True:
                net.profile(whole_step=True)
        interrupted(profiles)
        for name, array in net.weights().items():
            assert (array == before[name]).all()
        solver.step()
        assert np.isfinite(net.output("loss").numpy()[0])
        print("done")
        """,
        tmp_path,
    )


def test_preparing_is_interrupted(device: str, tmp_path: pathlib.Path) -> None:
    if device == "cpu":
        pytest.skip("the host compiles nothing")
    run(
        device,
        """
        begun = threading.Event()
        interrupt_when(begun.is_set)
        seen = []
        def progress(what, done, total):
            seen.append(what)
            begun.set()
            time.sleep(0.01)
        net = dlprim.Net.from_json(context, convolutions(), progress=progress)
        net.initialize()
        interrupted(net.prepare)
        assert seen
        assert net.run({"data": np.ones((2, 3, 8, 8))})["out"].shape == (2, 4, 1, 1)
        print("done")
        """,
        tmp_path,
    )
