#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums over shards in several processes whose transport is treated roughly (tests/collective/rough_transport.cpp).

    rough.py delays 1000      so many exchanges of each layout of hosts, by each transport in turn, with random delays
                              in the transport, around waits in shared memory, and before sums leave: the same bits
    rough.py faults 50        so many runs of each layout and fault, in which a transport corrupts, shortens, reorders
                              or repeats a random message: each is noticed, and no run ends with other bits
    rough.py locks 30 PROGRAM WORD...   so many runs of a test program with random delays before locks of mutexes
    rough.py short            some exchanges with delays and some with faults, for CI

DLPRIM_EXCHANGE_HASH is the program that exchanges, DLPRIM_ROUGH the plugin, DLPRIM_PLUGINS the folder of the others,
and DLPRIM_TEST_SEED what random choices begin with. The exit code is 0 if nothing was wrong; what is wrong is printed.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import itertools
import os
import pathlib
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from exchanges import PLUGINS, PROGRAM, TRANSPORTS, run

ROUGH = os.environ["DLPRIM_ROUGH"]
SHARDS, SIZES = 11, [3000, 8, 5000]
STEPS = 20  # of a start
FAULTS = ("corrupt", "shorten", "reorder", "repeat")
# What those say who have noticed, or who were stopped by one who has.
NOTICED = re.compile("changes what it carries|do not run the same steps|do not compute the same network")


@dataclasses.dataclass(frozen=True)
class Layout:
    """Where ranks run."""

    name: str
    hosts: str  # of the processes
    contexts: int = 1  # ranks of a process
    levels: str = ""
    shared: bool = True
    any: bool = False

    def words(self, steps: int) -> list[str]:
        """The command of each process."""
        words = [PROGRAM, "cpu", str(self.contexts), str(SHARDS), str(steps), *map(str, SIZES)]
        return [*words, "any"] if self.any else words

    def variables(self, transport: str, seed: int) -> dict[str, str]:
        """By which the program finds the rough transport."""
        return {
            "DLPRIM_TRANSPORT": ROUGH,
            "DLPRIM_ROUGH_OF": str(PLUGINS / f"dlprim_{transport}.so"),
            "DLPRIM_ROUGH_SEED": str(seed),
            "DLPRIM_START_SECONDS": "20",
            "DLPRIM_LEVELS": self.levels,
            "DLPRIM_SHARED": str(int(self.shared)),
        }

    def is_right(self, out: str, expected: str) -> bool:
        """Whether all ranks have printed the same hash, and the one of the tree."""
        hashes = out.split()
        count = self.contexts * len(self.hosts.split())
        return len(hashes) == count and len(set(hashes)) == 1 and (self.any or hashes[0] == expected)


LAYOUTS = [
    Layout("direct", "a b c", shared=False),
    Layout("direct, two ranks each", "a b", contexts=2, shared=False),
    Layout("shared", "a a a"),
    Layout("shared, two ranks each", "a a", contexts=2),
    Layout("levels 2 x 2", "a a b b"),
    Layout("levels 2 x 2 in turns", "a b a b"),
    Layout("levels 2 x 2, not shared", "a b c d", levels="2,2", shared=False),
    Layout("levels 2 x 2 x 2", "a a b b c c d d", levels="2,2,2"),
    Layout("levels 3 + 1", "a a a b"),
    Layout("levels 1 + 4 + 1", "a b b b b c"),
    Layout("levels 2 + 1, two ranks each", "a a b", contexts=2),
    Layout("any", "a b b", any=True),
    Layout("any, two ranks each", "a b", contexts=2, any=True),
]
SHORT = ("direct, two ranks each", "shared", "levels 2 x 2", "levels 3 + 1", "levels 1 + 4 + 1", "any")


def right_hash(steps: int) -> str:
    """What the ranks of one process compute."""
    words = [PROGRAM, "cpu", "3", str(SHARDS), str(steps), *map(str, SIZES)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[0]


def delays(count: int, layouts: list[Layout]) -> list[str]:
    """Exchanges with random delays, which must not change bits."""
    wrong = []
    transports = itertools.cycle(TRANSPORTS)
    expected = right_hash(STEPS)
    for layout in layouts:
        begun = time.monotonic()
        starts = -(-count // STEPS)
        longest = 0.0
        for transport in itertools.islice(transports, starts):
            # Short ones, which end about when others do, and long ones.
            variables = {"DLPRIM_ROUGH_DELAYS": random.choice(("20", "300", "3000")), "PRELOAD": ROUGH}
            variables |= layout.variables(transport, random.randrange(10**6))
            told = f"{layout.name}, {transport}, {variables}"
            began = time.monotonic()
            try:
                code, out, errors = run(transport, layout.hosts, layout.words(STEPS), **variables)
                if code != 0 or not layout.is_right(out, expected):
                    wrong.append(f"{told}: code {code}, {out}, {errors}")
            except subprocess.TimeoutExpired:
                wrong.append(f"{told}: HANGS")
            longest = max(longest, time.monotonic() - began)
        print(
            f"{layout.name}: {starts} starts of {STEPS} exchanges, {time.monotonic() - begun:.0f} s, "
            f"the longest {longest:.1f} s; wrong up to here: {len(wrong)}",
            flush=True,
        )
    return wrong


def messages_of(layout: Layout, transport: str) -> dict[int, int]:
    """How many messages each rank takes in a run without faults."""
    code, _, errors = run(transport, layout.hosts, layout.words(3), **layout.variables(transport, 1))
    if code != 0:
        raise AssertionError(f"{layout.name}, {transport}: {errors}")
    return {int(rank): int(count) for rank, count in re.findall(r"rough: rank (\d+) took (\d+) messages", errors)}


def faults(count: int, layouts: list[Layout]) -> list[str]:
    """Runs in which one message is changed."""
    wrong = []
    transports = itertools.cycle(TRANSPORTS)
    expected = right_hash(3)
    for layout in layouts:
        messages = {transport: messages_of(layout, transport) for transport in TRANSPORTS}
        for fault in FAULTS:
            seen: collections.Counter[str] = collections.Counter()
            longest = 0.0
            for transport in itertools.islice(transports, count):
                rank = random.randrange(len(layout.hosts.split()))
                # By the first of MPI processes only look for each other.
                message = random.randrange(1, messages[transport][rank])
                variables = layout.variables(transport, 1) | {"DLPRIM_ROUGH_FAULT": f"{fault}:{rank}:{message}"}
                told = f"{layout.name}, {transport}, {fault} of message {message} to rank {rank}"
                began = time.monotonic()
                try:
                    code, out, errors = run(transport, layout.hosts, layout.words(3), **variables)
                except subprocess.TimeoutExpired:
                    wrong.append(f"{told}: HANGS")
                    continue
                longest = max(longest, time.monotonic() - began)
                if "changed\n" not in errors:
                    seen["the same bytes anyway"] += 1
                    if code != 0 or not layout.is_right(out, expected):
                        wrong.append(f"{told}: nothing was changed, but code {code}: {out}, {errors}")
                elif code != 0 and NOTICED.search(errors):
                    seen["noticed"] += 1
                else:
                    wrong.append(f"{told}: NOT NOTICED: code {code}: {out}, {errors}")
            print(
                f"{layout.name}, {fault}: {dict(seen)}, the longest {longest:.1f} s; wrong up to here: {len(wrong)}",
                flush=True,
            )
    return wrong


def locks(count: int, words: list[str]) -> list[str]:
    """Runs of a program that must end well."""
    wrong = []
    longest = 0.0
    for i in range(count):
        delay = ("20", "300", "3000")[i % 3]
        variables = {
            "LD_PRELOAD": ROUGH,
            "DLPRIM_ROUGH_LOCKS": delay,
            "DLPRIM_ROUGH_SEED": str(random.randrange(10**6)),
        }
        began = time.monotonic()
        try:
            done = subprocess.run(words, capture_output=True, text=True, env=os.environ | variables, timeout=900)
            if done.returncode != 0:
                wrong.append(f"{variables}: code {done.returncode}: {done.stdout[-3000:]} {done.stderr[-1000:]}")
        except subprocess.TimeoutExpired:
            wrong.append(f"{variables}: HANGS")
        longest = max(longest, time.monotonic() - began)
    print(f"{words}: {count} runs, the longest {longest:.1f} s; wrong: {len(wrong)}", flush=True)
    return wrong


def main() -> int:
    """Does what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("delays", "faults", "locks", "short"))
    parser.add_argument("count", type=int, nargs="?", default=0)
    parser.add_argument("words", nargs="*", help="the program of `locks`, and its arguments")
    parser.add_argument("--layout", help="only layouts whose names have this in them", default="")
    arguments = parser.parse_args()
    if not TRANSPORTS:
        print("skipped: there is no plugin by which processes exchange data")
        return 77
    random.seed(int(os.environ.get("DLPRIM_TEST_SEED", "1")))
    layouts = [layout for layout in LAYOUTS if arguments.layout in layout.name]
    if arguments.what == "short":
        layouts = [layout for layout in layouts if layout.name in SHORT]
    wrong = []
    if arguments.what == "locks":
        wrong += locks(arguments.count or 3, arguments.words)
    if arguments.what in ("delays", "short"):
        wrong += delays(arguments.count or STEPS, layouts)
    if arguments.what in ("faults", "short"):
        wrong += faults(arguments.count or 1, layouts)
    for each in wrong:
        print(each)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
