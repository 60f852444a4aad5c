#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train in several processes, by Open MPI, MPICH and Gloo: the bits of one process; a process that dies ends all
of them; and what is wrong with a start or differs between processes is said in a sentence."""
import contextlib
import json
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
import threading
import time
import unittest

import h5py
import trace_test
from commands import SECONDS, TOOLS, main
from shards_test import SYNCHRONOUS, ShardRuns as Runs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from starters import STARTERS, free_port, transports_in  # noqa: E402

PLUGINS = pathlib.Path(os.environ.get("DLPRIM_TEST_PLUGINS", TOOLS))
TRAIN = str(TOOLS / "dlprim_train")
# Every process is a whole device's worth of threads otherwise, which a machine of two cores does not have.
QUIET = {"DLPRIM_THREADS": "1", "POCL_MAX_PTHREAD_COUNT": "1", "OMPI_MCA_btl_base_warn_component_unused": "0",
         "DLPRIM_AFFINITY": "0"}
# The run in one process that bits are compared with has as many: by PoCL's threads some sums are cut.
os.environ["POCL_MAX_PTHREAD_COUNT"] = QUIET["POCL_MAX_PTHREAD_COUNT"]
TEAM = os.environ.get("DLPRIM_TEAM_HASH", "")
PAUSED_EPOCHS = 100  # more than go by until a signal arrives
KILLS = int(os.environ.get("DLPRIM_TEST_PROCESS_KILLS", "4"))


TRANSPORTS = transports_in(PLUGINS)


@contextlib.contextmanager
def with_variables(**variables):
    """Variables of this process, which what it starts inherits."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class Group:
    """Processes of a run that are started by hand, as torchrun starts them."""
    def __init__(self, count, arguments, per_rank=lambda rank: ([], {}), program=TRAIN):
        port = str(free_port())
        self.processes = []
        for rank in range(count):
            more, environment = per_rank(rank)
            variables = {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank),
                         "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            self.processes.append(subprocess.Popen(
                [program, *map(str, arguments), *map(str, more)], env=os.environ | QUIET | variables | environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def until(self, word, seconds=SECONDS):
        """Waits for a line of the first process that has the word in it; whether it came."""
        patience = threading.Timer(seconds, self.processes[0].kill)
        patience.start()
        try:
            return any(word in line for line in self.processes[0].stdout)
        finally:
            patience.cancel()

    def wait(self, seconds=SECONDS):
        """(code, stdout, stderr) of each."""
        end = time.monotonic() + seconds
        try:
            done = [process.communicate(timeout=max(end - time.monotonic(), 0.1)) for process in self.processes]
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return [(process.returncode, *texts) for process, texts in zip(self.processes, done)]

    def kill(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.communicate()


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
                trace = json.loads((self.folder / f"trace.rank{rank}.json").read_text())
                self.assertEqual(trace_test.problems_of(trace), [])
                spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
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
            own = [{event["pid"] for event in json.loads((self.folder / f"trace.rank{rank}.json").read_text())["traceEvents"]}
                   for rank in (0, 1)]
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
                    trace = json.loads((self.folder / f"trace.rank{rank}.json").read_text())
                    self.assertEqual(trace_test.problems_of(trace), [])
                    self.assertIn("fetch parameters of other processes", {event["name"] for event in trace["traceEvents"]})

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
            died = time.monotonic()
            group.processes[victim].kill()
            results = group.wait(30)
            had_met = any("in step" in errors for _, _, errors in results)
            self.assertLess(time.monotonic() - died, 10 if had_met else 18, f"turn {turn}: {results}")
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
            died = time.monotonic()
            group.processes[victim].kill()
            code, _, errors = group.wait(30)[1 - victim]
            self.assertLess(time.monotonic() - died, 10)
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
    if not TRANSPORTS:
        print("skipped: there is no plugin by which processes exchange data")
        raise SystemExit(77)
    print(f"transports: {', '.join(TRANSPORTS)}")
    main()
