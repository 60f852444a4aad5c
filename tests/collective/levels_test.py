#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sums over shards that processes add up level by level, by Open MPI, MPICH and Gloo: the bits of one process, for
hosts of equal and of unequal sizes, with and without memory that the processes of a host share. Hosts are names in a
variable."""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from exchanges import PROGRAM, QUIET, TRANSPORTS, run, start_by_hand  # noqa: E402

SHARDS, SIZES = 11, [300000, 8, 5000]
LAYOUTS = [  # hosts of the ranks, DLPRIM_LEVELS, what a note says of the levels
    ("a a", "", "among 2 ranks by pinned shared memory"),
    ("a a a a", "", "among 4 ranks by pinned shared memory"),
    ("a b", "", "among 2 ranks by "),
    ("a a b b", "", "among 2 ranks by pinned shared memory, then among 2 of these by "),
    ("a b a b", "", "among 2 ranks by pinned shared memory, then among 2 of these by "),
    ("a a a b", "", "among 3 ranks by pinned shared memory, then among 2 of these by "),
    ("a b c d", "2,2", "among 2 ranks by .*, then among 2 of these by "),
    ("a a b b c c d d", "2,2,2",
     "among 2 ranks by pinned shared memory, then among 2 of these by .*, then among 2 of these by "),
    ("a b b b b c", "", "among 4 ranks by pinned shared memory, then among 3 of these by "),
]


def command(device, contexts):
    return [PROGRAM, device, str(contexts), str(SHARDS), "3", *map(str, SIZES)]


def assert_all_end(case, processes, victim):
    """Kills one of the processes: the others end, and name it."""
    processes[victim].kill()
    errors = [process.communicate(timeout=60)[1] for process in processes]
    for rank, process in enumerate(processes):
        if rank != victim:
            case.assertEqual(process.returncode, 1)
            case.assertRegex(errors[rank], rf"rank {victim} \(process .*\) ended without a word")


class Levels(unittest.TestCase):
    def check(self, expected, transport, hosts, contexts=1, device="cpu", levels="", note="added among ", prefix=(),
              **variables):
        with self.subTest(transport=transport, hosts=hosts, contexts=contexts, device=device, levels=levels,
                          **variables):
            if levels:
                variables["DLPRIM_LEVELS"] = levels
            code, out, errors = run(transport, hosts, [*prefix, *command(device, contexts)], **variables)
            self.assertEqual(code, 0, errors)
            self.assertEqual(out.split(), [expected] * (contexts * len(hosts.split())), errors)
            self.assertRegex(errors, note)

    def bits_of_one(self, device):
        done = subprocess.run(command(device, 3), capture_output=True, text=True, check=True, env=os.environ | QUIET)
        hashes = set(done.stdout.split())
        self.assertEqual(len(hashes), 1)
        return hashes.pop()

    def test_sums_have_the_bits_of_one_process(self):
        expected = self.bits_of_one("cpu")
        for transport in TRANSPORTS:
            for hosts, levels, note in LAYOUTS:
                self.check(expected, transport, hosts, levels=levels, note=note)

    def test_without_shared_memory(self):
        expected = self.bits_of_one("cpu")
        for i, (hosts, levels, _) in enumerate(LAYOUTS):
            self.check(expected, TRANSPORTS[i % len(TRANSPORTS)], hosts, levels=levels, DLPRIM_SHARED="0")

    def test_hosts_of_which_one_shares_no_memory(self):
        expected = self.bits_of_one("cpu")
        words = ["sh", "-c", 'if [ $DLPRIM_HOST = b ]; then export DLPRIM_SHARED=0; fi; exec "$0" "$@"']
        note = "among 2 ranks by pinned shared memory, then among 2 of these by .*, then among 2 of these by "
        for transport in TRANSPORTS:
            for hosts in ("a a b b", "b a b a"):
                self.check(expected, transport, hosts, prefix=words, note=note)

    def test_memory_that_one_process_does_not_make_known(self):
        """All of its host then use it as it is; another host need not."""
        expected = self.bits_of_one("cpu")
        words = ["sh", "-c", 'case ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}} in 1) export DLPRIM_PINNED=0;; esac; exec "$0" "$@"']
        for hosts, note in (("a a", "among 2 ranks by shared memory"), ("a a a", "among 3 ranks by shared memory"),
                            ("a a b b", "among 2 ranks by shared memory, then among 2 of these by ")):
            self.check(expected, TRANSPORTS[0], hosts, prefix=words, note=note)

    def test_processes_with_several_ranks(self):
        expected = self.bits_of_one("cpu")
        for i, hosts in enumerate(("a a", "a b", "a a b", "a b a b")):
            for shared in ("0", "1"):
                self.check(expected, TRANSPORTS[i % len(TRANSPORTS)], hosts, contexts=2, DLPRIM_SHARED=shared)

    def test_opencl_devices(self):
        """In memory that the driver knows, and in memory that it does not."""
        expected = self.bits_of_one("opencl")
        for pinned, way in (("1", "by pinned shared memory"), ("0", "by shared memory")):
            for hosts in ("a a", "a a b"):
                self.check(expected, TRANSPORTS[0], hosts, device="opencl", note=way, DLPRIM_PINNED=pinned)

    def test_a_driver_that_copies_memory_when_it_maps_it(self):
        """In one of the processes, while the others write to theirs."""
        expected = self.bits_of_one("opencl")
        words = ["sh", "-c", 'case ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}} in 1) export LD_PRELOAD=$COPYING;; esac; exec "$0" "$@"']
        for transport in TRANSPORTS:
            self.check(expected, transport, "a a", device="opencl", prefix=words,
                       note="(?s)(?=.*memory of the host is mapped)(?=.*by pinned shared memory)",
                       COPYING=os.environ["DLPRIM_COPYING_MAP"])

    def test_an_order_of_the_transport(self):
        """The program compares with the tree's sums. All ranks have the same bits."""
        for transport in TRANSPORTS:
            for hosts, contexts in (("a a", 1), ("a b b", 2)):
                with self.subTest(transport=transport, hosts=hosts):
                    code, out, errors = run(transport, hosts, [*command("cpu", contexts), "any"])
                    self.assertEqual(code, 0, errors)
                    self.assertEqual(len(out.split()), contexts * len(hosts.split()))
                    self.assertEqual(len(set(out.split())), 1)
                    self.assertIn("in an order of its own, which depends on the number of processes", errors)

    @unittest.skipUnless("gloo" in TRANSPORTS, "there is no Gloo")
    def test_a_process_that_dies_ends_all(self):
        """In whatever level the others wait for it. Nothing of the shared memory is left."""
        before = set(os.listdir("/dev/shm"))
        for victim in range(4):
            words = command("cpu", 1)
            words[4] = "1000000"  # steps
            processes = start_by_hand("a a b b", words, {})
            for process in processes:
                self.assertEqual(process.stderr.readline(), "the first step is done\n")
            assert_all_end(self, processes, victim)
        self.assertFalse([name for name in set(os.listdir("/dev/shm")) - before if "dlprim" in name])

    @unittest.skipUnless("gloo" in TRANSPORTS, "there is no Gloo")
    def test_a_host_whose_name_leads_to_another_loopback_address(self):
        """As names of hosts do with Debian. Whether or not variables say that there is no other host."""
        expected = self.bits_of_one("cpu")
        for processes in ("2", "1"):
            self.check(expected, "gloo", "a a", MASTER_ADDR="127.0.1.1", LOCAL_WORLD_SIZE=processes)

    def test_levels_that_do_not_fit(self):
        for levels, text in (("2,3", "DLPRIM_LEVELS is '2,3', which are 6 processes, and the run has 4"),
                             ("2,b", "DLPRIM_LEVELS is '2,b'"),
                             ("2,2", "a group would have some of the processes that share a host's memory")):
            code, _, errors = run(TRANSPORTS[-1], "a a a b", command("cpu", 1), DLPRIM_LEVELS=levels)
            self.assertNotEqual(code, 0)
            self.assertIn(text, errors)
        words = ["sh", "-c", 'export DLPRIM_LEVELS=$((RANK + 1)),1; exec "$0" "$@"', *command("cpu", 1)]
        code, _, errors = run("gloo", "a b", words)
        self.assertNotEqual(code, 0)
        self.assertIn("disagree: DLPRIM_LEVELS is 1,1 for rank 0", errors)


if __name__ == "__main__":
    if not TRANSPORTS:
        print("skipped: there is no plugin by which processes exchange data")
        sys.exit(77)
    unittest.main(verbosity=2)
