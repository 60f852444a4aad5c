# SPDX-License-Identifier: MIT
"""What the tests of the commands share: running one, its errors, small networks and files.

The environment says where and on what: DLPRIM_TOOLS is the folder of the commands, DLPRIM_COMMANDS_DEVICE an
OpenCL device ("opencl", the best one, when not given). Tests use that device and the host. DLPRIM_TEST_PATIENCE is
how many times as long as usual a command may take: sanitized builds are slower.
"""
import collections
import contextlib
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import h5py
    import numpy as np
except ImportError as lacking:  # scripts/install_deps.sh test installs them
    print(f"skipped: {lacking}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = pathlib.Path(os.environ.get("DLPRIM_TOOLS", ROOT / "build/tools"))
DEVICE = os.environ.get("DLPRIM_COMMANDS_DEVICE", "opencl")
SECONDS = 55 * float(os.environ.get("DLPRIM_TEST_PATIENCE", "1"))  # for a command, bad input or good

Result = collections.namedtuple("Result", "code out err")


def call(command, *arguments, timeout=SECONDS, **environment):
    """Runs dlprim_<command>; a keyword is an environment variable."""
    done = subprocess.run([TOOLS / f"dlprim_{command}", *map(str, arguments)], capture_output=True, timeout=timeout,
                          env=os.environ | environment, stdin=subprocess.DEVNULL)
    return Result(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def has_device(device):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as net:
        json.dump({"inputs": [{"name": "x", "shape": [1]}], "outputs": ["x"], "operators": []}, net)
        net.flush()
        return call("flops", net.name, "-d", device).code == 0


DEVICES = ["cpu"] + ([DEVICE] if DEVICE != "cpu" and has_device(DEVICE) else [])


class CommandTest(unittest.TestCase):
    """Each test works in a folder of its own, self.folder."""
    longMessage = True
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="dlprim-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def succeed(self, command, *arguments, **environment):
        result = call(command, *arguments, **environment)
        self.assertEqual(result.code, 0, f"dlprim_{command} {arguments}: {result.err}")
        return result

    def refuse(self, words, command, *arguments, code=1, **environment):
        """The command ends with `code`, says one sentence that has all of `words` after what it noted, and claims no
        success."""
        result = call(command, *arguments, **environment)
        what = f"dlprim_{command} {' '.join(map(str, arguments))}: {result}"[:2000]
        self.assertEqual(result.code, code, what)
        lines = [line for line in result.err.rstrip("\n").split("\n") if not line.startswith("note: ")]
        self.assertLessEqual(len(lines), 1 if code == 1 else 3, what)
        self.assertTrue(lines and lines[0].startswith(f"dlprim_{command}: "), what)
        self.assertLess(len(lines[0]), 2000, "a sentence, not a dump of the input")
        self.assertTrue(lines[0].isprintable(), what)
        for word in words:
            self.assertIn(word, lines[0])
        self.assertIsNone(re.search("saved|median|GFLOP|test accuracy", result.out), what)
        return result

    def on_terminal(self, command, *arguments, **environment):
        """What a command that succeeds writes to a terminal."""
        terminal, screen = pty.openpty()
        self.addCleanup(os.close, terminal)
        process = subprocess.Popen([TOOLS / f"dlprim_{command}", *map(str, arguments)], stdout=screen, stderr=screen,
                                   stdin=subprocess.DEVNULL, env=os.environ | environment)
        os.close(screen)
        text = b""
        with contextlib.suppress(OSError):  # how reading a terminal ends
            while piece := os.read(terminal, 65536):
                text += piece
        self.assertEqual(process.wait(), 0, text)
        return text.decode()

    def mounted(self, options):
        """A folder that is a file system of its own in memory, which ends with the test."""
        folder = self.folder / "disk"
        folder.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True).returncode:
            self.skipTest("a disk of its own cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", folder])
        return folder

    def outputs_of(self, net, device, *arguments, weights=None, inputs, **environment):
        """The outputs that dlprim_run writes. A network may be its JSON, and weights and inputs may be tensors by name."""
        files = {}
        for name, given in (("net", net), ("w", weights), ("in", inputs)):
            if isinstance(given, dict):
                given = self.write("net.json", given) if name == "net" else self.write_tensors(f"{name}.h5", **given)
            files[name] = given
        self.run_result = self.succeed("run", files["net"], "-d", device, *(("--weights", files["w"]) if weights else ()),
                                       "--inputs", files["in"], "--outputs", self.folder / "out.h5", *arguments, **environment)
        return self.read_tensors("out.h5")

    def write(self, name, content):
        """A file of text, bytes, or JSON."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, (dict, list)):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def write_tensors(self, name, **tensors):
        """An HDF5 file; __ in a keyword stands for the dot of a parameter's name."""
        path = self.folder / name
        with h5py.File(path, "w") as file:
            for key, value in tensors.items():
                file[key.replace("__", ".")] = value
        return path

    def arrays(self, **arrays):
        """What a configuration says of data in a file of numpy's, of which x are the inputs and y the labels."""
        np.savez(self.folder / "data.npz", **arrays)
        part = {"file": "data.npz", "inputs": "x", "labels": "y"}
        return {"type": "npy", "train": part, "test": part}

    def read_tensors(self, path):
        tensors = {}

        def add(name, item):
            if isinstance(item, h5py.Dataset):
                tensors[name] = item[()]
        with h5py.File(self.folder / path, "r") as file:
            file.visititems(add)
        return tensors

    def listing(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))


def operator(type_, name, inputs, makes=None, **options):
    """An operator of a network's JSON; inputs and what it `makes` as text with spaces."""
    made = {"name": name, "type": type_, "inputs": inputs.split(), "outputs": (makes or name).split()}
    for key in ("params", "frozen", "recompute", "engine", "device"):
        if key in options:
            made[key] = options.pop(key)
    if options:
        made["options"] = options
    return made


def network(inputs, outputs, *operators):
    """A network's JSON; inputs maps a name to a shape, or to (shape, dtype)."""
    def declared(name, what):
        shape, dtype = what if isinstance(what, tuple) else (what, None)
        return {"name": name, "shape": shape} | ({"dtype": dtype} if dtype else {})
    return {"inputs": [declared(*item) for item in inputs.items()], "outputs": outputs, "operators": list(operators)}


def idx(array):
    """The bytes of an IDX file of uint8."""
    return struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def main():
    print(f"devices: {', '.join(DEVICES)}", flush=True)
    unittest.main(argv=sys.argv, verbosity=2)
