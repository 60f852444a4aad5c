#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What processes give each other that is not a sum, by Open MPI, MPICH and Gloo: updated parameters, values of the first
process, and small values in the middle of a step. All arrive, and the transport's bytes tell the way: none within a host
that shares memory, and each piece once for each other host. Hosts are names in a variable."""
import os
import sys
import time
import unittest

from levels_test import TRANSPORTS, assert_all_end, run, start_by_hand

PROGRAM = os.environ["DLPRIM_SHARE_HASH"]
ELEMENTS, VALUES = 3_000_000, 700  # of floats, more than a part of a broadcast, and of doubles
KINDS = ("share", "broadcast", "values")


def command(kind, device="cpu", contexts=1, steps=3, *more):
    return [PROGRAM, kind, device, str(contexts), str(steps), str(VALUES if kind == "values" else ELEMENTS), *more]


def slice_bytes(processes, contexts=1):
    """Of the slices that the ranks of each process share."""
    ranks = processes * contexts
    begins = [ELEMENTS * q // ranks // 64 * 64 for q in range(ranks)] + [ELEMENTS]
    return [(begins[(p + 1) * contexts] - begins[p * contexts]) * 4 for p in range(processes)]


def expected_bytes(kind, hosts, contexts):
    """What the transport of each process sends in a step, where processes of a host share memory: in two levels."""
    names = hosts.split()
    others = len(set(names)) - 1
    if kind == "values":
        return [VALUES * 8 * contexts * others] * len(names)
    if kind == "share":
        return [each * others for each in slice_bytes(len(names), contexts)]
    firsts = [names.index(name) for name in dict.fromkeys(names)]
    sent = [0] * len(names)
    have = 1
    while have < len(firsts):
        for place in range(min(have, len(firsts) - have)):
            sent[firsts[place]] += ELEMENTS * 4
        have *= 2
    return sent


class Shares(unittest.TestCase):
    def check(self, kind, transport, hosts, contexts=1, device="cpu", expected=None, prefix=(), **variables):
        with self.subTest(kind=kind, transport=transport, hosts=hosts, contexts=contexts, device=device, **variables):
            code, out, errors = run(transport, hosts, [*prefix, *command(kind, device, contexts)], **variables)
            self.assertEqual(code, 0, errors)
            if expected is None:
                expected = expected_bytes(kind, hosts, contexts)
            self.assertEqual(sorted(map(int, out.split())), sorted(expected), errors)

    def test_bytes_go_once_to_each_host(self):
        for kind in KINDS:
            for transport in TRANSPORTS:
                for hosts in ("a a", "a b a b", "a a a b"):
                    self.check(kind, transport, hosts)
        self.check("broadcast", TRANSPORTS[-1], "a b b c c d e")

    def test_processes_with_several_ranks(self):
        for i, kind in enumerate(KINDS):
            for hosts in ("a a", "a a b"):
                self.check(kind, TRANSPORTS[i % len(TRANSPORTS)], hosts, contexts=2)

    def test_opencl_devices(self):
        """In memory that the driver knows, and in memory that it does not."""
        for kind in KINDS[:2]:
            for pinned in ("0", "1"):
                self.check(kind, TRANSPORTS[0], "a a b", device="opencl", DLPRIM_PINNED=pinned)

    def test_more_levels(self):
        """Sets of hosts receive each piece once: with two of two hosts of two processes, a process sends its own piece to
        the other set and the other host, and hands on two that it has received."""
        self.check("values", TRANSPORTS[0], "a a b b c c d d", DLPRIM_LEVELS="2,2,2", expected=[VALUES * 8 * 3] * 8)
        whole = ELEMENTS * 4
        self.check("broadcast", TRANSPORTS[-1], "a b c d", DLPRIM_LEVELS="2,2", expected=[2 * whole, 0, whole, 0])

    def test_without_shared_memory(self):
        """Processes of a host then are a level of their own: each has the other one's pieces by the transport, too."""
        own = slice_bytes(4)
        expected = {"values": [3 * VALUES * 8] * 4, "share": [2 * own[p] + own[p ^ 2] for p in range(4)],
                    "broadcast": [ELEMENTS * 8, 0, ELEMENTS * 4, 0]}
        for kind in KINDS:
            for transport in TRANSPORTS:
                self.check(kind, transport, "a a b b", DLPRIM_SHARED="0", expected=expected[kind])

    def test_hosts_of_which_one_shares_no_memory(self):
        """Processes of that one give each other what comes from the other host, which keeps its memory."""
        own = slice_bytes(4)
        words = ["sh", "-c", 'if [ $DLPRIM_HOST = b ]; then export DLPRIM_SHARED=0; fi; exec "$0" "$@"']
        expected = {"values": [VALUES * 8] * 2 + [3 * VALUES * 8] * 2,
                    "share": [own[0], own[1], 2 * own[2] + own[0], 2 * own[3] + own[1]],
                    "broadcast": [ELEMENTS * 4, 0, ELEMENTS * 4, 0]}
        for kind in KINDS:
            self.check(kind, TRANSPORTS[0], "a a b b", prefix=words, expected=expected[kind])

    @unittest.skipUnless("gloo" in TRANSPORTS, "there is no Gloo")
    def test_processes_that_come_with_other_sizes(self):
        """Both are named on the host, and between hosts."""
        for kind in KINDS:
            with self.subTest(kind=kind):
                code, _, errors = run("gloo", "a a", command(kind, "cpu", 1, 3, "different"))
                self.assertEqual(code, 1)
                self.assertRegex(errors, r"\(barrier \d+ of its host, \d+ bytes\)")
                self.assertIn("the processes do not run the same steps", errors)
                code, _, errors = run("gloo", "a b", command(kind, "cpu", 1, 3, "different"))
                self.assertEqual(code, 1)
                self.assertRegex(errors, r"sends \d+ bytes for .*, and process .* expects \d+")

    @unittest.skipUnless("gloo" in TRANSPORTS, "there is no Gloo")
    def test_a_process_that_dies_ends_all(self):
        """In whatever way the others wait for it."""
        for kind in KINDS:
            for victim, hosts in ((0, "a a b b"), (3, "a a b b"), (1, "a a")):
                with self.subTest(kind=kind, victim=victim):
                    processes = start_by_hand(hosts, command(kind, "cpu", 1, 1000000), {})
                    time.sleep(3)  # they have met and exchange
                    assert_all_end(self, processes, victim)

    @unittest.skipUnless("gloo" in TRANSPORTS, "there is no Gloo")
    def test_a_process_that_is_late(self):
        """It is missed after the deadline, on the host and between hosts. For values of the first process there is none."""
        for kind in KINDS:
            for hosts in ("a a", "a b"):
                with self.subTest(kind=kind, hosts=hosts):
                    code, _, errors = run("gloo", hosts, command(kind, "cpu", 1, 1, "late"))
                    self.assertEqual(code, 0 if kind == "broadcast" else 1, errors)
                    if kind != "broadcast":
                        self.assertRegex(errors, r"did not come for .* within 2 seconds")


if __name__ == "__main__":
    if not TRANSPORTS:
        print("skipped: there is no plugin by which processes exchange data")
        sys.exit(77)
    unittest.main(verbosity=2)
