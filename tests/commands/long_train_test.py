#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train left alone for long: checkpoints in the middle of epochs, kill -9 at any moment, signals, a folder that
one run owns, a full disk, settings that change between two parts of a run. On the host device, with a tiny network.

DLPRIM_TEST_KILLS is how many times a run is killed at a random moment.
"""
import contextlib
import fcntl
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
from browser import results_of
from commands import TOOLS, main, operator
from training_runs import TEST_SET, TRAIN_SET, Training, classifier

KILLS = int(os.environ.get("DLPRIM_TEST_KILLS", "25"))

NET = classifier([16, 1, 4, 4], 4,
                 operator("InnerProduct", "fc1", "image", outputs=6),
                 operator("BatchNorm", "bn", "fc1"),
                 operator("Dropout", "drop", "bn", p=0.1), last="fc2")


class LongTrain(Training):
    CONFIG = {"net": "net.json", "batch": 16, "epochs": 4, "seed": 3, "data": {"train": TRAIN_SET, "test": TEST_SET},
              "augmentation": {"flip": True, "crop_pad": 1},
              "solver": {"type": "sgd", "learning_rate": 0.05, "momentum": 0.9, "accumulate": 3},
              "schedule": {"type": "plateau", "patience": 0}}

    def setUp(self) -> None:
        super().setUp()
        self.write("net.json", NET)
        numbers = np.random.default_rng(1)
        for name, count in (("train", 160), ("test", 40)):
            labels = numbers.integers(0, 4, count).astype(np.uint8)
            self.write_set(name, numbers.integers(0, 130, (count, 4, 4)).astype(np.uint8) + 30 * labels[:, None, None], labels)

    def run_of(self, out: str, *arguments: Any) -> list[Any]:
        """The words of a run of the configuration that was written last."""
        return ["train", self.folder / "train.json", "-d", "cpu", "--out", self.folder / out, *arguments]

    def run_to_end(self, out: str, *arguments: Any, **environment: str) -> str:
        return self.succeed(*self.run_of(out, *arguments), **environment).out

    def refuse_run(self, words: list[str], out: str, *arguments: Any) -> None:
        self.refuse(words, *self.run_of(out, *arguments))

    @contextlib.contextmanager
    def started(self, out: str, *arguments: Any) -> Iterator["subprocess.Popen[str]"]:
        """A run whose output is read line by line. It does not outlive the block."""
        command, *words = self.run_of(out, *arguments)
        process = subprocess.Popen([TOOLS / f"dlprim_{command}", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def wait_for(self, process: "subprocess.Popen[str]", pattern: str) -> str:
        """Reads lines up to one that has the pattern."""
        assert process.stdout
        for line in process.stdout:
            if re.search(pattern, line):
                return str(line)
        raise AssertionError(f"it ended without '{pattern}': {process.stderr.read() if process.stderr else ''}")

    def names(self, out: str) -> list[str]:
        """Of the files, but those for TensorBoard, of which each part of a run has one."""
        return sorted(path.name for path in (self.folder / out).iterdir() if not path.name.startswith("events.out."))

    def results(self, out: str) -> Any:
        """The report's. A run that was killed between its last checkpoint and its report has no examples left to judge when
        it goes on."""
        results = results_of(self.folder / out / "report.html")
        results.pop("judged", None)
        return results

    def assert_same_run(self, one: str, other: str, last: str = "") -> None:
        super().assert_same_run(one, other, last)
        self.assertEqual(self.results(one), self.results(other))

    def assert_no_temporary(self, out: str) -> None:
        self.assertEqual([name for name in self.names(out) if "lock" in name or "tmp" in name], [])

    def position(self, path: pathlib.Path) -> tuple[int, int]:
        with h5py.File(path) as file:
            return int(file.attrs["extra_epochs_done"]), int(file.attrs.get("extra_batches_done", 0))

    def last_position(self, out: str) -> tuple[int, int]:
        return max([self.position(path) for path in (self.folder / out).glob("checkpoint_*.h5")], default=(0, 0))

    def test_a_run_that_is_killed_at_any_moment_goes_on(self) -> None:
        """It loses at most what came after its last checkpoint, and ends in the same bits."""
        self.config(checkpoints={"every_steps": 3, "keep": 2})
        begin = time.monotonic()
        self.run_to_end("whole")
        usual = time.monotonic() - begin
        moments = random.Random(7)
        kills = finished = 0
        before = (0, 0)
        while kills < KILLS:
            with self.started("killed", "--resume", "latest") as process:
                try:
                    process.wait(moments.uniform(0, 1.2 * usual))
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    kills += 1
                else:
                    self.assertEqual(process.returncode, 0, process.stderr.read() if process.stderr else "")
                    self.assert_same_run("whole", "killed")
                    finished += 1
                    shutil.rmtree(self.folder / "killed")
                    before = (0, 0)
                    continue
            if (self.folder / "killed").exists():
                now = self.last_position("killed")  # every checkpoint can be read
                self.assertGreaterEqual(now, before)
                before = now
        self.run_to_end("killed", "--resume", "latest")
        self.assert_same_run("whole", "killed")
        self.assertEqual(self.names("whole"), self.names("killed"), "no temporary file, no lock is left")

    def test_going_on_from_every_step(self) -> None:
        for batches in (1, 4, 10):
            self.config(checkpoints={"every_steps": 1, "keep": 99, "every_epochs": 0})
            shutil.rmtree(self.folder / "whole", ignore_errors=True)
            self.run_to_end("whole")
            self.assertEqual(len(list((self.folder / "whole").glob("checkpoint_*.h5"))), 40)
            name = f"checkpoint_2_{batches}.h5" if batches < 10 else "checkpoint_3.h5"
            self.run_to_end("rest", "--replace", "--resume", self.folder / "whole" / name)
            self.assert_same_run("whole", "rest")

    def test_checkpoints_by_the_clock_and_the_best(self) -> None:
        self.config(checkpoints={"every_minutes": 1e-9, "every_epochs": 0, "keep": 99, "keep_best": True})
        self.run_to_end("out")
        self.assertIn("checkpoint_0_1.h5", self.names("out"))
        best = self.folder / "out/best.h5"
        with h5py.File(best) as file:
            number = int(file.attrs["extra_best_epoch"])
        accuracies = [float(row["test_accuracy"]) for row in self.rows("out")]
        self.assertEqual(number, 1 + accuracies.index(max(accuracies)))
        self.assertEqual(self.position(best)[0], number)
        with h5py.File(best) as file, h5py.File(self.folder / f"out/checkpoint_{number}.h5") as same:
            self.assertEqual(file["fc1.0"][()].tobytes(), same["fc1.0"][()].tobytes())

    def test_signals_save_and_end(self) -> None:
        self.config(epochs=4)
        self.run_to_end("whole")
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            self.config(epochs=100000)
            with self.started("out") as process:
                self.wait_for(process, "epoch 2/")
                process.send_signal(number)
                out, err = process.communicate(timeout=50)
                self.assertEqual((process.returncode, err), (code, ""))
            self.assertRegex(out, r"stopped; checkpoint: .*checkpoint_\d+(_\d+)?\.h5; to go on: .*--resume latest\n$")
            self.assert_no_temporary("out")
            self.assertFalse((self.folder / "out/model.h5").exists())

    def test_a_run_that_was_asked_to_stop_goes_on(self) -> None:
        self.config()
        self.run_to_end("whole")
        for _ in range(100):  # until it happens to stop within an epoch that has begun
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            with self.started("out") as process:
                self.wait_for(process, "epoch 1/")
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=50)
                if process.returncode == 143:
                    break
        self.assertEqual(process.returncode, 143)
        self.run_to_end("out", "--resume", "latest")
        self.assert_same_run("whole", "out")

    def test_a_second_signal_ends_at_once(self) -> None:
        self.config(epochs=100000)
        with self.started("out") as process:
            self.wait_for(process, "epoch 2/")
            # Both wait for the process to go on, so that the second comes before the first has been served.
            for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
                process.send_signal(number)
            out, _ = process.communicate(timeout=50)
        self.assertIn(-process.returncode, (signal.SIGINT, signal.SIGTERM))
        self.assertNotIn("stopped", out)
        last = self.last_position("out")[0]
        self.assertGreaterEqual(last, 1)
        self.config(epochs=last + 1)
        self.run_to_end("out", "--resume", "latest")
        self.assert_no_temporary("out")

    def test_a_disk_that_fills_up_does_not_end_a_run(self) -> None:
        disk = self.mounted("size=1m")
        self.config(epochs=100000, checkpoints={"keep": 1}, tensorboard=False)
        with self.started("disk/out") as process:
            self.wait_for(process, "epoch 2/")
            with open(disk / "other", "wb", buffering=0) as file:
                with contextlib.suppress(OSError):
                    while file.write(b"." * 4096):
                        pass
            line = self.wait_for(process, "note: no checkpoint was saved")
            self.assertRegex(line, "disk is full|No space left")
            named = re.search(r"'([^']*checkpoint_\d+\.h5)' is the last good one", line)
            assert named, line
            self.position(pathlib.Path(named.group(1)))
            self.wait_for(process, "epoch ")
            # The run tries again after every epoch, so a file that is there now may be the one it is writing.
            unfinished = self.unfinished("disk/out")
            for _ in range(3):
                self.wait_for(process, "epoch ")
            self.assertFalse(unfinished & self.unfinished("disk/out"), "a file that could not be written was left")
            (disk / "other").unlink()
            for _ in range(3):
                self.wait_for(process, "epoch ")
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=50)
        self.assertEqual(process.returncode, 143)
        self.assertGreater(self.last_position("disk/out")[0], self.position_of(named.group(1)))
        self.assertFalse(self.unfinished("disk/out"))

    def unfinished(self, out: str) -> set[str]:
        """Files that are being written. Each has a name that no other had before."""
        return {name for name in self.names(out) if "tmp" in name}

    def position_of(self, checkpoint: str) -> int:
        """The epoch that the name says."""
        found = re.search(r"checkpoint_(\d+)", checkpoint)
        assert found
        return int(found.group(1))

    def test_a_folder_that_cannot_be_written(self) -> None:
        disk = self.mounted("size=1m")
        self.config(epochs=1)
        self.run_to_end("disk/out")
        before = {path: path.read_bytes() for path in (disk / "out").iterdir()}
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        self.config(epochs=2)
        for out, more in (("disk/out", ["--resume", "latest"]), ("disk/out", ["--replace"]), ("disk/new", [])):
            self.refuse_run([out, "Read-only file system"], out, *more)
        # A cache that cannot be written costs time and nothing else.
        self.run_to_end("new", DLPRIM_CACHE_DIR=str(disk))
        self.assertEqual(before, {path: path.read_bytes() for path in (disk / "out").iterdir()})

    def test_a_clock_that_jumps(self) -> None:
        """Neither results nor their order depend on what time it is."""
        shim = os.environ.get("DLPRIM_JUMPING_CLOCK", "")
        if not shim or "LD_PRELOAD" in os.environ:
            self.skipTest("no library that makes the clock jump")
        self.config(checkpoints={"every_steps": 3, "every_minutes": 60, "keep": 99})
        begin = time.monotonic()
        self.run_to_end("whole")
        usual = time.monotonic() - begin
        said = self.run_to_end("out", LD_PRELOAD=shim)
        self.assertNotIn("-", "".join(re.findall(r"[\d:.-]+ left|-?\d+ images/s", said)))
        self.assertLess(time.monotonic() - begin, 20 * usual + 20)
        self.assert_same_run("whole", "out")
        self.assertEqual(self.names("whole"), self.names("out"), "no checkpoint by an hour that has not passed")
        for row in (self.folder / "out/metrics.csv").read_text().splitlines()[1:]:
            self.assertTrue(0 <= float(row.rsplit(",", 1)[1]) < usual + 60, row)
        # The last checkpoint is that of the last step, whatever the files' times say.
        for path in (self.folder / "out").glob("checkpoint_*.h5"):
            epochs, batches = self.position(path)
            os.utime(path, (2e9 - 1000 * epochs - batches,) * 2)
        self.config(epochs=5, checkpoints={"every_steps": 3, "keep": 99})
        out = self.run_to_end("out", "--resume", "latest")
        self.assertIn("epoch 5/5", out)
        self.assertNotIn("epoch 4/5", out)

    def test_a_signal_asks_where_the_run_is(self) -> None:
        self.config(epochs=100000)
        with self.started("out") as process:
            self.wait_for(process, "epoch 2/")
            process.send_signal(signal.SIGUSR1)
            line = self.wait_for(process, "batch")
            self.assertRegex(line, r"^epoch \d+/100000: batch \d+/10, loss [\d.]+, accuracy [\d.]+, [\d:]+ left, \d+ images/s")

    def test_a_run_owns_its_folder(self) -> None:
        self.config(epochs=100000)
        with self.started("out") as process:
            self.wait_for(process, "epoch 2/")
            for more in ([], ["--resume", "latest"], ["--replace"]):
                self.refuse_run(["out", "in use", f"process {process.pid}", os.uname().nodename], "out", *more)
            process.kill()
            process.wait()
        self.assertTrue((self.folder / "out/run.lock").exists(), "as a killed run leaves it")
        last = self.last_position("out")[0]
        self.config(epochs=last + 1)
        self.run_to_end("out", "--resume", "latest")
        self.assertFalse((self.folder / "out/run.lock").exists())

    def test_results_are_not_replaced_silently(self) -> None:
        self.config(epochs=2)
        self.run_to_end("out")
        before = {path: path.read_bytes() for path in (self.folder / "out").iterdir()}
        self.refuse_run(["holds results of an earlier run", "checkpoint_2.h5", "resume latest", "replace"], "out")
        shutil.copy(self.folder / "out/checkpoint_2.h5", self.folder / "elsewhere.h5")
        self.refuse_run(["holds results of an earlier run", "give this run another folder (out)"], "out", "--resume",
                        self.folder / "elsewhere.h5")
        self.assertEqual(before, {path: path.read_bytes() for path in (self.folder / "out").iterdir()})
        self.run_to_end("out", "--replace")
        for name in self.names("out"):
            if name.startswith("checkpoint"):
                (self.folder / "out" / name).unlink()
        self.refuse_run(["holds results of an earlier run", "model.h5"], "out", "--resume", "latest")

    def test_what_comes_after_the_checkpoint_is_not_replaced_silently(self) -> None:
        self.config(epochs=3, checkpoints={"keep": 9})
        self.run_to_end("out")
        again = ("--resume", self.folder / "out/checkpoint_1.h5")
        self.refuse_run(["checkpoint_2.h5", "ahead of", "checkpoint_1.h5", "replace"], "out", *again)
        self.config(epochs=2, checkpoints={"keep": 9})
        self.run_to_end("out", *again, "--replace")
        self.assertEqual([name for name in self.names("out") if "checkpoint" in name],
                         ["checkpoint_1.h5", "checkpoint_2.h5"])

    def test_another_network_in_the_folder_is_named(self) -> None:
        self.config(epochs=1)
        self.run_to_end("out")
        self.write("net.json", NET | {"operators": [op | {"options": {"outputs": 5}} if op["name"] == "fc1" else op
                                                    for op in NET["operators"]]})
        self.config(epochs=2)
        self.refuse_run(["checkpoint_1.h5", "shape"], "out", "--resume", "latest")

    def test_temporary_files_of_a_killed_run_are_removed(self) -> None:
        self.config(epochs=1)
        (self.folder / "out").mkdir()
        for name in ("checkpoint_1.h5.tmp-Ab3xYz", "metrics.csv.123.0.tmp", "model.h5.tmp-000000", "report.html.9.12.tmp"):
            self.write(f"out/{name}", "half")
        for name in ("notes.tmp", "my.h5.tmp-Ab3xYz"):  # not ours
            self.write(f"out/{name}", "mine")
        self.run_to_end("out")
        self.assertEqual([name for name in self.names("out") if "tmp" in name], ["my.h5.tmp-Ab3xYz", "notes.tmp"])

    def test_changed_settings_are_named(self) -> None:
        self.config(epochs=1)
        self.run_to_end("out")
        self.config(epochs=2, batch=32, seed=4, solver={"type": "sgd", "learning_rate": 0.5, "momentum": 0.9, "accumulate": 3})
        out = self.run_to_end("out", "--resume", "latest")
        self.assertRegex(out, r"(?m)^note: '.*checkpoint_1.h5' goes on with other settings than it was made with: "
                              r"batch 32 instead of 16, seed 4 instead of 3, solver.learning_rate 0.5 instead of 0.05$")
        self.config(epochs=3, solver={"type": "adam"})
        self.refuse_run(["checkpoint_2.h5", "solver.type adam instead of sgd"], "out", "--resume", "latest")

    def test_another_batch_within_an_epoch_is_refused(self) -> None:
        self.config(checkpoints={"every_steps": 3, "keep": 99})
        self.run_to_end("out")
        self.config(batch=32)
        self.refuse_run(["checkpoint_0_3.h5", "3 of 10 batches", "now has 5", "batch 32 instead of 16"], "new", "--resume",
                        self.folder / "out/checkpoint_0_3.h5")

    def test_damaged_checkpoints(self) -> None:
        self.config(checkpoints={"keep": 9})
        self.run_to_end("out")
        whole = (self.folder / "out/checkpoint_4.h5").read_bytes()
        for damaged in (whole[:len(whole) // 2], whole[:100], b"", b"\0" * len(whole)):
            (self.folder / "out/checkpoint_4.h5").write_bytes(damaged)
            said = self.run_to_end("out", "--resume", "latest")
            self.assertRegex(said, r"(?m)^note: '.*checkpoint_4.h5' is not used: ")
            self.assertIn("epoch 4/4", said)
            self.assertNotIn("epoch 3/4", said)
            (self.folder / "out/checkpoint_4.h5").write_bytes(damaged)
            self.refuse_run(["checkpoint_4.h5"], "new", "--resume", self.folder / "out/checkpoint_4.h5")
        for path in (self.folder / "out").glob("checkpoint*"):
            path.write_bytes(b"nothing")
        self.refuse_run(["no checkpoint", "is whole"], "out", "--resume", "latest")

    def test_a_full_disk_does_not_end_a_run(self) -> None:
        """The limit of a file's size stands for the disk."""
        self.config(epochs=100000, checkpoints={"keep": 1})
        with self.started("out") as process:
            self.wait_for(process, "epoch 2/")
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
            line = self.wait_for(process, "note: no checkpoint was saved")
            named = re.search(r"'([^']*checkpoint_\d+\.h5)' is the last good one", line)
            assert named, line
            self.wait_for(process, "epoch ")
            self.wait_for(process, "epoch ")
            self.assertEqual(list((self.folder / "out").glob("checkpoint*")), [pathlib.Path(named.group(1))])
            self.position(pathlib.Path(named.group(1)))
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            for _ in range(3):
                self.wait_for(process, "epoch ")
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=50)
            self.assertEqual((process.returncode, err), (143, ""))
        self.assertGreater(self.last_position("out")[0], 2)
        self.assertEqual([name for name in self.names("out") if "tmp" in name], [])

    def test_early_stopping(self) -> None:
        self.config(epochs=500, early_stopping={"patience": 3, "minimum_change": 0.001})
        out = self.run_to_end("out")
        ended = re.search(r"note: the training ends after epoch (\d+): the test accuracy has not improved for 3 epochs; "
                          r"it was best in epoch (\d+)", out)
        assert ended, out
        self.assertLessEqual(int(ended.group(2)) , int(ended.group(1)) - 3)
        self.assertIn(f"checkpoint_{ended.group(1)}.h5", self.names("out"))
        again = self.run_to_end("out", "--resume", "latest")
        self.assertNotIn("epoch ", again.split("model saved")[0].replace("device", ""))

    def test_misspelt_keys_offer_the_nearest(self) -> None:
        for more, words in (({"checkpoints": {"every_step": 3}}, "every_steps"), ({"early_stoping": {}}, "early_stopping"),
                            ({"early_stopping": {"patince": 1}}, "patience"), ({"metrics": ["acuracy"]}, "accuracy"),
                            ({"judge_by": "los"}, "loss"), ({"solver": {"typ": "sgd"}}, "type"),
                            ({"schedule": {"type": "cosin"}}, "cosine"), ({"metrics": ["f1"]}, "targets")):
            self.refuse_training(["train.json", words], "-d", "cpu", out="out", **more)
        self.assertFalse((self.folder / "out").exists())

    def test_a_lock_that_nobody_holds_hinders_nobody(self) -> None:
        self.config(epochs=1)
        self.write("out/run.lock", "1 nowhere\n")
        with open(self.folder / "out/run.lock") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            self.refuse_run(["in use", "process 1", "nowhere"], "out")
        self.run_to_end("out")


if __name__ == "__main__":
    main()
