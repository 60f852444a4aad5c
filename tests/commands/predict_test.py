#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""onnx_predict: images are read, resized, cropped and normalised, and the likeliest classes are printed."""
import math
import subprocess

import numpy as np
from commands import DEVICES, SECONDS, TOOLS, CommandTest, main
from onnx_test import field, tensor_info

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def model(size, channels_last=False):
    """The mean of red, of green and of blue, for a batch of one image of this size (None: open)."""
    shape = [1, size, size, 3] if channels_last else [1, 3, size, size]
    order = field(1, "perm") + b"".join(field(8, axis) for axis in (0, 3, 1, 2)) + field(20, 7)
    nodes = [field(1, "x") + field(2, "t") + field(4, "Transpose") + field(5, order)] if channels_last else []
    nodes += [field(1, "t" if channels_last else "x") + field(2, "m") + field(4, "GlobalAveragePool"),
              field(1, "m") + field(2, "y") + field(4, "Flatten")]
    graph = b"".join(field(1, node) for node in nodes) + field(11, tensor_info("x", shape))
    return field(1, 8) + field(7, graph + field(12, tensor_info("y", [1, 3]))) + field(8, field(2, 17))


def ppm(pixels):
    height, width = pixels.shape[:2]
    return f"P6 # a comment\n{width} {height}\n255\n".encode() + pixels.tobytes()


def shares(means, mean=MEAN, deviation=DEVIATION):
    """The softmax of normalised means of red, green and blue from 0 to 1."""
    powers = [math.exp((value - m) / d) for value, m, d in zip(means, mean, deviation)]
    return [power / sum(powers) for power in powers]


class PredictTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("model.onnx", model(8))
        rng = np.random.default_rng(1)
        self.noise = rng.integers(0, 256, (30, 20, 3), dtype=np.uint8)
        self.plain = np.full((9, 12, 3), (250, 40, 10), np.uint8)
        if "reads no ONNX models" in self.call(self.model, self.write("plain.ppm", ppm(self.plain))).stderr:
            self.skipTest("this build reads no ONNX models")

    def call(self, *arguments):
        return subprocess.run([TOOLS / "onnx_predict", *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS)

    def predict(self, *arguments):
        """By image a list of (share, class and name)."""
        done = self.call(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = []
        for line in done.stdout.splitlines():
            if line.startswith(" "):
                share, what = line.split(maxsplit=1)
                result[-1].append((float(share), what))
            else:
                result.append([])
        return result

    def check(self, found, expected, delta=2e-4):
        for share, what in found:
            self.assertAlmostEqual(share, expected[int(what.split()[0])], delta=delta)

    def refuse_predict(self, words, *arguments, code=1):
        done = self.call(*arguments)
        self.assertEqual(done.returncode, code, done)
        lines = done.stderr.rstrip("\n").split("\n")
        self.assertLessEqual(len(lines), 1 if code == 1 else 3, done)
        for word in words:
            self.assertIn(word, lines[0])

    def test_classes_and_labels(self):
        image, labels = self.folder / "plain.ppm", self.write("labels.txt", "red\r\ngreen\nblue\n")
        expected = shares([250 / 255, 40 / 255, 10 / 255])
        for device in DEVICES:
            found = self.predict(self.model, image, image, "-d", device, "--labels", labels, "--top", 2)
            self.assertEqual([[what for _, what in one] for one in found], [["0  red", "1  green"]] * 2)
            self.check(found[0], expected)

    def test_options(self):
        image = self.folder / "plain.ppm"
        means = [250 / 255, 40 / 255, 10 / 255]
        found = self.predict(self.model, image, "-d", "cpu", "--mean", "0.1,0.2,0.3", "--deviation", "1,2,1", "--bgr")
        self.assertEqual(len(found[0]), 3)
        self.check(found[0], shares(means[::-1], (0.1, 0.2, 0.3), (1, 2, 1)))
        last = self.write("last.onnx", model(8, channels_last=True))
        self.check(self.predict(last, image, "-d", "cpu")[0], shares(means))
        opened = self.write("open.onnx", model(None))
        self.check(self.predict(opened, image, "-d", "cpu", "--crop", 5, "--resize", 5)[0], shares(means))

    def test_a_crop_without_resizing(self):
        image = self.write("noise.ppm", ppm(self.noise))
        opened = self.write("open.onnx", model(None))
        found = self.predict(opened, image, "-d", "cpu", "--crop", 6, "--resize", 20)
        middle = self.noise[12:18, 7:13].reshape(-1, 3).mean(0) / 255
        self.check(found[0], shares(middle))

    def test_images_as_pillow_reads_and_resizes_them(self):
        try:
            from PIL import Image, features
        except ImportError:
            self.skipTest("Pillow is absent")
        image = Image.fromarray(self.noise)
        small = np.asarray(image.resize((9, 13), Image.Resampling.BILINEAR), np.float32)  # 8 * 256 / 224 = 9
        expected = shares(small[2:10, :8].reshape(-1, 3).mean(0) / 255)
        found = self.predict(self.model, self.write("noise.ppm", ppm(self.noise)), "-d", "cpu")
        self.check(found[0], expected, 1e-3)  # Pillow rounds to 8 bits
        kinds = [kind for kind in ("png", "jpg") if kind == "png" or features.check("jpg")]
        for kind in kinds:
            path = self.folder / f"image.{kind}"
            Image.fromarray(self.plain).save(path)
            done = self.call(self.model, path, "-d", "cpu")
            if "this build does not read" in done.stderr:
                continue
            pixels = np.asarray(Image.open(path), np.float32).reshape(-1, 3).mean(0) / 255
            self.check(self.predict(self.model, path, "-d", "cpu")[0], shares(pixels))

    def test_bad_input(self):
        good = self.folder / "plain.ppm"
        bad = ((b"", "no image"), (b"P6\n3 3\n255\n123", "cut short"), (b"P6\n3 3\n65535\n", "more than 8 bits"),
               (b"P6\n99999 9\n255\n", "32768"), (b"\x89PNG\r\n\x1a\nxx", "PNG"), (b"\xff\xd8\xff\xe0", "JPEG"))
        for content, words in bad:
            with self.subTest(words):
                self.refuse_predict([words], self.model, self.write("bad.ppm", content), "-d", "cpu")
        self.refuse_predict(["no file"], self.model, self.folder / "none.ppm", "-d", "cpu")
        self.refuse_predict(["cannot be opened"], self.model, good, "-d", "cpu", "--labels", self.folder / "none")
        self.refuse_predict(["smaller than the crop"], self.model, good, "-d", "cpu", "--resize", 4)
        self.refuse_predict(["--deviation is 0"], self.model, good, "-d", "cpu", "--deviation", "1,0,1")
        self.refuse_predict(["JSON", "an ONNX model is expected"], self.write("text.onnx", b"{}"), good, "-d", "cpu")
        self.refuse_predict([""], self.model, code=2)


if __name__ == "__main__":
    main()
