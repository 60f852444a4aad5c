#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train on a small made-up set of images: it learns, saves, goes on bit by bit from a checkpoint, and says
what a NaN comes from."""
import gzip
import re
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
from browser import results_of
from commands import DEVICES, TOOLS, idx, main, network, operator
from training_runs import TEST_SET, TRAIN_SET, Training, classifier, quarters

NET = classifier([16, 1, 8, 8], 4,
                 operator("Convolution2D", "conv", "image", channels_out=8, kernel=3, pad=1, bias=False),
                 operator("BatchNorm", "bn", "conv"),
                 operator("Activation", "act", "bn", activation="relu"),
                 operator("Pooling2D", "pool", "act", kernel=2, stride=2),
                 operator("Dropout", "drop", "pool", p=0.1))


class Train(Training):
    CONFIG = {"net": "net.json", "batch": 16, "epochs": 4, "seed": 3,
              "data": {"type": "idx", "mean": 0.35, "std": 0.2, "train": TRAIN_SET, "test": TEST_SET},
              "solver": {"type": "adam", "learning_rate": 0.01}}

    def setUp(self):
        super().setUp()
        self.write("net.json", NET)
        self.test_set = quarters(72, 2)
        for name, (pictures, labels) in (("train", quarters(256, 1)), ("test", self.test_set)):
            self.write(f"{name}-images", idx(pictures))
            self.write(f"{name}-labels", gzip.compress(idx(labels)))

    def assert_same_run(self, one, other, last=""):
        super().assert_same_run(one, other, last)
        self.assertEqual(*(results_of(self.folder / out / "report.html") for out in (one, other)))

    def test_it_learns_and_leaves_its_files(self):
        for device in DEVICES:
            result = self.train("out", "-d", device)
            rows = self.rows("out")
            self.assertEqual([row["epoch"] for row in rows], ["1", "2", "3", "4"])
            self.assertEqual(list(rows[0]), ["epoch", "learning_rate", "train_loss", "train_accuracy", "test_loss", "test_accuracy"])
            self.assertIn(",seconds\n", (self.folder / "out/metrics.csv").read_text())
            accuracy = float(rows[-1]["test_accuracy"])
            self.assertGreater(accuracy, 0.9)
            self.assertLess(float(rows[-1]["train_loss"]), 0.5 * float(rows[0]["train_loss"]))
            self.assertIn(f"test accuracy {accuracy:.4f}\n", result.out)
            self.assertEqual(len(re.findall(r"^epoch \d/4: loss [\d.]+, accuracy ", result.out, re.MULTILINE)), 4)
            self.assertEqual(result.err, "")
            names = sorted(path.name for path in (self.folder / "out").iterdir())
            self.assertEqual([name for name in names if not name.startswith("events.out.tfevents.")],
                             ["checkpoint_4.h5", "metrics.csv", "model.h5", "report.html"])
            self.assertTrue((self.folder / "out/report.html").read_text().startswith("<!doctype html>"))
            self.assertEqual(len(results_of(self.folder / "out/report.html")["runs"][0]["rows"]), 4)

    def test_progress_on_a_terminal(self):
        text = self.on_terminal("train", self.config(epochs=3), "-d", "cpu", "--out", self.folder / "out")
        self.assertIn("\r\x1b[Kepoch 1/3: loss ", text)
        self.assertRegex(text, r"model saved in .*model\.h5\r\n$")

    def test_the_model_gives_the_accuracy_that_was_reported(self):
        self.train("out", "-d", "cpu", epochs=3)
        pictures, labels = self.test_set
        x = ((pictures / 255 - 0.35) / 0.2).astype(np.float32)[:, None]
        outputs, row = self.outputs_of(self.folder / "net.json", "cpu", weights=self.folder / "out/model.h5",
                                       inputs={"image": x, "label": labels.astype(np.int32)}), self.rows("out")[-1]
        self.assertAlmostEqual((outputs["prob"].argmax(axis=1) == labels).mean(), float(row["test_accuracy"]), places=4)
        self.assertAlmostEqual(float(outputs["loss"][0]), float(row["test_loss"]), places=4)

    def test_solvers_and_schedules(self):
        for solver in ({"type": "sgd", "learning_rate": 0.05, "momentum": 0.9, "nesterov": True, "clip_norm": 5},
                       {"type": "adamw", "learning_rate": 0.01, "weight_decay": 0.01, "accumulate": 2}):
            for schedule in ({"type": "cosine", "warmup_epochs": 1}, {"type": "step", "step_epochs": 2, "gamma": 0.1},
                             {"type": "plateau", "patience": 0}):
                self.train("out", "-d", "cpu", solver=solver, schedule=schedule)
                self.assertGreater(float(self.rows("out")[-1]["test_accuracy"]), 0.8, (solver, schedule))

    def linear(self):
        """A network of two parameters, without what depends on the batch."""
        self.write("net.json", classifier([16, 1, 8, 8], 4))
        return self.write_tensors("start.h5", fc__0=np.zeros((4, 64), np.float32), fc__1=np.zeros(4, np.float32))

    def test_accumulated_batches_are_one_large_batch(self):
        self.linear()
        for device in DEVICES:
            for kind in ("sgd", "adam"):
                for out, batch, accumulate in (("one", 32, 1), ("four", 8, 4)):
                    self.train(out, "-d", device, "--epochs", "2", batch=batch,
                               solver={"type": kind, "learning_rate": 0.01, "accumulate": accumulate})
                one, four = self.read_tensors("one/model.h5"), self.read_tensors("four/model.h5")
                for name in one:
                    np.testing.assert_allclose(one[name], four[name], rtol=1e-3, atol=1e-5)

    def test_clipping_bounds_the_step(self):
        """One step of rate 1 from zeros is the gradient, as long as the limit says."""
        self.linear()
        for device in DEVICES:
            for limit in (0.125, 0.25, 1e6):
                self.train("out", "-d", device, "--epochs", "1", batch=256, weights="start.h5",
                           solver={"type": "sgd", "learning_rate": 1, "clip_norm": limit})
                model = self.read_tensors("out/model.h5")
                norm = np.sqrt(sum((value.astype(np.float64) ** 2).sum() for value in model.values()))
                if limit > 1:
                    self.assertTrue(0.3 < norm < 100, norm)
                else:
                    self.assertAlmostEqual(norm, limit, delta=1e-5)

    def test_augmentation_and_no_test_set(self):
        self.train("out", "-d", "cpu", "--epochs", "2", augmentation={"flip": False, "crop_pad": 1}, data={"train": TRAIN_SET})
        self.assertEqual([row["test_accuracy"] for row in self.rows("out")], ["", ""])

    def test_two_runs_are_the_same_bits(self):
        for device in DEVICES:
            self.train("a", "-d", device)
            self.train("b", "-d", device)
            self.assert_same_run("a", "b")

    def test_resume_gives_the_uninterrupted_run(self):
        for device in DEVICES:
            for solver in ({"type": "adam", "learning_rate": 0.01},
                           {"type": "sgd", "learning_rate": 0.05, "momentum": 0.9, "accumulate": 3}):
                how = dict(solver=solver, augmentation={"flip": True, "crop_pad": 1}, schedule={"type": "plateau", "patience": 0})
                self.train("whole", "-d", device, **how)
                self.train("parts", "-d", device, "--epochs", "2", **how)
                self.train("elsewhere", "-d", device, "--resume", self.folder / "parts/checkpoint_2.h5", **how)
                self.assert_same_run("whole", "elsewhere")
                self.train("parts", "-d", device, "--resume", self.folder / "parts/checkpoint_2.h5", **how)
                self.assert_same_run("whole", "parts")

    def test_resume_from_a_checkpoint_of_nonsense(self):
        self.train("run", "-d", "cpu", epochs=1)
        good = self.folder / "run/checkpoint_1.h5"
        for name, value, words in (("extra_epochs_done", np.nan, "epochs are done"), ("extra_epochs_done", 1e300, "epochs are done"),
                                   ("extra_epochs_done", -1.0, "epochs are done"), ("extra_epochs_done", 0.5, "epochs are done"),
                                   ("solver_updates", "many", "solver_updates"), ("random_step", -1, "random_step"),
                                   ("precision", "fp7", "fp7")):
            bad = self.folder / "bad.h5"
            shutil.copy(good, bad)
            with h5py.File(bad, "r+") as file:
                file.attrs[name] = value
            self.refuse_training(["bad.h5", words], "-d", "cpu", "--resume", bad, epochs=2)

    def test_resume_after_it_was_killed(self):
        how = dict(schedule={"type": "cosine", "warmup_epochs": 1}, checkpoints={"every_epochs": 1, "keep": 9})
        self.train("whole", "-d", "cpu", **how)
        process = subprocess.Popen([TOOLS / "dlprim_train", self.config(epochs=4, **how), "-d", "cpu", "--out",
                                    self.folder / "killed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(3000):
            if (self.folder / "killed/checkpoint_1.h5").exists() or process.poll() is not None:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        last = max(int(path.stem.split("_")[1]) for path in (self.folder / "killed").glob("checkpoint_*.h5"))
        self.train("killed", "-d", "cpu", "--resume", self.folder / f"killed/checkpoint_{last}.h5", **how)
        self.assert_same_run("whole", "killed")

    def test_precisions(self):
        for precision in ("fp32", "tf32", "bf16"):
            self.train(precision, "-d", "cpu", "--precision", precision)
        self.assert_same_run("fp32", "tf32")
        self.assert_same_run("fp32", "bf16")
        self.train("fp16", "-d", "cpu", "--precision", "fp16", solver={"type": "sgd", "loss_scale": 1024})
        self.refuse_training(["--precision", "fp8"], "--precision", "fp8", code=2)
        self.assertFalse((self.folder / "no").exists())

    def test_a_limit_of_memory_changes_no_bit(self):
        layers = [part for i in range(8) for part in (
            operator("Convolution2D", f"c{i}", f"r{i - 1}" if i else "image", channels_out=16, kernel=3, pad=1),
            operator("Activation", f"r{i}", f"c{i}", activation="tanh"))]
        self.write("deep.json", network({"image": [16, 1, 8, 8], "label": ([16], "int")}, ["score", "loss"], *layers,
                                        operator("InnerProduct", "score", "r7", outputs=4),
                                        operator("SoftmaxWithLoss", "l", "score label", "loss")))
        how = dict(net="deep.json", batch=96)
        for device in DEVICES:
            peak = re.search(r"planned peak +([0-9.]+) MiB", self.train("whole", "-d", device, "--memory", **how).out)
            limit = 0.8 * float(peak[1])
            out = self.train("config", "-d", device, memory_limit=limit, **how).out
            self.assertRegex(out, r"nodes? recomputes? tensors in backward: the plan needs")
            self.assert_same_run("whole", "config")
            out = self.train("option", "-d", device, "--memory-limit", limit, memory_limit=1e6, **how).out
            self.assertRegex(out, r"nodes? recomputes? tensors in backward: the plan needs")
            self.assert_same_run("whole", "option")
        self.refuse_training(["the plan needs", "at least", "the memory limit is 1.0 MiB"], "-d", "cpu", memory_limit=1, **how)

    def precision(self, path):
        with h5py.File(self.folder / path) as file:
            text = file.attrs["precision"]
            return text.decode() if isinstance(text, bytes) else text

    def test_precision_of_the_configuration_and_of_operators(self):
        self.train("out", "-d", "cpu", "--epochs", "1", precision="bf16")
        self.assertEqual(self.precision("out/checkpoint_1.h5"), "bf16")
        self.train("out", "-d", "cpu", "--epochs", "1", "--precision", "tf32", "--precision", "fc=fp32", precision="bf16")
        self.assertEqual(self.precision("out/checkpoint_1.h5"), "tf32")
        self.assertEqual(self.read_tensors("out/checkpoint_1.h5")["solver/precisions"].tobytes(), b"fp32 fc\n")
        self.refuse_training(["train.json", "precision", "'fp8'", "bf16"], "-d", "cpu", precision="fp8")
        for word in ("fc=fp8", "fc=", "=fp16"):
            self.refuse(["--precision", word], "train", self.config(), "--precision", word, code=2)
        self.refuse(["--precision", "twice"], "train", self.config(), "--precision", "fp16", "--precision", "fp32", code=2)
        self.refuse_training(["fcc=fp16", "no operator 'fcc'", "did you mean 'fc'"], "-d", "cpu", "--precision", "fcc=fp16")
        self.assertFalse((self.folder / "no").exists())

    def test_resume_in_the_precision_of_the_checkpoint(self):
        for device in DEVICES:
            for made, other in (("fp16", "fp32"), ("fp32", "fp16")):
                self.train("whole", "-d", device, "--precision", made)
                self.train("parts", "-d", device, "--precision", made, "--epochs", "2")
                resume = ("--resume", self.folder / "parts/checkpoint_2.h5")
                self.refuse_training(["checkpoint_2.h5", f"trained in {made}", f"computes in {other}", f"precision {made}"],
                                     "-d", device, *resume, "--precision", other)
                for flags, out in (((), "silent"), (("--precision", made), "named")):
                    result = self.train(out, "-d", device, *resume, *flags)
                    self.assertNotIn("note:", result.out)
                    self.assert_same_run("whole", out)
                    self.assertEqual(self.precision(f"{out}/checkpoint_4.h5"), made)
                result = self.train("silent", "-d", device, *resume, precision=other)
                self.assertRegex(result.out, f"(?m)^note: .*continues in {made}.* configuration says {other}$")
                self.assert_same_run("whole", "silent")

    def test_checkpoints_kept(self):
        self.train("out", "-d", "cpu", checkpoints={"every_epochs": 1, "keep": 2})
        self.assertEqual(sorted(path.name for path in (self.folder / "out").glob("checkpoint*")),
                         ["checkpoint_3.h5", "checkpoint_4.h5"])

    def test_starting_from_weights(self):
        self.train("first", "-d", "cpu")
        self.train("second", "-d", "cpu", "--epochs", "1", weights="first/model.h5")
        self.assertGreater(float(self.rows("second")[0]["train_accuracy"]), float(self.rows("first")[0]["train_accuracy"]))

    def test_a_loss_that_is_not_finite(self):
        for device in DEVICES:
            how = dict(solver={"type": "sgd", "learning_rate": 1e20}, on_nan="stop")
            self.refuse_training(["the loss is", "epoch 1", "batch", "'", "learning rate", "on_nan"], "-d", device, out="out",
                                 **how)
        self.assertFalse((self.folder / "out/model.h5").exists())

    def test_the_operator_that_a_nan_comes_from(self):
        self.train("good", "-d", "cpu", "--epochs", "1")
        for device in DEVICES:
            for parameter, operator_ in (("conv.0", "conv"), ("bn.2", "bn"), ("fc.1", "fc")):
                weights = self.read_tensors("good/model.h5")
                weights[parameter].flat[0] = np.nan
                self.write_tensors("bad.h5", **weights)
                self.refuse_training(["the loss is nan in epoch 1, batch 1;",
                                      f"the first operator whose output is not finite is '{operator_}'", "on_nan"],
                                     "-d", device, out="out", weights="bad.h5")

    def test_an_operator_that_makes_nans(self):
        """From finite parameters: the logarithm of what is below zero."""
        self.write("net.json", classifier([16, 1, 8, 8], 4,
                                          operator("Activation", "below", "image", activation="sigmoid"),
                                          operator("Elementwise", "negative", "below below", coef1=-1, coef2=-1),
                                          operator("Activation", "logarithm", "negative", activation="log")))
        for device in DEVICES:
            self.refuse_training(["the loss is nan in epoch 1, batch 1;", "not finite is 'logarithm'"], "-d", device, out="out")

    def test_going_on_after_a_loss_that_is_not_finite(self):
        """One bad weight makes every loss NaN: there is nothing to learn, which is said."""
        self.train("good", "-d", "cpu", "--epochs", "1")
        weights = self.read_tensors("good/model.h5")
        weights["fc.1"][0] = np.nan
        self.write_tensors("bad.h5", **weights)
        self.refuse_training(["nan", "'fc'"], "-d", "cpu", out="out", weights="bad.h5")
        self.refuse_training(["epoch 1", "no batch with a finite loss"], "-d", "cpu", out="out", weights="bad.h5",
                             on_nan="continue")

    def test_a_checkpoint_of_another_solver_or_net(self):
        self.train("out", "-d", "cpu", "--epochs", "1")
        checkpoint, model = self.folder / "out/checkpoint_1.h5", self.folder / "out/model.h5"
        for words, resume, more in ((["solver/", "velocity"], checkpoint, dict(solver={"type": "sgd", "momentum": 0.9})),
                                    (["model.h5", "not a checkpoint"], model, {}),
                                    (["nothing.h5"], self.folder / "nothing.h5", {}),
                                    (["train.json", "seems to be JSON", "an HDF5 file"], self.folder / "train.json", {})):
            self.refuse_training(words, "-d", "cpu", "--resume", resume, out="x", **more)
        self.write("net.json", NET | {"operators": [op if op["name"] != "fc" else op | {"options": {"outputs": 5}}
                                                    for op in NET["operators"]]})
        self.refuse_training(["shape"], "-d", "cpu", "--resume", checkpoint, out="x")


if __name__ == "__main__":
    main()
