# SPDX-License-Identifier: MIT
"""What the scripts share that compare exported ONNX models: running one, and whether its results agree with others.

Needs onnx and h5py. The tools are those of build/tools, or of the folder that DLPRIM_TOOLS names.
"""
import collections
import json
import os
import pathlib
import subprocess

import h5py
import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[1]
TOOLS = pathlib.Path(os.environ.get("DLPRIM_TOOLS", ROOT / "build/tools"))


def add_options(parser):
    parser.add_argument("-d", "--device", default="cpu")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / ".cache/onnx")


def opset_of(path):
    return next(each.version for each in onnx.load(path, load_external_data=False).opset_import if not each.domain)


def remove(path):
    for file in (path, path.with_name(path.name + ".data")):
        file.unlink(missing_ok=True)


def write_tensor(path, name, values):
    with h5py.File(path, "w") as file:
        file[name] = values


def compare(path, device, inputs, outputs, folder, output="y"):
    """(whether they agree, a sentence). `inputs` and `outputs` are HDF5 files of the model's input and the expected output."""
    result = folder / "result.h5"
    done = subprocess.run([TOOLS / "dlprim_run", path, "-d", device, "--inputs", inputs, "--outputs", result],
                          capture_output=True, text=True)
    if done.returncode:
        return False, done.stderr.strip()
    with h5py.File(result) as ours, h5py.File(outputs) as theirs:
        ours, theirs = ours[output][...], theirs[output][...]
    if ours.shape != theirs.shape:
        return False, f"has shape {ours.shape} in place of {theirs.shape}"
    difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    return difference <= 1e-3, f"differs by {difference:.1e}"


def operators(path, folder):
    """How many operators of each type the model becomes, before the planner merges any."""
    net = folder / "converted.json"
    subprocess.run([TOOLS / "dlprim_convert", path, net, folder / "converted.h5"], check=True, capture_output=True)
    return collections.Counter(each["type"] for each in json.loads(net.read_text(encoding="utf-8"))["operators"])
