# SPDX-License-Identifier: MIT
"""Where the time of a network goes on PyTorch's device "ocl", by operator of PyTorch.

    benchmarks/torch_profile.py [-B 16] [--amp float16] [-n resnet18,gpt2] [--shapes]

Runs training steps under a dispatch mode that sees every operator that reaches the device, backward's too. Columns: calls and
launches of a step, host time of the calls, and the time of the calls when each is waited for, which is the device's
time plus about one wait per call. With --shapes a line is an operator with the shapes of its tensors.
"""

from __future__ import annotations

import argparse
import collections
import time
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_ocl import Step


def shapes_of(values: Any) -> str:
    """The shapes and types of the tensors among arguments."""
    return " ".join(f"{str(one.dtype)[6:]}{list(one.shape)}" for one in values if isinstance(one, torch.Tensor))


class Watch(TorchDispatchMode):
    """Counts launches and time by operator."""

    def __init__(self, wait: bool, shapes: bool) -> None:
        super().__init__()
        self.wait, self.shapes = wait, shapes
        self.rows: dict[str, list[float]] = collections.defaultdict(lambda: [0, 0, 0])

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        launches, start = torch.ocl.counters()["launches"], time.perf_counter()
        result = function(*args, **(kwargs or {}))
        if self.wait:
            torch.accelerator.synchronize()
        row = self.rows[f"{function} {shapes_of(args)}" if self.shapes else str(function)]
        for place, value in enumerate(
            (1, torch.ocl.counters()["launches"] - launches, (time.perf_counter() - start) * 1e3)
        ):
            row[place] += value
        return result


def profile(name: str, arguments: argparse.Namespace) -> None:
    """Prints one network's table."""
    step = Step(name, arguments, "ocl", channels_last=False)
    for _ in range(3):
        step.enqueue()
    step.finish()
    rows = []
    for wait in (False, True):
        with Watch(wait, arguments.shapes) as watch:
            step.enqueue()
        step.finish()
        rows.append(watch.rows)
    print(f"\n{name}\n\n| operator | calls | launches | host ms | waited for ms |\n|---|---:|---:|---:|---:|")
    total = [0.0, 0.0, 0.0, 0.0]
    table = [[key, *row, rows[1][key][2]] for key, row in rows[0].items()]
    for key, *values in sorted(table, key=lambda row: -row[-1]):
        total = [a + b for a, b in zip(total, values, strict=True)]
        if values[1]:
            print(f"| {key} | {values[0]:.0f} | {values[1]:.0f} | {values[2]:.2f} | {values[3]:.2f} |")
    print(f"| all | {total[0]:.0f} | {total[1]:.0f} | {total[2]:.2f} | {total[3]:.2f} |", flush=True)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--nets", default="resnet18")
    parser.add_argument("--amp", choices=["float16", "bfloat16"], help="the type of autocast")
    parser.add_argument("-B", "--batch", type=int, default=16)
    parser.add_argument("--size", type=int, help="height and width of images")
    parser.add_argument("--length", type=int, default=256, help="words of a sequence")
    parser.add_argument("--shapes", action="store_true", help="a line for each operator with its shapes")
    arguments = parser.parse_args()
    arguments.mode, arguments.compile = "step", False
    for name in arguments.nets.split(","):
        profile(name, arguments)


if __name__ == "__main__":
    main()
