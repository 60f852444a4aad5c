# SPDX-License-Identifier: MIT
"""A small training in several processes for faults.py: its files, starting it by each starter, finding its processes,
the bits of its result, and what it has left behind when it has ended.

All processes of a start have a variable FAULTS_MARK, by which /proc tells them from others, and a folder of their own
for temporary files. DLPRIM_TOOLS is the folder of dlprim_train, DLPRIM_TEST_PLUGINS that of the plugins by which
processes exchange data.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import struct
import subprocess
import sys
import time
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import starters

TOOLS = pathlib.Path(os.environ.get("DLPRIM_TOOLS", pathlib.Path(__file__).resolve().parents[2] / "build/tools"))
PLUGINS = pathlib.Path(os.environ.get("DLPRIM_TEST_PLUGINS", TOOLS.parent / "lib/dlprim-0"))
TRAIN = str(TOOLS / "dlprim_train")
QUIET = starters.QUIET | {
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    # A process that dies before it has met the others is not known to them when they are started by hand.
    "DLPRIM_START_SECONDS": "8",
}
STARTERS = dict(starters.STARTERS)
if "DLPRIM_TEST_TORCHRUN" in os.environ:
    STARTERS["torchrun"] = [
        *os.environ["DLPRIM_TEST_TORCHRUN"].split(),
        "--standalone",
        "--no-python",
        *("--max-restarts", "3", "--nproc-per-node"),
    ]
TRANSPORTS = starters.transports_in(PLUGINS)
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK", "SLURM_PROCID")
SHARDS = 4


def idx(array: npt.NDArray[np.uint8]) -> bytes:
    """The bytes of an IDX file."""
    return struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def operator(kind: str, name: str, inputs: str, **options: Any) -> dict[str, Any]:
    """An operator of a network's JSON; inputs as text with spaces."""
    return {"name": name, "type": kind, "inputs": inputs.split(), "outputs": [name], "options": options}


NET = {
    "inputs": [{"name": "image", "shape": [16, 1, 8, 8]}, {"name": "label", "shape": [16], "dtype": "int"}],
    "outputs": ["prob", "loss"],
    "operators": [
        operator("Convolution2D", "conv", "image", channels_out=8, kernel=3, pad=1, bias=False),
        operator("BatchNorm", "bn", "conv"),
        operator("Dropout", "drop", "bn", p=0.1),
        operator("InnerProduct", "fc", "drop", outputs=4),
        operator("Softmax", "prob", "fc"),
        operator("SoftmaxWithLoss", "loss", "fc label"),
    ],
}


def write_training(folder: pathlib.Path, epochs: int, **more: Any) -> pathlib.Path:
    """The configuration, network and data of a training; returns the configuration's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "net.json").write_text(json.dumps(NET))
    numbers = np.random.default_rng(1)
    for name, count in (("train", 256), ("test", 40)):
        labels = numbers.integers(0, 4, count).astype(np.uint8)
        images = (numbers.integers(0, 130, (count, 8, 8)) + 30 * labels[:, None, None]).astype(np.uint8)
        (folder / f"{name}-images").write_bytes(idx(images))
        (folder / f"{name}-labels").write_bytes(idx(labels))
    content = {
        "net": "net.json",
        "batch": 16,
        "epochs": epochs,
        "seed": 3,
        "shards": SHARDS,
        "data": {
            "type": "idx",
            "train": {"images": "train-images", "labels": "train-labels"},
            "test": {"images": "test-images", "labels": "test-labels"},
        },
        "augmentation": {"flip": True, "crop_pad": 1},
        "checkpoints": {"every_steps": 50, "keep": 2},
        "solver": {"type": "adam", "learning_rate": 0.01, "clip_norm": 1},
    } | more
    path = folder / "train.json"
    path.write_text(json.dumps(content))
    return path


def bits(out: pathlib.Path) -> str:
    """A digest of model.h5 and of all that metrics.csv says, but the time."""
    digest = hashlib.sha256()

    def add(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            digest.update(name.encode() + b"\0" + item[()].tobytes())

    with h5py.File(out / "model.h5", "r") as file:
        file.visititems(add)
    with open(out / "metrics.csv", newline="") as table:
        for row in csv.DictReader(table):
            digest.update(repr(sorted((key, value) for key, value in row.items() if key != "seconds")).encode())
    return digest.hexdigest()[:16]


@dataclasses.dataclass
class Ended:
    """How a start has ended: exit codes by rank, or of the starter alone, and what was written by all."""

    codes: list[int]
    out: str
    errors: str


class Start:
    """Processes of one start of the training by `starter`: gloo (by hand), openmpi, mpich, torchrun, or one."""

    def __init__(
        self, starter: str, count: int, arguments: list[str], environment: list[dict[str, str]] | None = None,
        before: list[list[str]] | None = None, address: str = "127.0.0.1",
    ) -> None:
        """`environment` and `before` are variables of each rank, and words before its command."""
        self.mark = secrets.token_hex(8)
        self.count = count
        self.temporary = pathlib.Path(f"/tmp/faults-{self.mark}")
        self.temporary.mkdir()
        self.port = starters.free_port()
        self.begun = time.monotonic()
        common = os.environ | QUIET | {"FAULTS_MARK": self.mark, "TMPDIR": str(self.temporary)}
        words: list[list[str]] = []
        variables: list[dict[str, str]] = []
        for rank in range(count if starter == "gloo" else 1):
            own = starters.place_of(rank, count, self.port, address)
            first = [*STARTERS[starter], str(count)] if starter in STARTERS else []
            words.append([*(before[rank] if before else []), *first, TRAIN, *arguments])
            variables.append(common | (own if starter == "gloo" else {}) | (environment[rank] if environment else {}))
        self.files = [(self.temporary / f"out{i}", self.temporary / f"err{i}") for i in range(len(words))]
        self.processes = []
        for (out, err), command, each in zip(self.files, words, variables):
            with open(out, "wb") as to_out, open(err, "wb") as to_err:
                self.processes.append(subprocess.Popen(command, env=each, stdin=subprocess.DEVNULL, stdout=to_out,
                                                       stderr=to_err, start_new_session=True))

    def found(self) -> dict[int, str]:
        """Identifiers of all processes of this start that have not ended, with their variables."""
        mark = f"FAULTS_MARK={self.mark}".encode()
        all_of_them = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                environ = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
            except OSError:
                continue
            if mark in environ:
                all_of_them[int(entry)] = environ.decode(errors="replace")
        return all_of_them

    def ranks(self) -> dict[int, int]:
        """The process of each rank that runs."""
        ranks = {}
        for process, environ in self.found().items():
            try:
                command = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]
            except OSError:
                continue
            values = dict(part.split("=", 1) for part in environ.split("\0") if "=" in part)
            if command.decode() != TRAIN:
                continue
            for name in RANK_VARIABLES:
                if name in values:
                    ranks[int(values[name])] = process
                    break
        return ranks

    def wait_until_gone(self, seconds: float, but: tuple[int, ...] = ()) -> float | None:
        """Waits until no process of the start runs any more; how long that took, or nothing if it took longer."""
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            # A process that has just been started is not among those found until it has its environment.
            running = [process.pid for process in self.processes if process.poll() is None]
            if all(process in but for process in [*running, *self.found()]):
                return time.monotonic() - begin
            time.sleep(0.05)
        return None

    def text(self) -> str:
        """What the ranks have printed so far."""
        return "".join(out.read_text(errors="replace") for out, _ in self.files)

    def ended(self, seconds: float) -> Ended:
        """Waits for the end, and ends what runs longer."""
        if self.wait_until_gone(seconds) is None:
            self.kill()
            raise TimeoutError(f"after {seconds} seconds there are processes yet: {self.text()} {self.errors()}")
        return Ended([process.wait() for process in self.processes], self.text(), "".join(self.errors()))

    def errors(self) -> list[str]:
        """What each has written to stderr so far."""
        return [err.read_text(errors="replace") for _, err in self.files]

    def kill(self) -> None:
        """Ends all processes of this start, and no other."""
        for process in self.found():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for started in self.processes:
            started.wait()

    def left_behind(self) -> list[str]:
        """Temporary files other than the output, and listening sockets on the port of the start."""
        own = {file for pair in self.files for file in pair}
        left = [str(path) for path in self.temporary.rglob("*") if path not in own and not path.is_dir()]
        for table in ("/proc/net/tcp", "/proc/net/tcp6"):
            for line in pathlib.Path(table).read_text().splitlines()[1:]:
                words = line.split()
                if words[1].endswith(f":{self.port:04X}") and words[3] == "0A":
                    left.append(f"a listening socket on port {self.port}")
        return left

    def forget(self) -> None:
        """Removes the temporary files."""
        shutil.rmtree(self.temporary, ignore_errors=True)


def shared_memory() -> set[str]:
    """Names in /dev/shm that no process uses. Other runs of this machine may have some in use."""
    names = set(os.listdir("/dev/shm"))
    for _ in range(3):  # what is just being made or removed is not mapped for a moment
        used = ""
        for maps in pathlib.Path("/proc").glob("[0-9]*/maps"):
            try:
                used += maps.read_text(errors="replace")
            except OSError:
                continue  # it has ended
        names = {name for name in names & set(os.listdir("/dev/shm")) if f"/dev/shm/{name}\n" not in used}
        time.sleep(0.1)
    return names
