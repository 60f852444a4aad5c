#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tries the library on OpenCL implementations and prints a table of what came of it, for docs/devices.md.

    scripts/implementations.sh table [NAME ...]       which calls this; NAME as in implementations.sh
    implementations.py --build build-test --seconds 600 rusticl25

Each implementation computes
  - the self-test of dlprim_doctor, by the chosen engines (--all: by all engines);
  - with --operators, all cases of tests/operators;
  - resnet18 of examples/nets, batch 1, and a training step of a small network, which the host computes, too: the table has
    the error in the L2 norm, relative to the host's;
  - the time of a batch of resnet18, beside PoCL's of this machine in the same minute.
What does not end after --seconds is stopped. Needs numpy and h5py, and a build with the tools and the tests.
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys
from typing import Any

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / ".cache" / "implementations" / "table"
SMALL = [
    ("conv1", "Convolution2D", {"channels_in": 3, "channels_out": 16, "kernel": 3, "pad": 1, "bias": False}),
    ("bn1", "BatchNorm", {"features": 16}),
    ("relu1", "Activation", {"activation": "relu"}),
    ("pool", "Pooling2D", {"kernel": 2, "stride": 2}),
    ("conv2", "Convolution2D", {"channels_in": 16, "channels_out": 32, "kernel": 3, "stride": 2, "pad": 1}),
    ("relu2", "Activation", {"activation": "relu"}),
    ("fc", "InnerProduct", {"inputs": 2048, "outputs": 10}),
]


def small_net() -> dict[str, Any]:
    """Convolutions, a batch normalisation, a pooling and a product, with a loss, for 8 pictures of 32 x 32."""
    operators: list[dict[str, Any]] = []
    last = "data"
    for name, kind, options in SMALL:
        operators.append({"name": name, "type": kind, "inputs": [last], "outputs": [name], "options": options})
        last = name
    operators.append({"name": "loss", "type": "SoftmaxWithLoss", "inputs": [last, "label"], "outputs": ["loss"]})
    inputs = [{"name": "data", "shape": [8, 3, 32, 32]}, {"name": "label", "shape": [8], "dtype": "int"}]
    return {"inputs": inputs, "outputs": ["loss"], "operators": operators}


def parameters(operator: dict[str, Any], random: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    options = operator.get("options", {})
    if operator["type"] == "Convolution2D":
        kernel = np.broadcast_to(options["kernel"], 2)
        shape = (options["channels_out"], options["channels_in"], *kernel)
        values = [random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))]
        return values + ([random.standard_normal(shape[0])] if options.get("bias", True) else [])
    if operator["type"] == "BatchNorm":
        ones, zeros = np.ones(options["features"]), np.zeros(options["features"])
        return [zeros, ones, 0.5 * ones, zeros]
    if operator["type"] == "InnerProduct":
        return [random.standard_normal((options["outputs"], options["inputs"])) * 0.05, np.zeros(options["outputs"])]
    return []


def write_data(name: str, net: dict[str, Any]) -> None:
    """The network, its weights, inputs, and gradients of outputs, always the same."""
    random = np.random.default_rng(1)
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / f"{name}.json").write_text(json.dumps(net))
    with h5py.File(WORK / f"{name}.weights.h5", "w") as file:
        for operator in net["operators"]:
            for index, values in enumerate(parameters(operator, random)):
                file[f"{operator['name']}.{index}"] = values.astype(np.float32)
    with h5py.File(WORK / f"{name}.inputs.h5", "w") as file:
        for tensor in net["inputs"]:
            values = random.standard_normal(tensor["shape"]).astype(np.float32)
            file[tensor["name"]] = np.arange(values.size, dtype=np.int32) % 10 if "dtype" in tensor else values
    with h5py.File(WORK / f"{name}.gradients.h5", "w") as file:
        file["loss"] = np.ones(1, np.float32)


def error_of(name: str, one: str, other: str) -> float:
    """The largest error of a tensor, relative to the host's."""
    worst = 0.0
    with h5py.File(WORK / f"{name}.{other}.h5") as right, h5py.File(WORK / f"{name}.{one}.h5") as file:
        for key in right:
            expected = np.asarray(right[key], np.float64)
            distance = float(np.linalg.norm(np.asarray(file[key], np.float64) - expected))
            worst = max(worst, distance / max(float(np.linalg.norm(expected)), 1e-30))
    return worst


class Implementation:
    """Runs the tools of a build on an implementation; "host" is the host."""

    def __init__(self, name: str, build: pathlib.Path, seconds: float) -> None:
        self.name, self.build, self.seconds = name, build, seconds
        self.device = "cpu" if name == "host" else "Portable" if name == "pocl" else "0:0"

    def run(self, program: str, *arguments: str) -> tuple[int | None, str]:
        """The exit code, or None after the time, and what it printed."""
        command = [str(self.build / program), *arguments]
        if self.name not in {"host", "pocl"}:
            command = ["bash", str(ROOT / "scripts" / "implementations.sh"), "run", self.name, *command]
        try:
            done = subprocess.run(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=self.seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stdout.decode(errors="replace")

    def doctor(self, every: bool) -> tuple[str, str]:
        """The device, and what the self-test found."""
        report = WORK / f"{self.name}.doctor.json"
        report.unlink(missing_ok=True)
        quick = [] if every else ["--quick"]
        self.run(
            "tools/dlprim_doctor",
            "-d",
            self.device,
            *quick,
            "--seconds",
            str(int(self.seconds / 2)),
            "--json",
            str(report),
        )
        if not report.exists():
            return "", "no report"
        device = json.loads(report.read_text())["devices"][0]
        what = f"{device['name']}, driver {device['driver']}"
        test = device.get("self_test")
        if not device["works"] or not test:
            return what, "does not work"
        counts = [
            f"{test[key]} {key}" for key in ("right", "wrong", "crashed", "failed") if test[key] or key == "right"
        ]
        left = len(test["unfinished"]) if isinstance(test["unfinished"], list) else test["unfinished"]
        return what, ", ".join(counts) + (f"; {left} not reached" if left else "")

    def operators(self) -> str:
        code, text = self.run("tests/operators/operators_test", "--cases")
        found = re.findall(
            r"^(?!AMD EPYC)(.*): (\d+) cases, (\d+) runs, \d+ engines, (\d+) failures", text, re.MULTILINE
        )
        if not found:
            return "not finished" if code is None else f"exit code {code}"
        return f"{found[0][1]} cases, {found[0][3]} failures"

    def network(self, name: str, train: bool) -> str:
        """How far a run is off the host's."""
        code, text = self.run("tools/dlprim_run", *self.run_arguments(name, train))
        if code != 0:
            return (
                "not finished"
                if code is None
                else f"exit code {code}: {text.strip().splitlines()[-1][:120] if text.strip() else ''}"
            )
        return f"{error_of(name, self.name, 'host'):.1e}"

    def run_arguments(self, name: str, train: bool) -> list[str]:
        at = WORK / name
        arguments = [f"{at}.json", "-d", self.device, "--weights", f"{at}.weights.h5", "--inputs", f"{at}.inputs.h5"]
        if not train:
            return [*arguments, "--outputs", f"{at}.{self.name}.h5"]
        arguments += ["--train", "--outputs", f"{at}.{self.name}.outputs.h5"]
        return [*arguments, "--output-grads", f"{at}.gradients.h5", "--grads", f"{at}.{self.name}.h5"]

    def milliseconds(self) -> float | None:
        _, text = self.run(
            "tools/dlprim_benchmark", self.device, str(WORK / "resnet18.json"), "-B", "1", "-w", "2", "-i", "5"
        )
        found = re.search(r"([\d.]+) min", text)
        return float(found.group(1)) if found else None


def row(implementation: Implementation, arguments: argparse.Namespace) -> str:
    device, test = implementation.doctor(arguments.all)
    cells = [implementation.name, device, test]
    if arguments.operators:
        cells.append(implementation.operators())
    cells += [implementation.network("resnet18", False), implementation.network("small", True)]
    pocl, own = (
        Implementation("pocl", implementation.build, arguments.seconds).milliseconds(),
        implementation.milliseconds(),
    )
    cells.append(f"{own:.0f} ms; {pocl:.0f} ms" if own and pocl else "-")
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-test")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--operators", action="store_true")
    arguments = parser.parse_args()
    write_data("resnet18", json.loads((ROOT / "examples" / "nets" / "resnet18.json").read_text()))
    write_data("small", small_net())
    host = Implementation("host", arguments.build.resolve(), arguments.seconds)
    for name, train in (("resnet18", False), ("small", True)):
        code, text = host.run("tools/dlprim_run", *host.run_arguments(name, train))
        if code != 0:
            print(f"the host does not compute {name}: {text}", file=sys.stderr)
            return 1
    print(f"{datetime.datetime.now(datetime.timezone.utc):%d %B %Y}")
    print(
        "| implementation | device | self-test |"
        + (" operators |" if arguments.operators else "")
        + " resnet18 | training | batch; PoCL's |"
    )
    print("|---|---|---|" + ("---|" if arguments.operators else "") + "---|---|---|")
    for name in arguments.names:
        print(row(Implementation(name, arguments.build.resolve(), arguments.seconds), arguments), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
