#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What dlprim_train in several processes does when processes die, stop, or fail, by real runs on this machine.

    faults.py kills 200       kill -9 of a random process at a random moment, by Gloo, Open MPI and MPICH in turn;
                              then a resume with another number of processes, to the bits of an uninterrupted run
    faults.py chains 20       several kills and resumes in a row, with other starters and numbers of processes
    faults.py torchrun 5      kills of a process that torchrun --max-restarts starts again
    faults.py short           two kills and a chain, for CI

DLPRIM_TOOLS is the folder of dlprim_train, DLPRIM_TEST_SEED what random moments are drawn from, and
DLPRIM_TEST_TORCHRUN what starts torchrun. Each start takes some seconds. The exit code is 0 if nothing was wrong; what
is wrong is printed. Beside it, failing.py stops processes and takes disk and memory from them, links.py cuts and slows
links, and slurm.py starts Slurm.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import time

from training import TRANSPORTS, Start, bits, shared_memory, write_training

EPOCHS = 30
LOST = 75
FINISHED = "all had finished"


class Trouble(AssertionError):
    """What is wrong with a run."""


def check(good: bool, what: str) -> None:
    """Raises Trouble unless it is good."""
    if not good:
        raise Trouble(what)


class Work:
    """A folder with a training, the bits of its uninterrupted run, and how long that takes by each starter."""

    def __init__(self, folder: pathlib.Path, epochs: int = EPOCHS) -> None:
        self.folder = folder
        self.config = write_training(folder, epochs)
        self.seconds = {"one": 0.0}
        self.bits = ""
        for starter in ["one", *TRANSPORTS]:
            start = self.start(starter, 1 if starter == "one" else 3, "whole", "--replace")
            ended = start.ended(120)
            check(set(ended.codes) == {0}, f"{starter}: {ended}")
            self.seconds[starter] = time.monotonic() - start.begun
            found = bits(folder / "whole")
            self.bits = self.bits or found
            check(found == self.bits, f"{starter} has other bits than one process")
            start.forget()
        print("uninterrupted:", ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items()),
              f"bits {self.bits}", flush=True)

    def start(self, starter: str, count: int, out: str, *arguments: str) -> Start:
        """Starts the training by so many processes."""
        return Start(starter, count, [str(self.config), "-d", "cpu", "--out", str(self.folder / out), *arguments])

    def finish(self, starter: str, count: int, out: str) -> None:
        """Goes on from the last checkpoint to the end, and compares the bits."""
        start = self.start(starter, count, out, "--resume", "latest")
        ended = start.ended(120)
        check(set(ended.codes) == {0}, f"a resume by {starter}, {count} processes: {ended}")
        check(bits(self.folder / out) == self.bits, f"a resume by {starter}, {count} processes, has other bits")
        start.forget()


def judge(start: Start, starter: str, victim: int, name: str) -> str:
    """What became of a start whose process `victim` was killed; raises Trouble where that is wrong."""
    codes = [process.wait() for process in start.processes]
    errors = start.errors()
    all_errors = "".join(errors)
    told = f"{name}: codes {codes}, stderr {errors}, stdout ends in {start.text()[-600:]!r}"
    if starter != "gloo":
        if codes == [0]:
            return "the others had finished"
        by_watch = re.search(rf"rank {victim} \(process \d+ on '.*'\) ended without a word in step (\d+)", all_errors)
        by_starter = re.search(rf"rank {victim} .*exited on signal 9|EXIT CODE: 9",
                               all_errors + start.text())
        check(codes[0] != 0, told)
        if by_watch or by_starter:
            return "named by us" if by_watch else "named by the starter alone"
        # mpirun ends the others at once, and its own report may be cut short while MPI starts.
        check("exchange their sums" not in start.text() and "dlprim_train: " not in all_errors, told)
        return "not named, while MPI started"
    others = [code for rank, code in enumerate(codes) if rank != victim]
    if all(code == 0 for code in others):
        return "the others had finished"
    check(set(others) == {LOST}, told)
    for rank, text in enumerate(errors):
        if rank == victim:
            continue
        check(len(text.splitlines()) == 1, told)
        if "not come within" in text or "does not begin within" in text or "does not answer at" in text:
            return "before it had met the others"
        check(bool(re.search(rf"^dlprim_train: .*rank {victim}\b", text)), told)
        check("in step" in text or f"rank {victim} (" in text, told)
    return "named by us"


def kill_once(
    work: Work, chance: random.Random, starter: str, count: int, out: str, share: float = 1
) -> tuple[str, float]:
    """Kills a process of a start at a random moment, in this share of the time of a whole run; what became of it, and
    after how many seconds all had ended."""
    before = shared_memory()
    start = work.start(starter, count, out, "--resume", "latest")
    victim = chance.randrange(count) if count > 1 else 0
    moment = chance.uniform(0, share * work.seconds[starter])
    name = f"{starter}, rank {victim} of {count}, after {moment:.2f} s"
    try:
        time.sleep(moment)
        while victim not in (running := start.ranks() if starter != "one" else {0: start.processes[0].pid}):
            if start.wait_until_gone(0.01) is not None:
                return FINISHED, 0.0
        try:
            os.kill(running[victim], signal.SIGKILL)
        except ProcessLookupError:
            return FINISHED, 0.0
        took = start.wait_until_gone(60)
        check(took is not None, f"{name}: processes run after 60 s: {start.found().keys()} {start.errors()}")
        kind = judge(start, starter, victim, name) if starter != "one" else "alone"
        check(kind == "before it had met the others" or (took or 0) < 10, f"{name}: ended after {took} s, {kind}: "
              f"{start.errors()}")
        left = start.left_behind()
        check(not left, f"{name}: left behind {left}")
        names = "dlprim|" + {"openmpi": "vader", "mpich": "mpich"}.get(starter, "dlprim")  # not of others' runs
        new = [file for file in shared_memory() - before if re.search(names, file)]
        # MPICH makes such a file while it starts, and removes its name only later.
        of_mpich = [file for file in new if starter == "mpich" and file.startswith("mpich_shar_tmp")]
        check(new == of_mpich, f"{name}: left in /dev/shm {new}")
        kind += ", MPICH left a file in /dev/shm" if of_mpich else ""
        for file in of_mpich:
            pathlib.Path("/dev/shm", file).unlink(missing_ok=True)
        return kind, took or 0.0
    finally:
        start.kill()
        start.forget()


def kills(work: Work, turns: int) -> int:
    """Prints a table; returns how many turns were wrong."""
    chance = random.Random(int(os.environ.get("DLPRIM_TEST_SEED", "23")))
    turns_of = [name for other in TRANSPORTS[1:] for name in ("gloo", other)] or TRANSPORTS
    seen: dict[str, list[tuple[str, float]]] = collections.defaultdict(list)
    wrong = 0
    for turn in range(turns):
        starter = turns_of[turn % len(turns_of)]
        try:
            kind = FINISHED
            while kind == FINISHED:  # the moment was too late: another is drawn
                shutil.rmtree(work.folder / "out", ignore_errors=True)
                kind, took = kill_once(work, chance, starter, 3, "out")
                work.seconds[starter] *= 0.9 if kind == FINISHED else 1
            seen[starter].append((kind, took))
            again = chance.choice([("one", 1), *((name, count) for name in TRANSPORTS for count in (2, 4))])
            work.finish(*again, "out")
            print(f"{turn + 1}: {starter}: {kind}, all ended after {took:.2f} s; resumed by {again}", flush=True)
        except (Trouble, TimeoutError, OSError) as error:
            wrong += 1
            print(f"{turn + 1}: WRONG: {error}", flush=True)
    print("\n| starter | what was seen | runs | longest time to the end of all, s |\n|---|---|---|---|")
    for starter, all_seen in sorted(seen.items()):
        for kind in sorted({kind for kind, _ in all_seen}):
            times = [took for other, took in all_seen if other == kind]
            print(f"| {starter} | {kind} | {len(times)} | {max(times):.2f} |")
    print(f"{turns} kills, {wrong} wrong", flush=True)
    return wrong


def chains(work: Work, turns: int) -> int:
    """Kills and resumes in a row; returns how many chains were wrong."""
    chance = random.Random(int(os.environ.get("DLPRIM_TEST_SEED", "24")))
    ways = [("one", 1), *((name, count) for name in TRANSPORTS for count in (2, 3, 4))]
    wrong = killed = 0
    for turn in range(turns):
        shutil.rmtree(work.folder / "out", ignore_errors=True)
        told: list[str] = []
        try:
            for _ in range(chance.randint(2, 5)):
                starter, count = chance.choice(ways)
                kind, took = kill_once(work, chance, starter, count, "out", 0.7)
                killed += kind != FINISHED
                told.append(f"{starter} x {count} ({kind}, {took:.1f} s)")
            starter, count = chance.choice(ways)
            work.finish(starter, count, "out")
            print(f"chain {turn + 1}: {', '.join(told)}, then {starter} x {count}: {work.bits}", flush=True)
        except (Trouble, TimeoutError, OSError) as error:
            wrong += 1
            print(f"chain {turn + 1}: WRONG: {', '.join(told)}: {error}", flush=True)
    print(f"{turns} chains with {killed} kills, {wrong} wrong", flush=True)
    return wrong


def torchrun(work: Work, turns: int) -> int:
    """Kills a process in the middle; torchrun begins again by itself. Returns how many turns were wrong."""
    chance = random.Random(int(os.environ.get("DLPRIM_TEST_SEED", "25")))
    wrong = 0
    for turn in range(turns):
        out = work.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        start = work.start("torchrun", 3, "out", "--resume", "latest")
        while not list(out.glob("checkpoint_*.h5")) and start.wait_until_gone(0.02) is None:
            pass
        time.sleep(chance.uniform(0, work.seconds["gloo"] / 2))
        victim = chance.randrange(3)
        running = start.ranks()
        if victim in running:
            os.kill(running[victim], signal.SIGKILL)
        ended = start.ended(180)
        seconds = time.monotonic() - start.begun
        good = ended.codes == [0] and bits(out) == work.bits
        wrong += not good
        told = re.findall("dlprim_train: rank.*", ended.errors)
        print(f"{turn + 1}: rank {victim} {'killed' if victim in running else 'had ended'}, codes {ended.codes}, "
              f"{seconds:.1f} s, {'the bits of one process' if good else 'WRONG ' + ended.errors}: {told}", flush=True)
        start.forget()
    return wrong


def main() -> int:
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kills", "chains", "torchrun", "short"])
    parser.add_argument("turns", type=int, nargs="?", default=2)
    given = parser.parse_args()
    if not TRANSPORTS:
        print("skipped: there is no plugin by which processes exchange data")
        return 77
    with tempfile.TemporaryDirectory(prefix="dlprim-faults-") as name:
        work = Work(pathlib.Path(name))
        if given.what == "short":
            return min(1, kills(work, 2) + chains(work, 1))
        return min(1, {"kills": kills, "chains": chains, "torchrun": torchrun}[given.what](work, given.turns))


if __name__ == "__main__":
    sys.exit(main())
