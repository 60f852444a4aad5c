#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints hashes of what networks compute on a device, to show that a change leaves every bit as it was.

    scripts/hashes.py -d DEVICE [NAME ...] > FILE
    scripts/hashes.py -d DEVICE [NAME ...] --against FILE

NAME is a network's name in examples/nets or tests/nets, or a path of JSON; without one all of both folders are run. Each
is run in four modes, and each mode prints one line:

    inference    outputs of dlprim_run
    evaluation   outputs and gradients of dlprim_run --grads
    training     outputs, statistics of batch norms and gradients of dlprim_run --train --grads
    step         parameters after one step of dlprim_train with Adam

A hash covers the name, type, shape and bytes of every tensor. Parameters, images and labels are numbers from numpy's
PCG64 generator, seeded by their names. A hash depends on the device, its driver, the precision, the batch, and on
anything that changes the choice of engines, such as tunings: compare files of one machine.

--against runs what FILE lists of the precision and batch asked for, lists each line that differs, and exits with 1 if there
is one, or if there was none to compare. A network that fails is a line too, with the error in place of hashes. Needs numpy
and h5py.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODES = ["inference", "evaluation", "training", "step"]
CLASSES = 1000
Tensors = dict[str, np.ndarray]
Net = dict[str, Any]


def numbers(what: str, shape: list[int], low: float, high: float) -> np.ndarray:
    """Uniform float32 numbers from `low` to `high`, always the same for one `what`."""
    seed = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "little")
    random = np.random.Generator(np.random.PCG64(seed))
    return (low + (high - low) * random.random(math.prod(shape), dtype=np.float32)).reshape(shape).astype(np.float32)


def product_weights(shape: list[int], fan_in: int) -> tuple[list[int], float, float]:
    """Shape and range of weights that keep the magnitude of what they multiply, as He's initialisation does."""
    bound = math.sqrt(6 / fan_in)
    return shape, -bound, bound


def parameters_of(operator: dict[str, Any]) -> list[tuple[list[int], float, float]]:
    """(shape, low, high) of each parameter of an operator, from its options alone."""
    options = operator.get("options", {})
    kind = operator["type"]
    if kind in ("Convolution", "Convolution2D", "TransposedConvolution", "TransposedConvolution2D"):
        ins, outs, groups = options["channels_in"], options["channels_out"], options.get("groups", 1)
        kernel = options["kernel"] if isinstance(options["kernel"], list) else [options["kernel"]] * 2
        rows, columns = (outs, ins // groups) if not kind.startswith("Transposed") else (ins, outs // groups)
        weight = product_weights([rows, columns, *kernel], ins // groups * math.prod(kernel))
        return [weight] + ([([outs], -0.1, 0.1)] if options.get("bias", True) else [])
    if kind == "InnerProduct":
        weight = product_weights([options["outputs"], options["inputs"]], options["inputs"])
        return [weight] + ([([options["outputs"]], -0.1, 0.1)] if options.get("bias", True) else [])
    if kind == "BatchNorm":
        shape = [options["features"]]
        return [(shape, -0.1, 0.1), (shape, 0.5, 1.5)] + ([(shape, 0.5, 1.5), (shape, -0.1, 0.1)] if options.get("affine", True) else [])
    if kind == "LayerNorm":
        shape = options["normalized_shape"]
        shape = shape if isinstance(shape, list) else [shape]
        return [(shape, 0.5, 1.5)] + ([(shape, -0.1, 0.1)] if options.get("bias", True) else [])
    if kind == "Parameter":
        return [(options["shape"], -0.1, 0.1)]
    if kind == "Embedding":
        return [([options["num_embeddings"], options["embedding_dim"]], -0.1, 0.1)]
    return []


def write_weights(net: Net, path: pathlib.Path) -> None:
    """The network's parameters: the same numbers whatever the order of its operators."""
    with h5py.File(path, "w") as file:
        for operator in net["operators"]:
            for i, (shape, low, high) in enumerate(parameters_of(operator)):
                names = operator.get("params")
                name = names[i] if names else f"{operator['name']}.{i}"
                if name not in file:
                    file[name] = numbers(name, shape, low, high)


def read(path: pathlib.Path) -> Tensors:
    """Every dataset of an HDF5 file."""
    tensors: Tensors = {}

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            tensors[name] = item[()]
    with h5py.File(path) as file:
        file.visititems(add)
    return tensors


def hash_of(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    tensors = read(path)
    for name in sorted(tensors):
        value = np.ascontiguousarray(tensors[name])
        if not np.isfinite(value).all():
            raise RuntimeError(f"'{name}' has values that are not finite, which show no differences")
        digest.update(f"{name} {value.dtype.str} {value.shape} ".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()[:24]


def write_idx(path: pathlib.Path, values: np.ndarray, code: int) -> None:
    """An IDX file; `code` is the format's number for the type of the values, which are stored in big-endian order."""
    head = struct.pack(">BBBB", 0, 0, code, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
    path.write_bytes(head + values.tobytes())


class Network:
    """One network's files in a folder of its own, and its runs."""

    def __init__(self, path: pathlib.Path, folder: pathlib.Path, arguments: argparse.Namespace) -> None:
        self.name, self.folder, self.arguments = path.stem, folder, arguments
        self.net: Net = json.loads(path.read_text())
        write_weights(self.net, folder / "weights.h5")
        self.data = self.write_inputs()
        (folder / "net.json").write_text(json.dumps(self.net))

    def write_inputs(self) -> np.ndarray:
        """Images and labels of the batch asked for; returns the images."""
        images = None
        with h5py.File(self.folder / "in.h5", "w") as file:
            for declared in self.net["inputs"]:
                declared["shape"][0] = self.arguments.batch or declared["shape"][0]
                if declared.get("dtype") == "int":
                    file[declared["name"]] = np.array([(7 + 31 * i) % self.classes() for i in range(declared["shape"][0])], np.int32)
                else:
                    # Of 256 levels, so that dlprim_train, which reads bytes, sees the same images.
                    levels = np.floor(numbers(declared["name"], declared["shape"], 0, 256))
                    file[declared["name"]] = (levels / 255 - 0.5) / 0.25
                    images = levels.astype(np.uint8)
        if images is None:
            raise RuntimeError("the network has no input of images")
        return images

    def classes(self) -> int:
        """The size of the last product: labels must be below it."""
        sizes = [operator["options"]["outputs"] for operator in self.net["operators"] if operator["type"] == "InnerProduct"]
        return int(sizes[-1]) if sizes else CLASSES

    def command(self, *words: str) -> None:
        """Runs a command in the folder; its last line of stderr is the error."""
        done = subprocess.run(words, check=False, cwd=self.folder, capture_output=True, text=True,
                              timeout=self.arguments.time_limit)
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            raise RuntimeError(lines[-1] if lines else f"{words[0]} ended with exit status {done.returncode}")

    def run(self, *more: str) -> None:
        self.command(self.arguments.run, "net.json", "-d", self.arguments.device, "--precision", self.arguments.precision,
                     "--weights", "weights.h5", "--inputs", "in.h5", "--outputs", "out.h5", *more)

    def has_loss(self) -> bool:
        return any(not isinstance(output, str) or output.startswith("loss") for output in self.net["outputs"])

    def gradients(self, *more: str) -> dict[str, str]:
        if not self.has_loss():  # then gradients of outputs are ours to give
            self.run(*more)
            outputs = {name: value.shape for name, value in read(self.folder / "out.h5").items() if name in self.net["outputs"]}
            with h5py.File(self.folder / "dy.h5", "w") as file:
                for name, shape in outputs.items():
                    file[name] = numbers("gradient of " + name, list(shape), -0.01, 0.01)
            more = (*more, "--output-grads", "dy.h5")
        self.run("--grads", "grads.h5", *more)
        return {"outputs": hash_of(self.folder / "out.h5"), "gradients": hash_of(self.folder / "grads.h5")}

    def inference(self) -> dict[str, str]:
        self.run()
        return {"outputs": hash_of(self.folder / "out.h5")}

    def evaluation(self) -> dict[str, str]:
        return self.gradients()

    def training(self) -> dict[str, str]:
        return self.gradients("--train")

    def step(self) -> dict[str, str]:
        if not self.has_loss():
            return {"parameters": "none, since the network has no loss"}
        labels = np.array([(7 + 31 * i) % self.classes() for i in range(len(self.data))], ">i4")
        write_idx(self.folder / "images", self.data, 8)
        write_idx(self.folder / "labels", labels, 12)
        config = {"net": "net.json", "weights": "weights.h5", "batch": len(self.data), "epochs": 1, "seed": 1,
                  "data": {"train": {"images": "images", "labels": "labels"}, "mean": 0.5, "std": 0.25},
                  "solver": {"type": "adam", "learning_rate": 0.001}, "on_nan": "stop"}
        (self.folder / "train.json").write_text(json.dumps(config))
        train = str(pathlib.Path(self.arguments.run).with_name("dlprim_train"))
        self.command(train, "train.json", "-d", self.arguments.device, "--precision", self.arguments.precision, "--out", "trained")
        return {"parameters": hash_of(self.folder / "trained/model.h5")}


def lines_of(path: pathlib.Path, arguments: argparse.Namespace, wanted: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(what was run, its hashes) of one network; an error in place of hashes where it fails. What is not among the
    wanted is left out, if there are any."""
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        network = None
        for mode in arguments.mode or MODES:
            batch = f"batch={arguments.batch}" if arguments.batch else "batch=own"
            what = f"{path.stem} {mode} {arguments.precision} {batch}"
            if wanted and what not in wanted:
                continue
            try:
                network = network or Network(path, pathlib.Path(folder), arguments)
                hashes = getattr(network, mode)()
                yield what, " ".join(f"{key}={value}" for key, value in hashes.items())
            except (RuntimeError, OSError, KeyError, ValueError, subprocess.TimeoutExpired) as error:
                yield what, f"error: {type(error).__name__}: {' '.join(str(error).split())}"


def find(name: str) -> pathlib.Path:
    for path in (pathlib.Path(name), ROOT / "examples/nets" / f"{name}.json", ROOT / "tests/nets" / f"{name}.json"):
        if path.suffix == ".json" and path.exists():
            return path
    sys.exit(f"hashes.py: there is no network '{name}' in examples/nets or tests/nets, and no file of this name")


def read_lines(path: pathlib.Path) -> dict[str, str]:
    """(network, mode, precision, batch) -> hashes, of a file that this script printed."""
    lines = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            words = line.split(" ", 4)
            lines[" ".join(words[:4])] = words[4] if len(words) > 4 else ""
    return lines


def compare(seen: dict[str, str], expected: dict[str, str]) -> int:
    """Lists what differs; the exit status."""
    bad = 0
    for what, hashes in seen.items():
        if hashes != expected[what]:
            bad += 1
            print(f"different  {what}\n    before {expected[what]}\n    now    {hashes}")
    print(f"{len(seen) - bad} of {len(seen)} lines are unchanged; {len(expected) - len(seen)} lines of the file were not run")
    return 1 if bad or not seen else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="default: all of examples/nets and tests/nets, or of --against's file")
    parser.add_argument("-d", "--device", required=True, help="as dlprim_run takes it: cpu, P:D, gpu, opencl or part of a name")
    parser.add_argument("--run", default=str(ROOT / "build/tools/dlprim_run"), help="dlprim_run; dlprim_train lies beside it")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "fp16", "bf16"])
    parser.add_argument("--batch", type=int, default=1, help="1 unless given; 0: what each network declares")
    parser.add_argument("--mode", choices=MODES, action="append", help="default: all four")
    parser.add_argument("--against", type=pathlib.Path, help="a file of this script: list differences, exit with 1 if there are any")
    parser.add_argument("--time-limit", type=float, default=1800, help="seconds for one run of a command (1800)")
    parser.add_argument("--folder", help="where temporary files go, up to 3 GiB at a time; default: the system's")
    arguments = parser.parse_args()
    arguments.run = str(pathlib.Path(arguments.run).resolve())
    if not os.access(arguments.run, os.X_OK):
        parser.error(f"there is no dlprim_run at {arguments.run}: give its path with --run")
    expected = read_lines(arguments.against) if arguments.against else {}
    folders = [ROOT / "examples/nets", ROOT / "tests/nets"]
    names = arguments.names or list(dict.fromkeys(what.split()[0] for what in expected))
    paths = [find(name) for name in names] or sorted(path for folder in folders for path in folder.glob("*.json"))
    seen: dict[str, str] = {}
    for path in paths:
        for what, hashes in lines_of(path, arguments, expected):
            seen[what] = hashes
            print(f"{what} {hashes}", flush=True, file=sys.stderr if arguments.against else sys.stdout)
    return compare(seen, expected) if arguments.against else int(any(text.startswith("error") for text in seen.values()))


if __name__ == "__main__":
    sys.exit(main())
