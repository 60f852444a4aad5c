#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Weights, tensors, images and configurations that are refused, each with the words that its sentence must have."""
import gzip
import json
import os
import struct
import time

import h5py
import numpy as np
from commands import DEVICES, CommandTest, call, idx, main, network, operator
from training_runs import write_smallest

NET = network({"x": [2, 6], "label": ([2], "int")}, ["score", "loss"],
              operator("InnerProduct", "fc", "x", "score", outputs=3),
              operator("SoftmaxWithLoss", "l", "score label", "loss"))
W, B = np.ones((3, 6), np.float32), np.zeros(3, np.float32)
X, LABEL = np.ones((2, 6), np.float32), np.array([0, 2], np.int32)


class Weights(CommandTest):
    def setUp(self):
        super().setUp()
        self.net = self.write("net.json", NET)
        self.good = self.write_tensors("good.h5", fc__0=W, fc__1=B).read_bytes()
        self.inputs = self.write_tensors("in.h5", x=X, label=LABEL)
        self.before = self.listing()

    def run_net(self, weights, *more):
        return ("run", self.net, "-d", "cpu", "--weights", weights, "--inputs", self.inputs, "--outputs",
                self.folder / "out.h5", *more)

    def test_the_good_ones_are_good(self):
        self.succeed(*self.run_net(self.folder / "good.h5"))

    def test_files_that_hold_no_weights(self):
        for name, content, words in (
                ("empty", b"", ["empty"]), ("text", b"these are no weights", ["not an HDF5 file"]),
                ("the signature alone", self.good[:8], ["cut short"]),
                ("half of it", self.good[:len(self.good) // 2], ["cut short"]),
                ("all but a byte", self.good[:-1], ["cut short"]),
                ("zeros behind the signature", self.good[:8] + bytes(len(self.good) - 8), ["damaged"])):
            with self.subTest(name):
                path = self.write("w.h5", content)
                self.refuse(["w.h5", *words], *self.run_net(path))
                self.refuse(["w.h5", *words], "benchmark", "-i1", "-w1", "cpu", self.net, path)
        os.mkfifo(self.folder / "fifo")
        for path, words in ((self.folder, ["not a file"]), (self.folder / "none.h5", ["no file", "none.h5"]),
                            (self.folder / "fifo", ["not a file", "a FIFO"]),
                            ("/dev/null", ["not a file"])):
            self.refuse(words, *self.run_net(path))

    def test_datasets_that_do_not_fit(self):
        for words, tensors in (
                (["no parameter 'fc.1'"], dict(fc__0=W)),
                (["no parameter 'fc.0'", "did you mean 'fc.0x'"], dict(fc__0x=W, fc__1=B)),
                (["'fc.0'", "[6, 3]", "[3, 6]"], dict(fc__0=W.T, fc__1=B)),
                (["'fc.0'", "[18]"], dict(fc__0=W.ravel(), fc__1=B)),
                (["'fc.1'", "[4]"], dict(fc__0=W, fc__1=np.zeros(4, np.float32))),
                (["'fc.0'", "int32", "float"], dict(fc__0=W.astype(np.int32), fc__1=B)),
                (["no parameter 'fc.0'"], dict(fc__0=np.array(["text"] * 3, h5py.string_dtype()), fc__1=B)),
                (["no parameter"], {})):
            with self.subTest(words):
                self.refuse(words, *self.run_net(self.write_tensors("w.h5", **tensors)))

    def test_values_that_are_in_another_file(self):
        """What a user may read is not for a file of weights to choose."""
        secret = self.write("secret", b"a secret of the user's, which no output may hold, and some more bytes of it")
        good, layout = str(self.folder / "good.h5"), h5py.VirtualLayout((3, 6), np.float32)
        layout[:] = h5py.VirtualSource(good, "fc.0", (3, 6))
        for words, add in (
                (["another file"], lambda file: file.create_dataset("fc.0", (3, 6), np.float32, external=[(str(secret), 0, 72)])),
                (["is virtual"], lambda file: file.create_virtual_dataset("fc.0", layout)),
                (["link to another file"], lambda file: file.__setitem__("fc.0", h5py.ExternalLink(good, "fc.0"))),
                (["filter 32000", "lzf"], lambda file: file.create_dataset("fc.0", data=W, compression="lzf"))):
            with h5py.File(self.folder / "w.h5", "w") as file:
                add(file)
                file["fc.1"] = B
            self.refuse(["'fc.0'", *words], *self.run_net(self.folder / "w.h5"))
        self.assertFalse((self.folder / "out.h5").exists())

    def test_the_same_outputs_are_the_same_bytes(self):
        self.succeed(*self.run_net(self.folder / "good.h5"))
        first = (self.folder / "out.h5").read_bytes()
        time.sleep(1.1)  # HDF5 counts seconds
        self.succeed(*self.run_net(self.folder / "good.h5"))
        self.assertEqual(first, (self.folder / "out.h5").read_bytes())

    def test_a_dataset_larger_than_its_file(self):
        with h5py.File(self.folder / "w.h5", "w") as file:
            file.create_dataset("fc.0", (2 ** 20, 2 ** 20), np.float32, chunks=(64, 64))
            file["fc.1"] = B
        self.refuse(["'fc.0'", "[3, 6]"], *self.run_net(self.folder / "w.h5"))
        with h5py.File(self.folder / "big.h5", "w") as file:
            file.create_dataset("x", (2 ** 20, 2 ** 20), np.float32, chunks=(64, 64))
            file["label"] = LABEL
        self.inputs = self.folder / "big.h5"
        self.refuse(["'x'"], *self.run_net(self.folder / "good.h5"))

    def test_flipped_bytes(self):
        """Whatever byte of the headers is wrong, there is a result or a sentence, and never a crash."""
        codes = set()
        for at in list(range(8, 96, 5)) + list(range(96, len(self.good), 61)):
            damaged = bytearray(self.good)
            damaged[at] ^= 0xff
            path = self.write("w.h5", bytes(damaged))
            result = call(*self.run_net(path))
            codes.add(result.code)
            self.assertIn(result.code, (0, 1), f"byte {at}: {result}")
            self.assertEqual(len(result.err.splitlines()), result.code, f"byte {at}: {result}")
        self.assertEqual(codes, {0, 1}, "some bytes matter and some do not")

    def test_missing_weights(self):
        self.refuse(["--weights"], "run", self.net, "-d", "cpu", "--inputs", self.inputs, "--outputs", self.folder / "out.h5")
        self.assertEqual(self.listing(), self.before)

    def test_inputs_that_do_not_fit(self):
        for words, tensors in (
                (["no tensor 'label'"], dict(x=X)), (["'x'", "[2, 5]"], dict(x=X[:, :5], label=LABEL)),
                (["'label'", "[3]", "2"], dict(x=X, label=np.zeros(3, np.int32))),
                (["'x'"], dict(x=X.astype("S4"), label=LABEL)),
                (["'label'", "float"], dict(x=X, label=LABEL.astype(np.float32))),
                (["'x'"], dict(x=np.zeros((0, 6), np.float32), label=np.zeros(0, np.int32)))):
            with self.subTest(words):
                self.inputs = self.write_tensors("in.h5", **tensors)
                self.refuse(words, *self.run_net(self.folder / "good.h5"))
        self.assertEqual(self.listing(), self.before)

    def test_labels_out_of_range_on_every_device(self):
        for device in DEVICES:
            for label in (3, -1, 2 ** 31 - 1):
                self.inputs = self.write_tensors("in.h5", x=X, label=np.array([0, label], np.int32))
                command = [device if argument == "cpu" else argument for argument in self.run_net(self.folder / "good.h5")]
                self.refuse(["'label'", str(label), "position 1", "0 to 2"], *command)
        # As a float, a label must be whole.
        net = json.loads(json.dumps(NET))
        net["inputs"][1]["dtype"] = "float"
        self.net = self.write("net.json", net)
        for label in (0.5, np.nan, np.inf, -1):
            self.inputs = self.write_tensors("in.h5", x=X, label=np.array([0, label], np.float32))
            self.refuse(["'label'", "position 1"], *self.run_net(self.folder / "good.h5"))

    def test_gradients_that_do_not_fit(self):
        for words, tensors in ((["'scores'"], dict(scores=np.ones((2, 3), np.float32))),
                               (["'score'", "[3, 2]"], dict(score=np.ones((3, 2), np.float32)))):
            dy = self.write_tensors("dy.h5", **tensors)
            self.refuse(words, *self.run_net(self.folder / "good.h5", "--output-grads", dy, "--grads", self.folder / "g.h5"))
        self.refuse(["--outputs and --grads", "out.h5"], *self.run_net(self.folder / "good.h5", "--grads", self.folder / "out.h5"))
        self.assertFalse((self.folder / "out.h5").exists() or (self.folder / "g.h5").exists())


class Images(CommandTest):
    """What dlprim_train says of IDX files and of its configuration."""
    pictures, labels = np.zeros((8, 4, 4), np.uint8), np.arange(8, dtype=np.uint8) % 3

    def setUp(self):
        super().setUp()
        self.config = json.loads(write_smallest(self).read_text())

    def train(self, words=None, **more):
        command = ("train", self.write("train.json", self.config | more), "-d", "cpu", "--out", self.folder / "out",
                   "--replace")
        if words is None:
            return self.succeed(*command)
        self.refuse(words, *command)
        self.assertFalse((self.folder / "out").exists(), "what cannot start leaves no folder")

    def test_the_good_ones_are_good(self):
        self.train()

    def test_images(self):
        good = idx(self.pictures)
        header = good[:16]
        for name, content, words in (
                ("empty", b"", ["too short"]), ("wrong magic", b"\1\2\3\4" + good[4:], ["not an IDX file"]),
                ("wrong type", good[:2] + b"\7" + good[3:], ["unknown type code 7"]),
                ("no dimensions", b"\0\0\x08\0" + good[4:], ["0 dimensions"]),
                ("200 dimensions", b"\0\0\x08\xc8" + good[4:], ["200 dimensions"]),
                ("a cut header", header[:9], ["cut short within its header"]),
                ("header alone", header, ["cut short"]), ("all but a byte", good[:-1], ["cut short"]),
                ("a byte more", good + b"\0", ["more bytes"]),
                ("a count that lies", header[:4] + struct.pack(">I", 9) + good[8:], ["cut short"]),
                ("a count beyond memory", header[:4] + b"\xff" * 12 + good[16:], ["damaged"]),
                ("no images", header[:4] + struct.pack(">I", 0) + header[8:], ["0 images"]),
                ("floats", b"\0\0\x0d\3" + struct.pack(">3I", 2, 4, 4) + bytes(128), ["images are uint8"]),
                ("a list", idx(self.labels), ["images are uint8 of shape"]),
                ("five dimensions", idx(self.pictures.reshape(8, 1, 1, 4, 4)), ["images are uint8 of shape"]),
                ("of another size", idx(np.zeros((8, 5, 5), np.uint8)), ["1x5x5", "[4, 1, 4, 4]"]),
                ("of channels", idx(np.zeros((8, 3, 4, 4), np.uint8)), ["3x4x4", "[4, 1, 4, 4]"]),
                ("cut gzip", gzip.compress(np.random.default_rng(1).bytes(9999))[:500], ["i'"]),
                ("gzip of little", gzip.compress(header), ["cut short"]),
                ("damaged gzip", b"\x1f\x8b" + bytes(200), ["i'"])):
            with self.subTest(name):
                self.write("i", content)
                self.train(["/i'", *words])

    def test_labels(self):
        for name, content, words in (
                ("too few", idx(self.labels[:7]), ["[7]", "8 images"]), ("pictures", idx(self.pictures), ["label for each"]),
                ("out of range", idx(self.labels + 1), ["label 3", "3 classes", "0 to 2"]),
                ("negative", b"\0\0\x09\1" + struct.pack(">I8b", 8, 0, 1, 2, 0, 1, 2, 0, -1), ["label -1", "0 to 2"]),
                ("floats with fractions", b"\0\0\x0d\1" + struct.pack(">I8f", 8, *[0.5] * 8), ["float"])):
            with self.subTest(name):
                self.write("l", content)
                self.train(["/l'", *words])

    def test_fewer_images_than_a_batch(self):
        self.train(["8 images", "batch of 16"], batch=16)

    def test_files_that_are_not_there(self):
        self.train(["no file", "none"], data={"train": {"images": "none", "labels": "l"}})
        self.train(["not a file"], data={"train": {"images": "i", "labels": "."}})
        self.train(["none.json", "no file"], net="none.json")
        self.train(["none.h5"], weights="none.h5")
        self.refuse(["none.json"], "train", self.folder / "none.json", "-d", "cpu")

    def test_configurations(self):
        for words, more in (
                (["train.json:", "no key 'epoch'", "did you mean 'epochs'"], {"epoch": 3}),
                (["epochs", "at least 1"], {"epochs": 0}), (["epochs", "integer"], {"epochs": "many"}),
                (["batch", "at least 1"], {"batch": -4}), (["batch", "at least 1"], {"batch": 2 ** 40}),
                (["solver.type", "adma", "did you mean 'adam'"], {"solver": {"type": "adma"}}),
                (["solver.learning_rate"], {"solver": {"learning_rate": -1}}),
                (["momentum", "nesterov"], {"solver": {"type": "sgd", "nesterov": True}}),
                (["beta1"], {"solver": {"beta1": 1}}), (["schedule.type"], {"schedule": {"type": "cosin"}}),
                (["data.type", "text", "must be one of"], {"data": {"type": "text", "train": {"images": "i", "labels": "l"}}}),
                (["data", "lacks 'train'"], {"data": {}}), (["data.std"], {"data": {"std": 0, "train": {"images": "i", "labels": "l"}}}),
                (["initialization"], {"initialization": "random"}), (["on_nan"], {"on_nan": "ignore"}),
                (["memory_limit", "at least 1"], {"memory_limit": 0}), (["memory_limit"], {"memory_limit": "1 GiB"}),
                (["checkpoints.keep"], {"checkpoints": {"keep": 0}}), (["net must be a string"], {"net": 7})):
            with self.subTest(words):
                self.train(words, **more)
        for text, words in (("", ["empty"]), ("{", ["train.json:1:"]), ("[]", ["must be an object"]), ("{}", ["lacks 'net'"]),
                            ("[" * 100000, ["nested deeper"]), ('{"a":' * 100000, ["nested deeper"]),
                            ('{"epochs": 1e999}', ["number overflow"]), (b'{"net": "\xff"}', ["UTF-8"])):
            self.refuse(words, "train", self.write("train.json", text), "-d", "cpu", "--out", self.folder / "out")

    def test_numbers_beyond_sense(self):
        """Of images of 4x4, 8 of them, batches of 4 and one epoch."""
        def solver(**options):
            return {"solver": options}

        def schedule(epochs=10, **options):
            return {"schedule": options, "epochs": epochs}

        def data(**options):
            return {"data": {"train": {"images": "i", "labels": "l"}} | options}

        for words, more in (
                (["train.json:", "crop_pad is 4", "4x4"], {"augmentation": {"crop_pad": 4}}),
                (["crop_pad is 1000000"], {"augmentation": {"crop_pad": 1000000}}),
                (["crop_pad", "at least 0"], {"augmentation": {"crop_pad": -1}}),
                (["schedule.warmup_epochs is 2", "the run has 1 epoch"], schedule(1, warmup_epochs=2)),
                (["schedule.warmup_epochs is 1e+09", "10 epochs"], schedule(type="cosine", warmup_epochs=1e9)),
                (["schedule.warmup_epochs", "at least 0"], schedule(warmup_epochs=-1)),
                (["schedule.step_epochs is 10", "no step"], schedule(type="step", step_epochs=10)),
                (["schedule.step_epochs", "above 0"], schedule(type="step", step_epochs=0)),
                (["schedule.patience is 10", "never fall"], schedule(type="plateau", patience=10)),
                (["schedule.gamma", "above 0"], schedule(type="step", step_epochs=1, gamma=0)),
                (["schedule.gamma", "below 1"], schedule(type="plateau", gamma=1)),
                (["schedule.minimum is 1", "learning rate of 0.001"], schedule(type="cosine", minimum=1)),
                (["solver.learning_rate", "above 0"], solver(learning_rate=0)),
                (["solver.learning_rate is 1e+39", "a float can hold"], solver(learning_rate=1e39)),
                (["solver.momentum is 1,", "below 1"], solver(type="sgd", momentum=1)),
                (["solver.beta2 is 1,", "below 1"], solver(beta2=1)), (["solver.epsilon"], solver(epsilon=0)),
                (["solver.epsilon"], solver(epsilon=1e-200)), (["solver.weight_decay"], solver(weight_decay=-1)),
                (["solver.clip_norm"], solver(clip_norm=-1)), (["solver.clip_value"], solver(clip_value=-0.5)),
                (["solver.accumulate is 3", "2 batches"], solver(accumulate=3)),
                (["solver.accumulate", "at least 1"], solver(accumulate=0)),
                (["solver.loss_scale"], solver(loss_scale=-1)), (["solver.loss_scale_steps"], solver(loss_scale_steps=0)),
                (["data.mean is 33.3", "at most 1"], data(mean=33.3)), (["data.std"], data(std=-1)),
                (["batch is 2000000000", "at most 1000000000"], {"batch": 2000000000}), (["seed is -1"], {"seed": -1}),
                (["checkpoints.every_epochs"], {"checkpoints": {"every_epochs": -1}})):
            with self.subTest(words):
                self.train(words, **more)
        for name in ("NaN", "Infinity", "1e999"):
            text = json.dumps(self.config | solver(learning_rate=77)).replace("77", name)
            self.refuse(["train.json:"], "train", self.write("train.json", text), "-d", "cpu", "--out", self.folder / "out")

    def test_numbers_at_their_bounds(self):
        for more in ({"augmentation": {"crop_pad": 3}}, {"schedule": {"warmup_epochs": 1}}, {"data": self.config["data"] | {"mean": 1}},
                     {"solver": {"accumulate": 2}}, {"schedule": {"type": "plateau"}}, {"schedule": {"type": "step"}},
                     {"checkpoints": {"every_epochs": 9, "keep": 9}}):
            self.train(**more)

    def test_epochs_of_the_command(self):
        """They are the run's, also for what has to fit into it."""
        config = self.write("train.json", self.config | {"epochs": 4, "schedule": {"warmup_epochs": 3}})
        command = ("train", config, "-d", "cpu", "--out", self.folder / "out", "--replace", "--epochs")
        self.refuse(["warmup_epochs is 3", "the run has 2 epochs, as the command says"], *command, 2)
        self.succeed(*command, 3)
        # A run that the command cuts short may end before its rate changes.
        self.write("train.json", self.config | {"epochs": 4, "schedule": {"type": "step", "step_epochs": 3}})
        self.succeed(*command, 2)

    def test_networks_that_do_not_train(self):
        for words, net in (
                (["two inputs"], network({"x": [4, 1, 4, 4]}, ["loss"], operator("InnerProduct", "loss", "x", outputs=1))),
                (["no loss"], network({"x": [4, 1, 4, 4], "label": ([4], "int")}, ["error"],
                                      operator("InnerProduct", "fc", "x", outputs=3),
                                      operator("SoftmaxWithLoss", "error", "fc label")))):
            self.write("net.json", net)
            self.train(words)


if __name__ == "__main__":
    main()
