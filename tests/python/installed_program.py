# SPDX-License-Identifier: MIT
"""Trains a small network with an installed dlprim; scripts/wheel_test.sh runs it on bare systems.

usage: installed_program.py host|pocl: the device that must be there, and the best one.
"""

from __future__ import annotations

import pathlib
import sys
import tempfile

import dlprim
import numpy as np

NET = {
    "inputs": [{"name": "data", "shape": [64, 2]}, {"name": "label", "shape": [64], "dtype": "int"}],
    "outputs": ["scores", "loss"],
    "operators": [
        {
            "name": "hidden",
            "type": "InnerProduct",
            "inputs": ["data"],
            "outputs": ["hidden"],
            "options": {"outputs": 32, "activation": "relu"},
        },
        {
            "name": "scores",
            "type": "InnerProduct",
            "inputs": ["hidden"],
            "outputs": ["scores"],
            "options": {"outputs": 2},
        },
        {"name": "loss", "type": "SoftmaxWithLoss", "inputs": ["scores", "label"], "outputs": ["loss"]},
    ],
}


def main(wanted: str) -> int:
    """Return the process's status."""
    for info in dlprim.devices():
        print(f"{info.id}: {info.name}, {info.platform}")
    context = dlprim.Context()
    platform = {"host": "host", "pocl": "Portable Computing Language"}[wanted]
    if context.info.platform != platform:
        print(f"The best device is of {context.info.platform}, where {platform} was wanted.")
        return 1
    net = dlprim.Net.from_json(context, NET)
    net.initialize()
    solver = dlprim.Solver(net, learning_rate=0.01)
    random = np.random.default_rng(1)
    losses = []
    for _ in range(300):
        points = random.uniform(-1, 1, (64, 2)).astype(np.float32)
        net.set_input("data", points)
        net.set_input("label", ((points**2).sum(1) < 0.5).astype(np.int32))
        solver.step()
        losses.append(float(net.output("loss").numpy()[0]))
    print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}")
    with tempfile.TemporaryDirectory() as folder:
        weights = pathlib.Path(folder) / "weights.h5"
        net.save_weights(weights)
        net.load_weights(weights)
        print(f"{weights.stat().st_size} bytes of weights")
    return 0 if losses[-1] < 0.3 < losses[0] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
