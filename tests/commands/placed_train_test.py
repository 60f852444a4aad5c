#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train with operators on several devices: -d a=...,b=... and --place auto."""
import re

import h5py
import numpy as np
from commands import DEVICES, call, main, network, operator
from placed_shards_test import placed
from training_runs import Training

random = np.random.default_rng(1)


NET = network({"x": [8, 6], "label": ([8], "int")}, ["scores", "loss"],
              operator("InnerProduct", "one", "x", outputs=16, activation="tanh"),
              operator("Dropout", "drop", "one", p=0.25),
              operator("InnerProduct", "two", "drop", outputs=16, activation="relu"),
              operator("InnerProduct", "scores", "two", outputs=3),
              operator("SoftmaxWithLoss", "loss", "scores label"))


class PlacedTrain(Training):
    CONFIG = {"net": "net.json", "batch": 8, "epochs": 4, "solver": {"learning_rate": 0.02}, "data": {"type": "npy", **{
        name: {"file": f"{name}.npz", "inputs": "x", "labels": "y"} for name in ("train", "test")}}}

    def setUp(self):
        super().setUp()
        self.write("net.json", placed(NET, {"drop": "b", "two": "b"}))
        x = random.standard_normal((52, 6)).astype(np.float32)
        np.savez(self.folder / "train.npz", x=x[:32], y=x[:32, :3].argmax(1))
        # The last batch of the test set is smaller.
        np.savez(self.folder / "test.npz", x=x[32:], y=x[32:, :3].argmax(1))

    def assert_same_model(self, one, other):
        self.assertEqual(self.bits(f"{one}/model.h5"), self.bits(f"{other}/model.h5"))
        self.assertEqual(self.rows(one), self.rows(other))

    def train(self, out, device, *more):
        return self.succeed("train", self.config(), "-d", device, "--out", self.folder / out, *more)

    def test_as_on_one_device(self):
        for device in DEVICES:
            with self.subTest(device=device):
                one, two = f"one_{device}", f"two_{device}"
                text = self.train(one, device).err
                self.assertNotIn("error", text)
                done = self.train(two, f"a={device},b={device}")
                self.assertRegex(done.out, "device: a is ")
                self.assertRegex(done.out, r"test accuracy \d")
                self.assert_same_model(two, one)
                # On two devices, one of which is the host.
                other = f"other_{device}"
                self.train(other, f"a={device},b=cpu")
                for row, want in zip(self.rows(other), self.rows(one)):
                    for key, value in want.items():
                        self.assertAlmostEqual(float(row[key]), float(value), delta=0.02 if "accuracy" in key else 1e-3)
                page = (self.folder / other / "report.html").read_text()
                self.assertIn("finished", page)

    def test_resume_on_another_placement(self):
        device = DEVICES[-1]
        self.train("whole", device)
        placed = f"a={device},b={device}"
        for first, second in ((device, placed), (placed, device), (placed, f"b={device},a={device}")):
            with self.subTest(first=first, second=second):
                self.train("part", first, "--epochs", "2", "--replace")
                self.train("part", second, "--resume", "latest")
                self.assert_same_model("part", "whole")
        # The checkpoints of the last run, which was placed, hold what those of one device hold.
        names = sorted(path.name for path in (self.folder / "part").glob("*.h5"))
        self.assertGreater(len(names), 1)
        for name in names:
            with h5py.File(self.folder / "part" / name) as part, h5py.File(self.folder / "whole" / name) as whole:
                self.assertEqual(set(part), set(whole))
                self.assertEqual(set(part.attrs), set(whole.attrs))
                if "solver" in whole:
                    self.assertEqual(set(part["solver"]), set(whole["solver"]))

    def test_automatic(self):
        device = DEVICES[-1]
        self.write("net.json", NET)
        self.train("one", device)
        done = self.train("auto", f"a={device},b={device}", "--place", "auto")
        self.assertIn("part 1 of 1 runs on device 'a': operators 'one' to 'loss', about ", done.out + done.err)
        self.assert_same_model("auto", "one")
        self.refuse_training(["'one'", "fits on no device", "device 'b'"], "-d", f"a={device},b=cpu", "--place", "auto",
                             "--device-memory", "a=64", "--device-memory", "b=64", out="x")
        self.refuse_training(["device 'a'", "more than the limit of 1024 bytes"], "-d", f"a={device},b=cpu", "--device-memory",
                             "a=1KiB", out="y")

    def test_what_is_missing_is_counted_from_the_limit_that_was_given(self):
        """Also where the choice is made again within what an earlier one has left of it."""
        self.write("net.json", NET)
        told = 0
        for limit in range(5500, 9500, 500):
            result = call("train", self.config(), "-d", f"a={DEVICES[-1]},b=cpu", "--place", "auto", "--device-memory", f"a={limit}",
                          "--device-memory", f"b={limit}", "--out", self.folder / "x", "--replace")
            for need, over in re.findall(r"needs? (\d+) bytes [^,]*, (\d+) [^,]*more than (?:that|the limit)", result.err):
                self.assertEqual(int(need) - int(over), limit, result.err)
                told += 1
        self.assertGreater(told, 0)

    def test_memory_by_device(self):
        """Before anything is allocated: what devices give, as the planner of dlprim_benchmark says, and to which part."""
        wide = network({"x": [8, 6], "label": ([8], "int")}, ["scores", "loss"],
                       operator("InnerProduct", "one", "x", outputs=64000, activation="tanh"),
                       operator("InnerProduct", "two", "one", outputs=16, activation="relu", device="b"),
                       operator("InnerProduct", "scores", "two", outputs=3),
                       operator("SoftmaxWithLoss", "loss", "scores label"))
        self.write("net.json", wide)
        for device in DEVICES[1:]:
            devices = f"a={device},b=cpu"
            out = ("-d", devices, "--out", self.folder / "memory", "--replace", "--epochs", "1")
            told = self.succeed("train", self.config(solver={"type": "adam"}), *out, "--memory", "--memory-html",
                                self.folder / "memory.html").out
            peaks = {name: float(peak) for peak, name in re.findall(r"(?m)^planned peak +([\d.]+) MiB on device '(\w)'", told)}
            planned = self.succeed("benchmark", devices, self.folder / "net.json", "-a", "-i1", "-w1").out
            self.assertEqual(len(peaks), 2)
            for peak, name in re.findall(r"(?m)^planned peak +([\d.]+) MiB on (\w)", planned):
                self.assertAlmostEqual(peaks[name], float(peak), delta=0.06)
            self.assertRegex(told, r"(?m)^ +[\d.]+ MiB  part 2, 'two' to 'two'$")
            self.assertIn("memory of part 1, 'one' to 'one', on device 'a', before anything is allocated", told)
            self.assertRegex(told, r"(?m)^ +3\.9\d MiB +block .* params$")  # of 'two', with 64000 x 16 weights
            self.assertEqual(len(list(self.folder.glob("memory.part?.html"))), 3)
            # With shards, what each shard in flight takes.
            shards = self.succeed("train", self.config(batch=32, shards=4, epochs=1), *out, "--memory").out
            self.assertRegex(shards, r"(?m)^ +[\d.]+ MiB  part 1, 'one' to 'one', in 4 working sets$")
            for peak, name in re.findall(r"(?m)^planned peak +([\d.]+) MiB on device '(\w)'", shards):
                self.assertGreater(float(peak), peaks[name] + (2 if name == "a" else 0))
            # It is told, too, where it does not fit.
            self.refuse(["device 'b'", "more than the limit"], "train", self.config(), *out, "--memory", "--device-memory", "b=1KiB")

    def test_what_is_refused(self):
        def refuse(words, *arguments, **config):
            self.refuse_training(words, "-d", "a=cpu,b=cpu", *arguments, out="refused", **config)
        refuse(["operators, and not shards", "how many shards each device has"], "--shares", "1,1")
        self.refuse_training(["'b'", "nobody has bound"], "-d", "a=cpu", out="refused")
        self.refuse_training(["fast=gpu"], "-d", "cpu", "--place", "auto", out="refused")
        self.refuse(["a=2G"], "train", self.config(), "-d", "a=cpu,b=cpu", "--device-memory", "a=2G", code=2)

    def test_a_loss_that_is_no_number_ends_the_run(self):
        config = self.config(solver={"type": "sgd", "learning_rate": 1e30})
        self.refuse(["the loss is", "epoch 1"], "train", config, "-d", "a=cpu,b=cpu", "--out", self.folder / "nan")


if __name__ == "__main__":
    main()
