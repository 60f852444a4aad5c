#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train in several processes, by Open MPI, MPICH and Gloo: the bits of one process."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

import h5py
from commands import SECONDS
from processes import PLUGINS, QUIET, TRAIN, TRANSPORTS, Group, main_with_transports, with_variables
from shards_test import SYNCHRONOUS, ShardRuns as Runs
from trace_test import spans_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from starters import STARTERS  # noqa: E402

TEAM = os.environ.get("DLPRIM_TEAM_HASH", "")


class Processes(Runs):
    how = dict(shards=4, checkpoints={"every_steps": 5, "keep": 9})

    def run_in(self, transport, count, arguments):
        """What the processes print together, and the exit code: of them all, or of the starter."""
        if transport == "gloo":
            results = Group(count, arguments).wait(4 * SECONDS)
            return max(code for code, _, _ in results), "".join(out for _, out, _ in results), \
                "".join(err for _, _, err in results)
        done = subprocess.run([*STARTERS[transport], str(count), TRAIN, *map(str, arguments)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=4 * SECONDS, env=os.environ | QUIET)
        return done.returncode, done.stdout, done.stderr

    def spans(self, rank):
        return spans_of(self, self.folder / f"trace.rank{rank}.json")

    def train_in(self, transport, count, out, *arguments, **more):
        code, text, errors = self.run_in(transport, count, [self.config(**more), "--out", self.folder / out, "--replace",
                                                            *arguments])
        self.assertEqual(code, 0, f"{transport}, {count} processes: {text} {errors}")
        return text

    def test_processes_train_the_bits_of_one(self):
        for device in ("cpu", "opencl"):
            self.train("one", "-d", device, **self.how)
            for transport in TRANSPORTS:
                for count in (2, 4) if device == "cpu" else (2,):
                    with self.subTest(device=device, transport=transport, count=count):
                        text = self.train_in(transport, count, "many", "-d", device, **self.how)
                        self.assertEqual(text.count("model saved in"), 1, "the first one tells of all")
                        self.assertEqual(len(re.findall("(?m)^device: ", text)), 1)
                        self.assertIn(f"{count} processes exchange their sums by ", text)
                        self.assert_same_run("one", "many")

    def test_each_writes_a_trace(self):
        fetched = {"fetch sums of other processes", "fetch means of other processes", "fetch parameters of other processes"}
        for shared in (True, False):
            with with_variables(DLPRIM_SHARED=str(int(shared))):
                self.train_in(TRANSPORTS[-1], 2, "run", "-d", "cpu", "--trace", self.folder / "trace.json", states="sharded",
                              **self.how)
            for rank in (0, 1):
                spans = self.spans(rank)
                self.assertEqual({event["pid"] for event in spans}, {rank})
                moves = {event["name"] for event in spans if event["cat"] == "move"}
                self.assertLessEqual({"send sums", "add slice", "receive means", "give updated parameters",
                                      "receive parameters"}, moves)
                self.assertEqual(fetched & moves, set() if shared else fetched)
            self.assertFalse((self.folder / "trace.json").exists())

    def test_an_order_of_the_transport(self):
        """Losses are about those of the tree, and a checkpoint says that bits depend on the processes."""
        self.train("one", "-d", "cpu", **self.how)
        text = self.train_in(TRANSPORTS[0], 3, "any", "-d", "cpu", order="any", **self.how)
        self.assertIn("in an order of its own, which depends on the number of processes", text)
        one, other = (self.read_tensors(f"{name}/model.h5") for name in ("one", "any"))
        for name, values in one.items():
            self.assertLess(abs(values - other[name]).max(), 1e-3, name)
        with h5py.File(self.folder / "any/checkpoint_1_7.h5") as file:
            self.assertEqual(file.attrs["order"], b"any")
        with h5py.File(self.folder / "one/checkpoint_1_7.h5") as file:
            self.assertNotIn("order", file.attrs)

    def test_a_run_goes_on_with_other_processes(self):
        """From a checkpoint in the middle of an epoch: of one process by three, and of these by two of another kind."""
        self.train("one", "-d", "cpu", **self.how)
        for transport in TRANSPORTS:
            with self.subTest(transport=transport):
                self.train_in(transport, 3, "three", "-d", "cpu", "--resume", self.folder / "one/checkpoint_0_5.h5", **self.how)
                self.assert_same_run("one", "three")
                self.train_in(TRANSPORTS[0], 2, "two", "-d", "cpu", "--resume", self.folder / "three/checkpoint_1_2.h5",
                              **self.how)
                self.assert_same_run("one", "two")

    def test_uneven_shares_and_a_loss_of_several_parts(self):
        self.train("one", "-d", "cpu", **self.how)
        for transport in TRANSPORTS[-1:]:
            self.train_in(transport, 2, "uneven", "-d", "cpu", "--shares", "3,1", **self.how)
            self.assert_same_run("one", "uneven")
            text = self.train_in(transport, 2, "measured", "-d", "cpu", "--shares", "auto", **self.how)
            shares = re.search(r"a shard takes the devices .* ms, so that they compute (\d),(\d) shards", text).groups()
            self.assertIn(f"rank 1: shards {shares[0]} to 3 on ", text)
            self.assert_same_run("one", "measured")

    def test_batch_norms_over_the_shards_of_all_processes(self):
        """The bits are those of one process, however many processes have the shards, and a run goes on with other numbers of them.
        A process has a rank for each of its shards."""
        self.write("net.json", SYNCHRONOUS)
        how = dict(solver={"type": "sgd", "learning_rate": 0.05, "momentum": 0.9}, checkpoints={"every_steps": 5, "keep": 9},
                   shards=4)
        for device, counts in (("cpu", (2, 3, 4)), ("opencl", (2,))):
            self.train("one", "-d", device, **how)
            for transport in TRANSPORTS:
                for count in counts:
                    with self.subTest(transport=transport, device=device, count=count):
                        text = self.train_in(transport, count, "many", "-d", device, **how)
                        self.assertIn("note: rank 3: shards 3 to 3 on ", text)
                        self.assert_same_run("one", "many")
                        self.train_in(transport, count, "more", "-d", device, "--resume",
                                      self.folder / "one/checkpoint_0_5.h5", **how)
                        self.assert_same_run("one", "more")
        for shares in ("1,3", "auto"):
            text = self.train_in(TRANSPORTS[0], 2, "uneven", "-d", "opencl", "--shares", shares, "--trace",
                                 self.folder / "trace.json", **how)
            self.assertEqual(len(re.findall(r"a shard takes the devices .* ms, so that they compute \d,\d shards", text)),
                             shares == "auto")
            self.assert_same_run("one", "uneven")
            own = [{event["pid"] for event in self.spans(rank)} for rank in (0, 1)]
            self.assertEqual(own[0] | own[1], {0, 1, 2, 3})
            self.assertFalse(own[0] & own[1])
        self.train("back", "-d", "opencl,opencl", "--resume", self.folder / "more/checkpoint_1_2.h5", **how)
        self.assert_same_run("one", "back")
        # With parts of the solver's state on all ranks.
        for transport in TRANSPORTS:
            for shares in ("2,2", "3,1"):
                self.train_in(transport, 2, "parts", "-d", "opencl", "--shares", shares, states="sharded", **how)
                self.assert_same_run("one", "parts")
        self.train_in(TRANSPORTS[0], 3, "again", "-d", "opencl", "--resume", self.folder / "parts/checkpoint_1_2.h5",
                      states="sharded", **how)
        self.assert_same_run("one", "again")

    def test_the_state_in_parts(self):
        """Each process has a part. Bits and checkpoints are those of whole states in one process, from which a run goes on and
        which goes on from it."""
        how = self.how | {"solver": {"type": "adam", "learning_rate": 0.01, "clip_norm": 1, "average": 0.99}}
        how["checkpoints"] = how["checkpoints"] | {"keep_best": True}
        for device in ("cpu", "opencl"):
            self.train("one", "-d", device, **how)
            for transport in TRANSPORTS:
                for count in (2, 3) if device == "cpu" else (2,):
                    with self.subTest(device=device, transport=transport, count=count):
                        text = self.train_in(transport, count, "parts", "-d", device, states="sharded", **how)
                        self.assertIn("note: the solver's state is cut over the ranks", text)
                        self.assert_same_run("one", "parts")
                        self.assertEqual(self.bits("one/best.h5"), self.bits("parts/best.h5"))
        self.train_in(TRANSPORTS[0], 3, "three", "-d", "cpu", "--resume", self.folder / "parts/checkpoint_1_2.h5",
                      states="sharded", **how)
        self.train_in(TRANSPORTS[-1], 2, "two", "-d", "opencl", "--resume", self.folder / "one/checkpoint_0_5.h5",
                      states="sharded", **how)
        self.assert_same_run("one", "two")
        self.train("whole", "-d", "opencl", "--resume", self.folder / "two/checkpoint_1_7.h5", **how)
        self.assert_same_run("one", "whole")

    @unittest.skipUnless("gloo" in TRANSPORTS, "there is no Gloo")
    def test_hosts_train_the_bits_of_one(self):
        """Sums, parts of the state and statistics of batch norms go between hosts, which are names here, also where one of them
        shares no memory."""
        self.write("net.json", SYNCHRONOUS)
        self.train("one", "-d", "cpu", **self.how)
        for hosts, apart in (("aabb", ""), ("abab", ""), ("abbb", ""), ("aabb", "b")):
            with self.subTest(hosts=hosts, apart=apart):
                arguments = [self.config(states="sharded", **self.how), "-d", "cpu", "--out", self.folder / "many", "--replace",
                             "--trace", self.folder / "trace.json"]
                group = Group(4, arguments, lambda rank, hosts=hosts, apart=apart: (
                    [], {"DLPRIM_HOST": hosts[rank], "DLPRIM_SHARED": str(int(hosts[rank] != apart))}))
                for code, _, errors in group.wait(4 * SECONDS):
                    self.assertEqual(code, 0, errors)
                self.assert_same_run("one", "many")
                for rank in range(4):
                    self.assertIn("fetch parameters of other processes", {event["name"] for event in self.spans(rank)})

    def test_torchrun_starts_a_run(self):
        torchrun = os.environ.get("DLPRIM_TEST_TORCHRUN", "")
        if not torchrun or "gloo" not in TRANSPORTS:
            self.skipTest("there is no torchrun, or no Gloo")
        self.train("one", "-d", "cpu", **self.how)
        done = subprocess.run([*torchrun.split(), "--nproc-per-node", "2", "--no-python", TRAIN, str(self.config(**self.how)),
                               "-d", "cpu", "--out", str(self.folder / "two")], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=4 * SECONDS, env=os.environ | QUIET)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_same_run("one", "two")

    def test_processes_that_share_a_device_are_refused_where_that_is_asked_for(self):
        arguments = [self.config(**self.how), "--out", self.folder / "no", "-d", "cpu", "--no-shared-devices"]
        for code, _, errors in Group(2, arguments).wait(SECONDS):
            self.assertEqual(code, 1, errors)
            self.assertRegex(errors, r"device cpu.* has 2 ranks, .* as many devices as there are ranks")


class Teams(Runs):
    """A program in C++ whose processes have several devices each."""
    plugins = {"DLPRIM_PLUGINS": str(PLUGINS)}

    def setUp(self):
        super().setUp()
        if "gloo" not in TRANSPORTS or not TEAM:
            self.skipTest("there is no Gloo, or no such program")

    def hashes(self, device, counts, how):
        results = Group(len(counts), [device], lambda rank: ([counts[rank], how], self.plugins), TEAM).wait(2 * SECONDS)
        for code, _, errors in results:
            self.assertEqual(code, 0, errors)
        return [out.split() for _, out, _ in results]

    def test_processes_with_several_devices(self):
        for device in ("cpu", "opencl"):
            alone = subprocess.run([TEAM, device, "1", "whole"], capture_output=True, text=True, env=os.environ | QUIET)
            self.assertEqual(alone.returncode, 0, alone.stderr)
            one = alone.stdout.strip()
            for counts in ((2, 2), (1, 3), (3, 1, 2)):
                for how in ("whole", "sharded", "measured"):
                    with self.subTest(device=device, counts=counts, how=how):
                        self.assertEqual(self.hashes(device, counts, how), [[one] * count for count in counts])

    def test_devices_of_two_kinds(self):
        """They have the bits of each other, and again."""
        found = []
        for how in ("whole", "whole", "sharded"):
            results = Group(2, [], lambda rank, how=how: ([("cpu", "opencl")[rank], 2, how], self.plugins), TEAM).wait(2 * SECONDS)
            for code, out, errors in results:
                self.assertEqual(code, 0, errors)
                self.assertEqual(len(set(out.split())), 1, out)
            self.assertEqual(results[0][1], results[1][1])
            found.append(results[0][1])
        self.assertEqual(found[0], found[1])


if __name__ == "__main__":
    main_with_transports()
