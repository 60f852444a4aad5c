#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time Python's share: what a call through dlprim's Python module takes beside the same call from C++.

    ninja -C build benchmark_python_peer dlprim_python
    PYTHONPATH=build/python benchmarks/python.py build/python/benchmark_python_peer

Prints a table: a training step of resnet18 in batches of 16, importing dlprim, a small eager operator, and 64 MB from numpy
to the device and back. Both programs take turns, and medians are compared, so that a machine whose speed changes is fair to
both; it must be otherwise idle. Exits with 1 where a number is above what it must be.
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Callable

import dlprim
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
COPIED_FLOATS = 16 << 20


class Peer:
    """The C++ program, which measures on demand."""

    def __init__(self, program: str, device: str, net: pathlib.Path, batch: int) -> None:
        self.process = subprocess.Popen(
            [program, device, str(net), str(batch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def measure(self, what: str, count: int) -> list[float]:
        """Send one line, read one."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{what} {count}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("benchmark_python_peer ended early; what it said stands above")
        return [float(number) for number in line.split()]


class Python:
    """The same measurements from Python."""

    def __init__(self, device: str, net: pathlib.Path, batch: int) -> None:
        self.context = dlprim.Context(device)
        self.path = net
        self.batch = batch
        self.net: dlprim.Net | None = None
        self.small = dlprim.Tensor(self.context, np.ones(64, np.float32))
        self.large = np.ones(COPIED_FLOATS, np.float32)

    def measure(self, what: str, count: int) -> list[float]:
        """Milliseconds of each of `count`; of calls microseconds of one."""
        work: Callable[[int], list[float]] = getattr(self, what)
        return work(count)

    def steps(self, count: int) -> list[float]:
        if self.net is None:
            self.net = dlprim.Net.from_json(self.context, self.path, batch=self.batch)
            self.net.initialize()
            self.solver = dlprim.Solver(self.net, learning_rate=1e-4)
            self.data = np.full(self.net.input_shape("data"), 0.5, np.float32)
            self.labels = np.ones(self.batch, np.int32)
        times = []
        for _ in range(count):
            start = time.perf_counter()
            self.net.set_input("data", self.data)
            self.net.set_input("label", self.labels)
            self.solver.step()
            self.context.finish()
            times.append(1000 * (time.perf_counter() - start))
        return times

    def calls(self, count: int) -> list[float]:
        relu, small = dlprim.ops.relu, self.small
        start = time.perf_counter()
        for _ in range(count):
            result = relu(small)
        elapsed = time.perf_counter() - start
        del result
        self.context.finish()
        return [1e6 * elapsed / count]

    def copies(self, count: int) -> list[float]:
        tensor = dlprim.Tensor.empty(self.context, COPIED_FLOATS)
        back = np.zeros(COPIED_FLOATS, np.float32)
        times = []
        for _ in range(count):
            start = time.perf_counter()
            tensor.copy_from(self.large)
            tensor.copy_to(back)
            times.append(1000 * (time.perf_counter() - start))
        return times

    def fresh(self, count: int) -> list[float]:
        times = []
        for _ in range(count):
            start = time.perf_counter()
            back = dlprim.Tensor(self.context, self.large).numpy()
            del back
            times.append(1000 * (time.perf_counter() - start))
        return times


def import_seconds() -> float:
    """A fresh Python that imports dlprim, less one that imports nothing."""

    def run(program: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        return time.perf_counter() - start

    return statistics.median(run("import dlprim") for _ in range(9)) - statistics.median(run("") for _ in range(9))


def both(python: Python, peer: Peer, what: str, count: int, rounds: int) -> tuple[float, float]:
    """Medians of Python and C++ over rounds in turns, of which the first is not counted."""
    ours: list[float] = []
    theirs: list[float] = []
    for turn in range(rounds + 1):
        sides = [(ours, python.measure), (theirs, peer.measure)]
        for times, measure in sides if turn % 2 else reversed(sides):
            measured = measure(what, count)
            if turn:
                times += measured
    return statistics.median(ours), statistics.median(theirs)


def main() -> int:
    """Print the table; 1 where a number is above its must."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", help="the program benchmark_python_peer")
    parser.add_argument("-d", "--device", default="Portable", help="device of the training step and the copies")
    parser.add_argument("--net", type=pathlib.Path, default=ROOT / "examples/nets/resnet18.json")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()

    rows: list[tuple[str, str, float, float]] = []
    on_device = options.device, options.net, options.batch
    python, peer = Python(*on_device), Peer(options.peer, *on_device)

    step, cpp_step = both(python, peer, "steps", 3, options.rounds)
    rows.append(("training step, Python over C++", f"{step:.1f} and {cpp_step:.1f} ms", step / cpp_step, 1.02))
    seconds = import_seconds()
    rows.append(("import dlprim, s", "", seconds, 0.3))
    for what, name in (("copies", "64 MB there and back, over C++"), ("fresh", "the same into new memory")):
        ms, cpp_ms = both(python, peer, what, 5, options.rounds)
        rows.append((name, f"{ms:.1f} and {cpp_ms:.1f} ms", ms / cpp_ms, 1.05))
    call, cpp_call = both(python, peer, "calls", 1000, 3 * options.rounds)
    rows.append((f"eager call on {options.device}, us above C++", f"{call:.2f} and {cpp_call:.2f}", call - cpp_call, 3))
    on_host = "cpu", options.net, options.batch
    call, cpp_call = both(Python(*on_host), Peer(options.peer, *on_host), "calls", 1000, 3 * options.rounds)
    rows.append(("eager call on the host, us above C++", f"{call:.2f} and {cpp_call:.2f}", call - cpp_call, 3))

    print(f"{'':40} {'Python and C++':24} {'number':>7} {'must':>6}")
    for name, measured, number, must in rows:
        print(f"{name:40} {measured:24} {number:7.3f} {must:6.2f}{'' if number <= must else '  above'}")
    return int(any(number > must for _, _, number, must in rows))


if __name__ == "__main__":
    sys.exit(main())
