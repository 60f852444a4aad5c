# SPDX-License-Identifier: MIT
"""What the tests of examples/python and of the documents share: running a script, and pictures to train with."""

from __future__ import annotations

import gzip
import importlib.util
import os
import pathlib
import subprocess
import sys
from types import ModuleType

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"


def run(script: str, *arguments: object, folder: pathlib.Path, fails: bool = False) -> str:
    """What an example prints; where it is to fail, the line on stderr with which it does."""
    command = [sys.executable, str(EXAMPLES / f"{script}.py"), *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert (done.returncode != 0) == fails, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    if not fails:
        return done.stdout
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr.splitlines()[-1]


def run_code(code: str, *arguments: str, **environment: str) -> str:
    """What a program prints, which must end well and have nothing to say on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=pathlib.Path(__file__).parent,
        env=os.environ | environment,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def load(script: str) -> ModuleType:
    """An example as a module, so that its functions can be called."""
    spec = importlib.util.spec_from_file_location(script, EXAMPLES / f"{script}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_idx(path: pathlib.Path, array: np.ndarray) -> None:
    """An IDX file of bytes, as MNIST's are, compressed."""
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes(), compresslevel=1))


def write_pictures(folder: pathlib.Path, train: int, test: int) -> pathlib.Path:
    """Files named like Fashion-MNIST's: a bright square on noise, whose place is that of its class."""
    random = np.random.default_rng(5)
    for part, count in (("train", train), ("t10k", test)):
        labels = random.integers(0, 10, count)
        images = random.integers(0, 120, (count, 28, 28))
        for image, label in zip(images, labels):
            row, column = divmod(int(label), 4)
            image[9 * row : 9 * row + 8, 7 * column : 7 * column + 7] += 100
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", labels)
    return folder
