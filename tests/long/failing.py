#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What dlprim_train in three processes does when one of them stops or lacks something, by real runs on this machine.

    failing.py stop      SIGSTOP for 10 seconds, which only costs time, and for good
    failing.py disk      the folder of results is on a small file system that becomes full (needs root)
    failing.py memory    a process under ulimit -v, and one in a cgroup whose memory ends (needs root and cgroups)
    failing.py nan       a loss that is not finite
    failing.py all

DLPRIM_TOOLS is the folder of dlprim_train. The exit code is 0 if all processes ended within a minute, and named the
first that failed.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from faults import EPOCHS, LOST
from training import TRAIN, TRANSPORTS, Start, bits, write_training

FOREVER = 100000


class Runs:
    """Starts of three processes, and what was wrong with them."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.wrong = 0

    def start(self, starter: str, epochs: int, before: list[list[str]] | None = None, out: str = "out",
              **more: Any) -> Start:
        """Starts them; `before` are words before the command of each."""
        config = write_training(self.folder, epochs, **more)
        count = 1 if starter == "one" else 3
        arguments = [str(config), "-d", "cpu", "--out", str(self.folder / out), "--replace"]
        return Start(starter, count, arguments, None, before)

    def tell(self, good: bool, what: str) -> None:
        """Prints a result."""
        self.wrong += not good
        print(what if good else f"WRONG: {what}", flush=True)

    def alone(self, epochs: int, **more: Any) -> str:
        """The bits of one process."""
        start = self.start("one", epochs, out="alone", **more)
        start.ended(120)
        start.forget()
        return bits(self.folder / "alone")

    def end(
        self, start: Start, victim: int, pattern: str, what: str, codes: set[int], but: tuple[int, ...] = ()
    ) -> None:
        """Waits for the end of all, which must come within a minute; the others must name the victim by the pattern."""
        took = start.wait_until_gone(60, but)
        errors = start.errors()
        start.kill()
        found = [process.returncode for process in start.processes]
        of_others = found if len(found) == 1 else [code for rank, code in enumerate(found) if rank != victim]
        lines = errors if len(errors) == 1 else [text for rank, text in enumerate(errors) if rank != victim]
        good = took is not None and set(of_others) <= codes and all(re.search(pattern, text) for text in lines)
        self.tell(good, f"{what}: {'all' if not but else 'all others'} ended after {took or -1:.1f} s, codes {found}; "
                        f"{errors}")
        start.forget()


def until(start: Start, word: str) -> None:
    """Waits until it is printed, or all have ended."""
    while word not in start.text() and start.wait_until_gone(0.02) is None:
        pass


def stop(runs: Runs) -> None:
    """SIGSTOP."""
    whole = runs.alone(EPOCHS)
    for starter in TRANSPORTS:
        for victim in (1, 0):
            start = runs.start(starter, EPOCHS)
            until(start, "epoch 2/")
            process = start.ranks()[victim]
            os.kill(process, signal.SIGSTOP)
            time.sleep(10)
            os.kill(process, signal.SIGCONT)
            ended = start.ended(120)
            good = set(ended.codes) == {0} and bits(runs.folder / "out") == whole
            runs.tell(good, f"{starter}: rank {victim} stopped for 10 s: codes {ended.codes}, "
                            f"{time.monotonic() - start.begun:.1f} s, the bits of one process: {good}; {ended.errors}")
            start.forget()
    for starter in TRANSPORTS:
        for victim in (1, 0):
            start = runs.start(starter, FOREVER, checkpoints={"every_epochs": 0})
            until(start, "epoch 2/")
            process = start.ranks()[victim]
            os.kill(process, signal.SIGSTOP)
            named = rf"rank {victim} \(process {process} on '.*'\) has not answered for \d+ seconds in step"
            runs.end(start, victim, named, f"{starter}: rank {victim} stopped for good", {LOST},
                     (process,) if starter == "gloo" else ())


def disk(runs: Runs) -> None:
    """A small file system for the results, which becomes full at once, or by checkpoints that are kept."""
    for kilobytes in (4, 64, 256):
        small = runs.folder / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(small)], check=True)
        try:
            start = runs.start("gloo", EPOCHS, out="small/out", checkpoints={"every_steps": 50, "keep": 99})
            took = start.wait_until_gone(90)
            notes = sorted(set(re.findall("note: no .* saved.*", start.text())))
            codes, errors = [process.wait() for process in start.processes], start.errors()
            named = all(re.search(r"^dlprim_train: .*(rank 0 \(process \d+|small)", text) for text in errors)
            good = took is not None and len(set(codes)) == 1 and codes[0] in (0, 1, LOST) and (codes[0] == 0 or named)
            runs.tell(good, f"a disk of {kilobytes} KiB: all ended after {took or -1:.1f} s, codes {codes}; {errors}; "
                            f"{len(notes)} notes such as {notes[:1]}")
            start.forget()
        finally:
            subprocess.run(["umount", str(small)], check=True)
            small.rmdir()


def memory(runs: Runs) -> None:
    """Rank 1 lacks memory: as its address space ends, from the start or later, and as the system ends it for that."""
    start = runs.start("one", 2)
    peak = 0
    while start.wait_until_gone(0.001) is None:
        try:
            status = pathlib.Path(f"/proc/{start.processes[0].pid}/status").read_text()
        except OSError:
            continue
        found = re.search(r"VmPeak:\s+(\d+) kB", status)
        peak = max(peak, int(found.group(1)) if found else 0)
    start.forget()
    print(f"one process has an address space of up to {peak / 1024:.0f} MiB", flush=True)
    for share in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0):
        limited = ["bash", "-c", f'ulimit -v {int(share * peak)}; exec "$@"', "-"]
        start = runs.start("gloo", EPOCHS, [[], limited, []])
        took = start.wait_until_gone(60)
        codes, errors = [process.poll() for process in start.processes], start.errors()
        start.kill()
        named = all(re.search(r"rank 1\b", text) for text in errors[::2])
        good = took is not None and (codes == [0, 0, 0] or (named and codes[::2] == [LOST] * 2))
        runs.tell(good, f"rank 1 under ulimit -v of {share * peak / 1024:.0f} MiB: all ended after {took or -1:.1f} s, "
                        f"codes {codes}; {errors}")
        start.forget()
    group = pathlib.Path("/sys/fs/cgroup/memory") if pathlib.Path("/sys/fs/cgroup/memory").is_dir() else pathlib.Path(
        "/sys/fs/cgroup")
    own = group / f"dlprim-faults-{os.getpid()}"
    own.mkdir()
    try:
        limit = own / ("memory.limit_in_bytes" if (own / "memory.limit_in_bytes").exists() else "memory.max")
        limited = ["bash", "-c", f'echo $$ > {own}/cgroup.procs; exec "$@"', "-"]
        for mebibytes in (2, 4, 6, 8, 10):
            limit.write_text(str(mebibytes << 20))
            start = runs.start("gloo", FOREVER, [[], limited, []], checkpoints={"every_epochs": 0})
            took = start.wait_until_gone(30)
            errors = start.errors()
            start.kill()
            codes = [process.returncode for process in start.processes]
            killed = codes[1] == -signal.SIGKILL and took is not None
            named = all(re.search(r"rank 1\b", text) for text in errors[::2])
            runs.tell(named if killed else took is None, f"rank 1 in a cgroup of {mebibytes} MiB: "
                      f"{f'all ended after {took:.1f} s' if took else 'it runs'}, codes {codes}; {errors}")
            start.forget()
    finally:
        time.sleep(0.5)
        own.rmdir()


def nan(runs: Runs) -> None:
    """A rate at which the loss is not finite soon."""
    solver = {"type": "sgd", "learning_rate": 1e30}
    for starter in TRANSPORTS:
        start = runs.start(starter, EPOCHS, solver=solver)
        # mpiexec kills the others as soon as one has ended, and may return the code of these.
        codes = {1, 9} if starter == "mpich" else {1}
        runs.end(start, -1, r"dlprim_train: .*(not finite|is nan|NaN)", f"{starter}: a loss that is not finite", codes)
    whole = runs.alone(1, solver=solver, on_nan="continue")
    start = runs.start("gloo", 1, solver=solver, on_nan="continue")
    ended = start.ended(60)
    good = set(ended.codes) == {0} and bits(runs.folder / "out") == whole
    runs.tell(good, f"on_nan continue: codes {ended.codes}, the bits of one process: {good}; {ended.errors}")
    start.forget()


def main() -> int:
    """Runs what the command line names."""
    calls = {"stop": stop, "disk": disk, "memory": memory, "nan": nan}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*calls, "all"])
    what = parser.parse_args().what
    if not shutil.which(TRAIN):
        raise SystemExit(f"there is no {TRAIN}: DLPRIM_TOOLS must be its folder")
    with tempfile.TemporaryDirectory(prefix="dlprim-failing-") as name:
        runs = Runs(pathlib.Path(name))
        for kind, call in calls.items():
            if what in (kind, "all"):
                call(runs)
    return min(1, runs.wrong)


if __name__ == "__main__":
    sys.exit(main())
