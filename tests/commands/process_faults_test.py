#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train in several processes of which one fails: it ends all of them, and what is wrong with a start or differs between
processes is said in a sentence."""
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

from commands import SECONDS
from processes import PLUGINS, QUIET, TRAIN, TRANSPORTS, Group, main_with_transports
from shards_test import SYNCHRONOUS, ShardRuns as Runs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from starters import STARTERS, free_port  # noqa: E402

PAUSED_EPOCHS = 100  # more than go by until a signal arrives
KILLS = int(os.environ.get("DLPRIM_TEST_PROCESS_KILLS", "4"))


class Faults(Runs):
    def setUp(self):
        super().setUp()
        if "gloo" not in TRANSPORTS:
            self.skipTest("there is no Gloo")

    def long_run(self, count, **options):
        config = self.config(shards=4, epochs=100000, checkpoints={"every_epochs": 0})
        return Group(count, [config, "-d", "cpu", "--out", self.folder / "out", "--replace"], **options)

    def test_a_process_that_dies_ends_all(self):
        """At any moment. Who has not met it yet waits for it: here for 8 seconds."""
        chance = random.Random(7)
        for turn in range(KILLS):
            victim = turn % 3
            group = self.long_run(3, per_rank=lambda rank: ([], {"DLPRIM_START_SECONDS": "8"}))
            self.addCleanup(group.kill)
            time.sleep(chance.uniform(0.02, 4))
            group.processes[victim].kill()
            results = group.wait(SECONDS)
            for rank, (code, _, errors) in enumerate(results):
                if rank == victim:
                    self.assertEqual(code, -signal.SIGKILL)
                    continue
                with self.subTest(turn=turn, rank=rank):
                    lines = errors.splitlines()
                    self.assertEqual(len(lines), 1, f"{code}: {errors}")
                    self.assertEqual(code, 75, errors)
                    if "in step" not in lines[0]:  # it died before all had met
                        self.assertRegex(lines[0], f"the first process of the run|rank {victim} of 3 has not come")
                        continue
                    self.assertRegex(lines[0], rf"dlprim_train: rank {victim} \(process \d+ on '.*'\) ended without a word in step")
        self.assertFalse([name for name in os.listdir("/dev/shm") if "dlprim" in name])

    def test_a_process_of_several_ranks_that_dies_ends_all(self):
        self.write("net.json", SYNCHRONOUS)
        for victim in (0, 1):
            group = self.long_run(2)
            self.addCleanup(group.kill)
            self.assertTrue(group.until("epoch 2/"))
            group.processes[victim].kill()
            code, _, errors = group.wait(SECONDS)[1 - victim]
            self.assertEqual(code, 75, errors)
            self.assertRegex(errors, rf"^dlprim_train: rank {victim} \(process \d+ on '.*'\) ended without a word in step .*\n$")

    def test_a_pause_costs_time_alone(self):
        how = dict(shards=4, epochs=PAUSED_EPOCHS)
        self.train("one", "-d", "cpu", **how)
        group = Group(2, [self.config(**how), "-d", "cpu", "--out", self.folder / "two"])
        self.addCleanup(group.kill)
        self.assertTrue(group.until("epoch 2/"))
        group.processes[1].send_signal(signal.SIGSTOP)
        time.sleep(6)
        self.assertIsNone(group.processes[0].poll(), "it has ended before the other was stopped")
        group.processes[1].send_signal(signal.SIGCONT)
        self.assertEqual([code for code, _, _ in group.wait(2 * SECONDS)], [0, 0])
        for name in ("model.h5", f"checkpoint_{PAUSED_EPOCHS}.h5"):
            self.assertEqual(self.bits(f"one/{name}"), self.bits(f"two/{name}"))
        self.assertEqual(self.rows("one"), self.rows("two"))

    def test_asked_to_end_one_process_ends_all_with_a_checkpoint(self):
        group = self.long_run(2)
        self.addCleanup(group.kill)
        self.assertTrue(group.until("epoch 2/"))
        group.processes[1].terminate()
        results = group.wait()
        self.assertEqual([code for code, _, _ in results], [128 + signal.SIGTERM] * 2, results)
        self.assertIn("stopped; checkpoint:", results[0][1])

    def test_parts_of_the_state_are_saved_by_all_together(self):
        """Also where the first process cannot write a file: all go on, and save again when one of them is asked to end. A limit
        of a file's size stands for a full disk."""
        config = self.config(shards=4, epochs=100000, states="sharded", checkpoints={"every_steps": 5, "keep": 1})
        group = Group(2, [config, "-d", "cpu", "--out", self.folder / "out", "--replace"])
        self.addCleanup(group.kill)
        first, second = group.processes
        self.assertTrue(group.until("epoch 2/"))
        resource.prlimit(first.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        self.assertTrue(group.until("note: no checkpoint was saved"))
        resource.prlimit(first.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        second.terminate()
        results = group.wait()
        self.assertEqual([code for code, _, _ in results], [128 + signal.SIGTERM] * 2, results)
        saved = re.search(r"stopped; checkpoint: (\S+checkpoint_(\d+)\S*\.h5);", results[0][1])
        self.assertIsNotNone(saved, results)
        self.succeed("train", config, "-d", "cpu", "--resume", saved.group(1), "--out", self.folder / "new", "--epochs",
                     int(saved.group(2)) + 1)

    def refused(self, words, group, code=1):
        for rank, (ended, out, errors) in enumerate(group.wait()):
            self.assertEqual(ended, code, f"rank {rank}: {errors}")
            self.assertEqual(len(errors.splitlines()), 1, errors)
            for word in words:
                self.assertIn(word, errors, f"rank {rank}")
            self.assertNotIn("model saved", out)

    def test_processes_that_disagree(self):
        """The field, both values and both processes are named, on all of them."""
        base = self.config(shards=4)
        for words, more in ((["seed is 3 for rank 0 (process", "and 4 for rank 1 (process"], {"seed": 4}),
                            (["solver.learning_rate is 0.01 for rank 0", "and 0.02 for rank 1"],
                             {"solver": {"type": "adam", "learning_rate": 0.02}}),
                            (["order is tree for rank 0", "and any for rank 1"], {"order": "any"}),
                            (["batch is 16 for rank 0", "and 32 for rank 1"], {"batch": 32}),
                            (["on_nan is not given for rank 0", "and continue for rank 1"], {"on_nan": "continue"})):
            base = self.config(shards=4).rename(self.folder / "base.json")
            other = self.config(shards=4, **more).rename(self.folder / "other.json")
            arguments = ["-d", "cpu", "--out", self.folder / "no"]
            self.refused(["the processes of the run disagree", *words],
                         Group(2, arguments, lambda rank, files=(base, other): ([files[rank]], {})))
        self.refused(["epochs is 2 for rank 0", "and 5 for rank 1"],
                     Group(2, [base, *arguments], lambda rank: (["--epochs", 2 + 3 * rank], {})))
        self.refused(["shards of devices is 3,1 for rank 0", "and 2,2 for rank 1"],
                     Group(2, [base, *arguments], lambda rank: (["--shares", ("3,1", "2,2")[rank]], {})))
        elsewhere = self.folder / "elsewhere"
        for file, place in (("train-labels", -1), ("train-images", 16)):
            shutil.copytree(self.folder, elsewhere, ignore=shutil.ignore_patterns("elsewhere"))
            content = bytearray((elsewhere / file).read_bytes())
            content[place] ^= 1
            (elsewhere / file).write_bytes(content)
            self.refused(["the digest of training labels and of 16 examples is"],
                         Group(2, arguments, lambda rank: ([(base, elsewhere / "base.json")[rank]], {})))
            shutil.rmtree(elsewhere)
        self.refused(["disagree", "choice of engines"],
                     Group(2, [base, "-d", "opencl", "--out", self.folder / "no"],
                           lambda rank: ([], {"DLPRIM_TRAITS": "wide_vectors=0,max_work_group=64"} if rank else {})))

    def test_what_is_wrong_for_all(self):
        out = ["-d", "cpu", "--out", self.folder / "no"]
        self.refused(["2 devices and 1 shard", '"shards" to 2'], Group(2, [self.config(), *out]))
        self.refused(["is trained by one process", "2 were started", "leave the names of devices out"],
                     Group(2, [self.config(shards=2), "-d", "a=cpu,b=cpu", "--out", self.folder / "no"]))
        self.refused(["no-such.json"], Group(2, [self.folder / "no-such.json", *out]), code=1)
        self.refused(["cannot be made", "Not a directory"],
                     Group(2, [self.config(shards=2), "-d", "cpu", "--out", self.folder / "train.json"]))
        group = Group(2, [self.config(shards=2), *out], lambda rank: (["--resume", self.folder / "nothing.h5"], {}))
        for _, _, errors in group.wait():
            self.assertIn("nothing.h5", errors)

    def test_bad_starts(self):
        arguments = [self.config(shards=4), "-d", "cpu", "--out", self.folder / "no"]
        alone = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
        self.refuse(["MASTER_ADDR is not set"], "train", *arguments, **alone)
        self.refuse(["MASTER_PORT"], "train", *arguments, **alone, MASTER_ADDR="127.0.0.1")
        self.refuse(["RANK", "not set", "torchrun"], "train", *arguments, WORLD_SIZE="2")
        self.refuse(["RANK is '-1'"], "train", *arguments, **(alone | {"RANK": "-1"}))
        self.refuse(["process 2 of 2"], "train", *arguments, **(alone | {"RANK": "2"}))
        place = alone | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        self.refuse(["no plugin dlprim_glo.so", "did you mean 'gloo'"], "train", *arguments, **place, DLPRIM_TRANSPORT="glo")
        text = self.refuse(["no plugin dlprim_gloo.so", "libgloo-dev"], "train", *arguments, **place,
                           DLPRIM_PLUGINS=str(self.folder)).err
        self.assertNotIn("did you mean", text)
        self.refuse(["DLPRIM_START_SECONDS is '-1'", "above 0"], "train", *arguments, **place, DLPRIM_START_SECONDS="-1")
        (self.folder / "dlprim_gloo.so").write_bytes((PLUGINS / "dlprim_gloo.so").read_bytes().replace(
            b"libgloo", b"libnope"))
        self.refuse(["does not load", "libnope", "is the library that it uses installed?"], "train", *arguments, **place,
                    DLPRIM_PLUGINS=str(self.folder))
        self.refuse(["ranks 1", "have not come within 1 seconds"], "train", *arguments,
                    **(place | {"WORLD_SIZE": "3", "DLPRIM_START_SECONDS": "1"}), code=75)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.refuse(["cannot listen on port", "another process with rank 0"], "train", *arguments,
                        **(place | {"MASTER_PORT": str(taken.getsockname()[1])}), code=75)

    def test_who_does_not_come_is_named_by_all(self):
        group = Group(3, [self.config(shards=4), "-d", "cpu", "--out", self.folder / "no"],
                      lambda rank: (["--version"] if rank == 1 else [], {"DLPRIM_START_SECONDS": "8"}))
        for code, _, errors in group.wait()[::2]:
            self.assertEqual(code, 75, errors)
            self.assertRegex(errors, r"^dlprim_train: rank 1 of 3 has not come within 8 seconds: .*\n$")

    def test_an_mpi_of_another_family(self):
        if not {"openmpi", "mpich"} <= set(TRANSPORTS):
            self.skipTest("there is one MPI, or none")
        done = subprocess.run([*STARTERS["mpich"], "2", TRAIN, str(self.config(shards=4)), "-d", "cpu", "--out",
                               str(self.folder / "no")], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=SECONDS, env=os.environ | QUIET | {"DLPRIM_TRANSPORT": "openmpi"})
        self.assertEqual(done.returncode, 1, "another start would meet the same")
        self.assertIn("DLPRIM_TRANSPORT is 'openmpi', and mpiexec of MPICH has started", done.stdout + done.stderr)


if __name__ == "__main__":
    main_with_transports()
