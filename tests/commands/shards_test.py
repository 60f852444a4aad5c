#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train with "shards": the same bits again and after a resume, near the bits of whole batches, and errors."""
import re

import h5py
import numpy as np
import train_test
from commands import DEVICES, idx, main, network, operator
from training_runs import TEST_SET, TRAIN_SET, Training, classifier, quarters

# A network whose batch norm takes statistics of all shards.
SYNCHRONOUS = classifier([16, 1, 8, 8], 4,
                         operator("Convolution2D", "conv", "image", channels_out=4, kernel=3, bias=False),
                         operator("BatchNorm", "norm", "conv", sync=True))


class ShardRuns(Training):
    """Runs of a small network; tests of processes and of several devices have some, too."""
    CONFIG = {"net": "net.json", "batch": 16, "epochs": 2, "seed": 3,
              "data": {"type": "idx", "mean": 0.35, "std": 0.2, "train": TRAIN_SET, "test": TEST_SET},
              "solver": {"type": "adam", "learning_rate": 0.01}}

    def setUp(self):
        super().setUp()
        self.write("net.json", train_test.NET)
        self.write_set("train", *quarters(128, 1))
        self.write_set("test", *quarters(40, 2))

    def write_set_with_a_dark_picture(self):
        """Only its logarithms are infinite."""
        pictures = np.maximum(quarters(128, 1)[0], 1)
        pictures[77] = 0
        self.write("train-images", idx(pictures))
        return {"type": "idx", "train": TRAIN_SET}


class Shards(ShardRuns):
    def test_bits_are_the_same_again_and_after_a_resume(self):
        how = dict(shards=4, checkpoints={"every_steps": 5, "keep": 9})
        for device in DEVICES:
            self.train("one", "-d", device, **how)
            self.train("two", "-d", device, **how)
            self.assert_same_run("one", "two")
            # In the middle of the second epoch, with shards behind it and before it.
            self.train("three", "-d", device, "--resume", self.folder / "one/checkpoint_1_2.h5", **how)
            self.assert_same_run("one", "three")
            self.assertGreater(float(self.rows("one")[-1]["test_accuracy"]), 0.5)

    def test_devices_train_the_bits_of_one(self):
        """Two contexts of each device, evenly and not, and a resume with another number of them."""
        how = dict(shards=4, checkpoints={"every_steps": 5, "keep": 9})
        for device in DEVICES:
            self.train("one", "-d", device, **how)
            result = self.train("two", "-d", f"{device},{device}", **how)
            self.assertEqual(len(re.findall("(?m)^device: ", result.out)), 2)
            self.assertIn("note: rank 1: shards 2 to 3 on ", result.out)
            self.assertIn(" host memory\n", result.out)
            self.assert_same_run("one", "two")
            self.train("uneven", "-d", f"{device},{device}", "--shares", "3,1", **how)
            self.assert_same_run("one", "uneven")
            self.train("three", "-d", ",".join(3 * [device]), "--resume", self.folder / "one/checkpoint_1_2.h5", **how)
            self.assert_same_run("one", "three")

    def test_the_state_in_parts(self):
        """The same bits and checkpoints, less memory, and a resume in the middle with the state whole or in parts."""
        how = dict(shards=4, checkpoints={"every_steps": 5, "keep": 9})
        how["solver"] = {"type": "adam", "learning_rate": 0.01, "clip_norm": 1, "average": 0.99}
        for device in DEVICES:
            self.train("one", "-d", device, **how)
            result = self.train("parts", "-d", f"{device},{device}", states="sharded", **how)
            self.assertIn("note: the solver's state is cut over the ranks", result.out)
            self.assert_same_run("one", "parts")
            self.train("three", "-d", ",".join(3 * [device]), "--resume", self.folder / "parts/checkpoint_1_2.h5",
                       states="sharded", **how)
            self.assert_same_run("one", "three")
            self.train("whole", "-d", device, "--resume", self.folder / "three/checkpoint_1_7.h5", **how)
            self.assert_same_run("one", "whole")
        self.write("net.json", network({"image": [16, 1, 8, 8], "label": ([16], "int")}, ["loss"],
                                       operator("InnerProduct", "wide", "image", outputs=4000),
                                       operator("InnerProduct", "fc", "wide", outputs=4),
                                       operator("SoftmaxWithLoss", "loss", "fc label")))
        memory = []
        for states in ("whole", "sharded"):
            told = self.train("memory", "-d", "cpu,cpu", "--memory", states=states, **(how | {"epochs": 1})).out
            memory.append(float(re.search(r"(?m)([\d.]+) MiB +block .* states$", told).group(1)))
        self.assertAlmostEqual(memory[1], memory[0] / 2, delta=0.02)
        out = ("-d", "cpu,cpu", "--out", self.folder / "no")
        self.refuse(["train.json", "states is 'sharded'", "one shard"], "train", self.config(states="sharded"), *out)
        self.refuse(["states is 'shardet'", "whole, sharded", "did you mean 'sharded'"], "train",
                    self.config(states="shardet", shards=2), *out)

    def test_batch_norms_over_all_shards(self):
        """A device that computes several shards has a rank for each."""
        self.write("net.json", SYNCHRONOUS)
        solver = {"type": "sgd", "learning_rate": 0.05}
        for device in DEVICES:
            result = self.train("one", "-d", device, shards=4, solver=solver)
            self.assertIn("note: rank 3: shards 3 to 3 on ", result.out)
            self.train("two", "-d", f"{device},{device}", shards=4, solver=solver)
            self.assert_same_run("one", "two")
            self.train("uneven", "-d", f"{device},{device}", "--shares", "3,1", shards=4, solver=solver)
            self.assert_same_run("one", "uneven")
            self.train("whole", "-d", device, solver=solver)
            whole, parts = self.read_tensors("whole/model.h5"), self.read_tensors("one/model.h5")
            for name in whole:
                np.testing.assert_allclose(whole[name], parts[name], rtol=1e-3, atol=1e-4)

    def test_devices_of_two_kinds(self):
        if len(DEVICES) < 2:
            self.skipTest("there is one device")
        for out in ("a", "b"):
            result = self.train(out, "-d", ",".join(DEVICES), shards=2)
            self.assertIn("several kinds", result.out)
        self.assert_same_run("a", "b")
        self.assertGreater(float(self.rows("a")[-1]["test_accuracy"]), 0.5)

    def test_measured_shares(self):
        """As the note says: with these numbers given the bits are the same, and devices of a kind have those of one."""
        how = dict(shards=5, batch=20, checkpoints={"every_steps": 5, "keep": 9})
        told = r"note: a shard takes the devices ([\d.]+), ([\d.]+) ms, so that they compute (\d+),(\d+) shards of each batch"
        pairs = [(device, device) for device in DEVICES] + [tuple(DEVICES[:2])] * (len(DEVICES) > 1)
        for pair in pairs:
            out = self.train("measured", "-d", ",".join(pair), "--shares", "auto", **how).out
            seconds, shares = re.search(told, out).group(1, 2), re.search(told, out).group(3, 4)
            first, second = (int(share) for share in shares)
            self.assertEqual(first + second, 5)
            self.assertGreater(min(first, second), 0)
            self.assertGreater(min(float(each) for each in seconds), 0)
            self.assertIn(f"note: rank 1: shards {first} to 4 on ", out)
            self.train("given", "-d", ",".join(pair), "--shares", ",".join(shares), **how)
            self.assert_same_run("measured", "given")
            if pair[0] == pair[1]:
                self.train("one", "-d", pair[0], **how)
                self.assert_same_run("measured", "one")
        self.assertNotIn("a shard takes", self.train("each", "-d", "cpu,cpu", "--shares", "auto", shards=2).out)
        self.assertNotIn("a shard takes", self.train("alone", "-d", "cpu", "--shares", "auto", shards=2).out)

    def test_measured_shares_of_batch_norms_over_all_shards(self):
        self.write("net.json", SYNCHRONOUS)
        solver = {"type": "sgd", "learning_rate": 0.05}
        self.train("one", "-d", "cpu", shards=4, solver=solver)
        out = self.train("measured", "-d", "cpu,cpu", "--shares", "auto", shards=4, solver=solver).out
        self.assertRegex(out, r"note: a shard takes the devices .* ms, so that they compute \d,\d shards")
        self.assertIn("note: rank 3: shards 3 to 3 on ", out)
        self.assert_same_run("one", "measured")

    def test_errors_of_several_devices(self):
        out = ("--out", self.folder / "no")
        self.refuse(["2 devices and 1 shard", '"shards" to 2'], "train", self.config(), "-d", "cpu,cpu", *out)
        self.refuse(["given 5 shards in all", "has 4"], "train", self.config(shards=4), "-d", "cpu,cpu", "--shares", "4,1", *out)
        self.refuse(["given for 1 devices"], "train", self.config(shards=4), "-d", "cpu,cpu", "--shares", "4", *out)
        self.refuse(["no device 'nothing'"], "train", self.config(shards=4), "-d", "cpu,nothing", *out)
        for wrong in ("4,0", "auto,3", "fast", "3,", ""):
            self.refuse(["--shares", f"'{wrong}'", "neither 'auto' nor numbers"], "train", self.config(shards=4), "-d",
                        "cpu,cpu", "--shares", wrong, *out, code=2)
        self.refuse(["3 devices and 2 shards", '"shards" to 3'], "train", self.config(shards=2), "-d", "cpu,cpu,cpu",
                    "--shares", "auto", *out)

    def test_ranks_that_share_a_device(self):
        """They are noted, or refused where the option asks for it."""
        shared = "device cpu has 2 ranks, which share its time and its memory"
        self.assertIn(f"note: {shared}", re.sub(r"device cpu \(.*\) has", "device cpu has", self.train("two", "-d", "cpu,cpu", shards=2).out))
        self.refuse_training(["device cpu", "has 2 ranks", "as many devices as", "no-shared-devices"], "-d", "cpu,cpu",
                             "--no-shared-devices", shards=2)
        if len(DEVICES) > 1:
            self.train("own", "-d", ",".join(DEVICES[:2]), "--no-shared-devices", shards=2)

    def test_one_shard_is_the_batch_itself(self):
        self.train("plain", "-d", "cpu")
        self.train("one", "-d", "cpu", shards=1)
        self.assert_same_run("plain", "one")

    def test_without_batch_norm_shards_are_about_the_whole_batch(self):
        """The report too: losses and accuracies are those of the batch."""
        self.write("net.json", classifier([16, 1, 8, 8], 4))
        for device in DEVICES:
            self.train("whole", "-d", device)
            self.train("parts", "-d", device, shards=8)
            whole, parts = self.read_tensors("whole/model.h5"), self.read_tensors("parts/model.h5")
            for name in whole:
                np.testing.assert_allclose(whole[name], parts[name], rtol=1e-3, atol=1e-5)
            for row, other in zip(self.rows("whole"), self.rows("parts")):
                for key in row:
                    self.assertAlmostEqual(float(row[key]), float(other[key]), places=3, msg=key)

    def test_the_operator_that_a_nan_comes_from(self):
        """In one shard of one batch: only its pictures are what makes the loss infinite."""
        self.write("net.json", classifier([16, 1, 8, 8], 4, operator("Activation", "logarithm", "image", activation="log")))
        data = self.write_set_with_a_dark_picture()
        for device in DEVICES:
            self.refuse_training(["in epoch 1, batch ", "not finite is 'logarithm'"], "-d", device, "--replace", out="out",
                                 data=data, shards=4, epochs=1)
            text = self.train("out", "-d", device, data=data, shards=4, epochs=1, on_nan="continue").out
            self.assertIn("note: epoch 1: 1 of 8 batches was skipped, since the loss was not finite", text)
            for name, values in self.read_tensors("out/model.h5").items():
                self.assertTrue(np.isfinite(values).all(), name)

    def test_errors(self):
        self.refuse_training(["given 6 shards in all", "a batch has 4", "add up to 4"], "-d", "cpu,cpu", "--shares", "3,3",
                             shards=4)
        out = ("-d", "cpu", "--out", self.folder / "no")
        for words, more in ((["train.json", "shards is 3", "does not divide the batch of 16"], {"shards": 3}),
                            (["shards is 32", "more than the 16 examples"], {"shards": 32}),
                            (["shards is 0", "at least 1"], {"shards": 0}),
                            (["shards is 2", "solver.accumulate is 3"], {"shards": 2, "solver": {"accumulate": 3}})):
            self.refuse(words, "train", self.config(**more), *out)
        self.train("two", "-d", "cpu", shards=2, epochs=1)
        checkpoint = self.folder / "two/checkpoint_1.h5"
        with h5py.File(checkpoint) as file:
            self.assertEqual(file.attrs["shards"], 2)
        for shards in (1, 4):
            self.refuse(["checkpoint_1.h5", "made with shards 2", f"has shards {shards}"], "train", self.config(shards=shards),
                        *out, "--resume", checkpoint)


if __name__ == "__main__":
    main()
