# SPDX-License-Identifier: MIT
"""Makes things and drops them, over and over, and prints the memory that the process and the device keep.

usage: leaking_program.py KIND DEVICE ROUNDS [leak]

test_leaks.py runs it in a process of its own. Prints "KiB BYTES": how much the process's memory grew over the last half
of the rounds, and the device's buffers over all but the first. With `leak` the things stay alive, so that the test
can be seen to fail.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Callable

import dlprim
import numpy as np

NET = {
    "inputs": [{"name": "data", "shape": [8, 3, 8, 8]}, {"name": "label", "shape": [8], "dtype": "int"}],
    "outputs": ["scores", "loss"],
    "operators": [
        {
            "name": "conv",
            "type": "Convolution2D",
            "inputs": ["data"],
            "outputs": ["conv"],
            "options": {"channels_out": 8, "kernel": 3, "pad": 1, "activation": "relu"},
        },
        {
            "name": "scores",
            "type": "InnerProduct",
            "inputs": ["conv"],
            "outputs": ["scores"],
            "options": {"outputs": 4},
        },
        {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"], "outputs": ["loss"]},
    ],
}
DATA = np.ones((8, 3, 8, 8), np.float32)
LABEL = np.zeros(8, np.int32)


def train_a_net(context: dlprim.Context) -> Any:
    """A net, its solver, a step, and views of what they hold."""
    net = dlprim.Net.from_json(context, NET)
    net.initialize()
    solver = dlprim.Solver(net, learning_rate=0.1)
    net.set_input("data", DATA)
    net.set_input("label", LABEL)
    solver.step()
    loss = float(net.output("loss").numpy()[0])
    return net, solver, net.param(net.param_names[0]), loss


def make_tensors(context: dlprim.Context) -> Any:
    """Tensors from and to numpy, and one that numpy looks into where the host allows it."""
    tensor = dlprim.Tensor(context, DATA)
    copy = tensor.numpy()
    again = dlprim.Tensor(context, np.asarray(tensor) + copy)
    return tensor, again, copy


def meet_errors(context: dlprim.Context) -> Any:
    """Exceptions out of the library and out of a callback's middle."""
    kept = []
    for attempt in (
        lambda: dlprim.Net.from_json(context, {"operators": [{"type": "NoSuchOperator"}]}),
        lambda: dlprim.Context("no such device"),
        lambda: dlprim.Tensor(context, np.array([object()])),
    ):
        try:
            attempt()
            raise AssertionError("no exception came")
        except (dlprim.DlprimError, TypeError) as error:
            kept.append(error)
    return kept


KINDS: dict[str, Callable[[dlprim.Context], Any]] = {
    "nets": train_a_net,
    "tensors": make_tensors,
    "errors": meet_errors,
}


def resident_kib() -> int:
    """Memory of this process that is in RAM."""
    gc.collect()
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def main(kind: str, device: str, rounds: int, leak: bool) -> None:
    """Run the rounds and print both numbers."""
    context = dlprim.Context(device)
    kept = []
    for i in range(rounds):
        if i == 1:
            gc.collect()
            device_bytes = context.counters.allocated_bytes
        if i == rounds // 2:
            before = resident_kib()
        made = KINDS[kind](context)
        if leak:
            kept.append(made)
        del made
    grown = resident_kib() - before
    context.finish()
    print(grown, context.counters.allocated_bytes - device_bytes)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), "leak" in sys.argv[4:])
