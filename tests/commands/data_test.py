#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Data sets of dlprim_train and dlprim_data: folders of pictures, HDF5, numpy and CSV files; augmentation that does not
depend on threads; broken examples; and what is said of bad input."""
import csv
import json
import os
import shutil

import h5py
import numpy as np
from commands import CommandTest, idx, main, network, operator
from pictures import BLUE, COLOUR_ALPHA, GREY, GREY_ALPHA, JPEG, JPEG_CMYK, PALETTE, RED, bomb, png

CLASSES = {"amber": (230, 170, 40), "blue": (40, 60, 220), "crimson": (200, 20, 50)}
FOLDER = {"type": "folder", "train": "train", "mean": [0.5, 0.4, 0.4], "std": 0.25}


def net(size, classes=3, batch=8):
    return network({"data": [batch, 3, size, size], "label": ([batch], "int")}, ["prob", "loss"],
                   operator("Convolution2D", "c", "data", channels_out=4, kernel=3, stride=2, activation="relu"),
                   operator("InnerProduct", "fc", "c", outputs=classes), operator("Softmax", "prob", "fc"),
                   operator("SoftmaxWithLoss", "loss", "fc label"))


def table(features, classes, batch=8):
    return network({"data": [batch, features], "label": ([batch], "int")}, ["prob", "loss"],
                   operator("InnerProduct", "hidden", "data", outputs=16, activation="relu"),
                   operator("InnerProduct", "fc", "hidden", outputs=classes), operator("Softmax", "prob", "fc"),
                   operator("SoftmaxWithLoss", "loss", "fc label"))


class Data(CommandTest):
    def pictures(self, folder, count, seed=1):
        """Noise around a colour for each class, PNG and here and there JPEG, of different sizes."""
        random = np.random.default_rng(seed)
        for name, colour in CLASSES.items():
            for i in range(count):
                height, width = random.integers(20, 45, 2)
                pixels = np.clip(random.normal(colour, 40, (height, width, 3)), 0, 255).astype(np.uint8)
                self.write(f"{folder}/{name}/{i:02}.png", png(pixels))

    def config(self, data, augmentation=None, network_=None, **more):
        self.write("net.json", network_ or net(16))
        content = {"net": "net.json", "batch": 8, "epochs": 3, "seed": 5, "data": data,
                   "solver": {"type": "adam", "learning_rate": 0.01}} | more
        return self.write("train.json", content | ({"augmentation": augmentation} if augmentation else {}))

    def train(self, *arguments, out="out"):
        shutil.rmtree(self.folder / out, ignore_errors=True)
        result = self.succeed("train", self.folder / "train.json", "-d", "cpu", "--out", self.folder / out, *arguments)
        with open(self.folder / out / "metrics.csv", newline="") as file:
            return result, list(csv.DictReader(file))

    def data(self, *arguments):
        result = self.succeed("data", self.folder / "train.json", "--json", "-", *arguments)
        return json.loads(result.out)["parts"]

    def model(self, out):
        return (self.folder / out / "model.h5").read_bytes()

    def test_training_on_a_folder_whatever_the_number_of_threads(self):
        self.pictures("train", 16)
        self.pictures("test", 5, seed=2)
        self.write("train/blue/deeper/one.ppm", b"P6 20 20 255\n" + bytes([40, 60, 220]) * 400)
        self.write("train/blue/notes.txt", "no picture")
        self.write("train/.hidden/x.png", b"")
        changes = {"resized_crop": {"scale": [0.3, 1]}, "crop": 16, "flip": True, "brightness": 0.3, "contrast": 0.3,
                   "saturation": 0.3, "cutout": 5}
        models = []
        for threads in (1, 2, 7):
            self.config(FOLDER | {"test": "test", "threads": threads}, changes)
            _, rows = self.train()
            models.append(self.model("out"))
        self.assertGreater(float(rows[-1]["test_accuracy"]), 0.9)
        self.assertEqual(models[0], models[1])
        self.assertEqual(models[0], models[2])
        parts = self.data()
        self.assertRegex(parts[0]["remarks"][0], "1 file is passed over.*notes.txt")
        self.assertEqual([(part["role"], part["examples"], part["broken"]) for part in parts],
                         [("train", 49, 0), ("test", 15, 0)])
        self.assertEqual(parts[0]["classes"], [{"name": "amber", "count": 16}, {"name": "blue", "count": 17},
                                               {"name": "crimson", "count": 16}])
        self.assertEqual(parts[0]["input"], [3, 16, 16])

    def test_resuming_gives_the_same_bits(self):
        self.pictures("train", 10)
        self.config(FOLDER, {"resize": 20, "crop": 16, "flip": True}, epochs=2)
        self.train(out="whole")
        self.train("--epochs", "1", out="half")
        self.train("--resume", self.folder / "half/checkpoint_1.h5", out="rest")
        self.assertEqual(self.model("whole"), self.model("rest"))

    def test_summary_and_contact_sheet(self):
        for i in range(3):
            self.write(f"train/red/{i}.png", png(np.full((10, 12, 3), RED, np.uint8)))
            self.write(f"train/white/{i}.png", png(np.full((20, 14, 3), 255, np.uint8)))
        self.config(FOLDER | {"test": 0.34}, {"resize": [8, 8]}, net(8, 2, 1), batch=1)
        sheet = self.folder / "sheet.png"
        result = self.succeed("data", self.folder / "train.json", "--sheet", sheet)
        self.assertIn("1  red\n", result.out)
        self.assertIn("2  white\n", result.out)
        train, test = self.data()
        self.assertEqual((test["role"], test["examples"], train["examples"]), ("test", 2, 4))
        self.assertEqual(train["pictures"], {"height": [10, 20], "width": [12, 14]})
        counts = [one["count"] for one in train["classes"]]
        share = counts[0] * 120 / (counts[0] * 120 + counts[1] * 280)
        for channel in range(3):
            mean = share * RED[channel] / 255 + 1 - share
            self.assertAlmostEqual(train["mean"][channel], mean, delta=1e-6)
            self.assertAlmostEqual(train["deviation"][channel],
                                   (1 - RED[channel] / 255) * (share * (1 - share)) ** 0.5, delta=1e-6)
        # The sheet: cells of 64 pixels with a gap of 4; the first row is red, the second white.
        bytes_ = sheet.read_bytes()
        width, height = (int.from_bytes(bytes_[at:at + 4], "big") for at in (16, 20))
        self.assertEqual(height, 2 * 68 + 4)
        self.assertEqual(width, max(counts) * 68 + 4)

    def test_kinds_of_pictures(self):
        """The mean of a constant picture is its colour, however it is stored."""
        red = np.full((6, 6, 3), RED, np.uint8)
        half = np.full((6, 6, 1), 128, np.uint8)
        grey = round(0.299 * RED[0] + 0.587 * RED[1] + 0.114 * RED[2])
        laid = [round(c * 128 / 255) for c in RED]
        both = [(a + b) / 2 for a, b in zip(RED, BLUE)]
        for name, content, colour, delta in (
                ("colour", png(red), RED, 0.01), ("16 bits", png(red.astype(np.uint16) * 257), RED, 0.01),
                ("grey", png(np.full((6, 6), 77, np.uint8), GREY), (77, 77, 77), 0.01),
                ("transparent", png(np.concatenate((red, half), 2), COLOUR_ALPHA), laid, 0.01),
                ("transparent grey", png(np.concatenate((half, half), 2), GREY_ALPHA), [64] * 3, 0.51),
                ("palette", png(np.ones((6, 6), np.uint8), PALETTE, (0, 0, 0, *RED)), RED, 0.01),
                ("PPM", b"P6 6 6 255\n" + red.tobytes(), RED, 0.01), ("JPEG", JPEG, both, 3), ("CMYK", JPEG_CMYK, both, 3)):
            with self.subTest(name):
                for folder in ("a", "b"):
                    self.write(f"train/{folder}/x.png", content)
                self.config(FOLDER, {"resize": [8, 8]})
                part = self.data()[0]
                self.assertEqual(part["messages"], [])
                for channel in range(3):
                    self.assertAlmostEqual(255 * part["mean"][channel], colour[channel], delta=delta)
        self.config(FOLDER | {"channels": 1, "mean": 0}, {"resize": [8, 8]})
        for folder in ("a", "b"):
            self.write(f"train/{folder}/x.png", png(red))
        self.assertAlmostEqual(255 * self.data()[0]["mean"][0], grey, delta=0.01)

    def test_a_broken_picture_is_skipped_or_fatal(self):
        self.pictures("train", 12)
        self.pictures("test", 4, seed=2)
        whole = (self.folder / "train/amber/00.png").read_bytes()
        self.write("train/amber/00.png", whole[:len(whole) // 2])
        self.write("train/blue/00.jpg", JPEG[:-40])
        self.write("train/crimson/00.png", b"")
        self.write("test/crimson/01.png", whole[:50])
        how = {"resize": [16, 16]}
        self.config(FOLDER | {"test": "test"}, how)
        result, rows = self.train()
        self.assertEqual(len(rows), 3)
        self.assertRegex(result.out, "note: 3 examples of .*train' could not be read and were skipped: .*00")
        self.assertRegex(result.out, "note: 1 example of .*test' could not be read and was skipped: .*crimson/01.png")
        train, test = self.data()
        self.assertEqual((train["broken"], test["broken"]), (3, 1))
        for words in ("amber/00.png", "blue/00.jpg", "cut short", "crimson/00.png", "empty"):
            self.assertIn(words, " ".join(train["messages"]))
        self.config(FOLDER | {"on_broken": "stop"}, how)
        self.refuse(["00."], "train", self.folder / "train.json", "-d", "cpu", "--out", self.folder / "stopped")

    def test_nothing_but_broken_pictures(self):
        for i in range(20):
            self.write(f"train/{'ab'[i % 2]}/{i}.png", b"\x89PNG\r\n\x1a\n")
        self.config(FOLDER, {"resize": [16, 16]})
        self.refuse(["100 examples", "could not be read", ".png"], "train", self.folder / "train.json", "-d", "cpu")

    def bad_folder(self, words, augmentation=None, **more):
        self.config(FOLDER | more, {"resize": [16, 16]} if augmentation is None else augmentation, batch=1)
        for command in (["train", self.folder / "train.json", "-d", "cpu"], ["data", self.folder / "train.json"]):
            self.refuse(words, *command)

    def test_bad_folders(self):
        self.bad_folder(["no folder", "train"])
        self.write("train/a.png", png(np.zeros((4, 4, 3), np.uint8)))
        self.bad_folder(["no classes", "a folder for each class"])
        self.write("train/cats/a.png", png(np.zeros((4, 4, 3), np.uint8)))
        self.bad_folder(["one class alone, 'cats'"])
        (self.folder / "train/dogs").mkdir()
        self.bad_folder(["train/dogs", "has no pictures"])
        self.write("train/dogs/a.png", png(np.zeros((4, 4, 3), np.uint8)))
        os.symlink("..", self.folder / "train/dogs/again")
        self.bad_folder(["again", "link"])
        (self.folder / "train/dogs/again").unlink()
        os.symlink("itself", self.folder / "train/dogs/itself")
        self.bad_folder(["itself", "link"])
        (self.folder / "train/dogs/itself").unlink()
        self.write("test/dgos/a.png", b"")
        self.bad_folder(["dgos", "did you mean 'dogs'"], test="test")
        self.bad_folder(["data.test", "leaves none"], test=0.1)
        self.bad_folder(["validation", "leave one out"], validation=0.1, test="test")
        self.bad_folder(["data.mean has 2 numbers"], mean=[0.1, 0.2])

    def test_pictures_of_the_nets_size_need_no_augmentation(self):
        random = np.random.default_rng(1)
        for name in "abc":
            for i in range(8):
                self.write(f"train/{name}/{i}.png", png(random.integers(0, 256, (16, 16, 3), np.uint8)))
        for augmentation in (None, {"flip": True}):
            self.config(FOLDER, augmentation)
            self.train()
            self.assertEqual((self.data()[0]["input"], self.data()[0]["broken"]), ([3, 16, 16], 0))
        self.config(FOLDER, network_=net(15))
        self.refuse(["images of", "3x16x16", "'data'", "augmentation"], "train", self.folder / "train.json", "-d", "cpu")
        self.write("train/b/7.png", png(np.zeros((16, 20, 3), np.uint8)))
        self.config(FOLDER | {"on_broken": "stop"})
        self.refuse(["b/7.png", "20 x 16", "the first one gives 16 x 16", "augmentation.crop"], "train",
                    self.folder / "train.json", "-d", "cpu", "--out", self.folder / "other")

    def test_more_outputs_than_classes_are_noted(self):
        self.pictures("train", 4)
        for outputs in (3, 7):
            self.config(FOLDER, {"resize": [16, 16]}, network_=net(16, classes=outputs))
            out = self.train()[0].out
            self.assertEqual("note: the network has 7 outputs for classes, and" in out, outputs == 7)

    def test_misspelt_keys(self):
        self.bad_folder(["chanels", "did you mean 'channels'"], chanels=1)
        self.bad_folder(["resized_corp", "did you mean 'resized_crop'"], augmentation={"resized_corp": True})
        self.bad_folder(["foldr", "did you mean 'folder'"], type="foldr")
        self.bad_folder(["on_broken", "did you mean 'skip'"], on_broken="skp")
        self.bad_folder(["resized_crop", "set augmentation.crop"], augmentation={"resized_crop": True})

    def test_a_picture_that_is_too_small_or_too_large(self):
        for name in "ab":
            self.write(f"train/{name}/z.png", png(np.zeros((4, 4, 3), np.uint8)))
        self.config(FOLDER | {"on_broken": "stop"}, {"crop": 16}, batch=2)
        self.refuse(["smaller than the crop of 16 x 16"], "train", self.folder / "train.json", "-d", "cpu")
        self.write("train/b/x.png", bomb(60000, 60000))
        self.write("train/b/y.png", bomb(30000, 30000))
        messages = self.data()[0]["messages"]
        self.assertEqual(len(messages), 2)
        self.assertIn("60000 x 60000 pixels; each side", messages[0])
        self.assertIn("30000 x 30000 pixels, more than the limit", messages[1])

    def test_arrays_in_hdf5_and_numpy_files(self):
        """The same pictures give the same model, wherever they are stored."""
        random = np.random.default_rng(3)
        labels = random.integers(0, 3, 40)
        colours = np.array(list(CLASSES.values()))[labels]
        x = np.clip(random.normal(colours[:, None, None], 40, (40, 16, 16, 3)), 0, 255).astype(np.uint8)
        planes = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
        with h5py.File(self.folder / "a.h5", "w") as file:
            file["plain"], file["labels"] = planes, labels
            file.create_dataset("some/packed", data=x, chunks=(7, 16, 16, 3), compression="gzip")
        np.save(self.folder / "x.npy", planes)
        np.save(self.folder / "y.npy", labels.astype(np.uint8))
        np.savez(self.folder / "stored.npz", x=planes, y=labels)
        np.savez_compressed(self.folder / "packed.npz", x=x, y=labels.astype(np.int16))
        self.write("x.idx", idx(planes))
        self.write("y.idx", idx(labels.astype(np.uint8)))
        models = []
        for data in ({"type": "idx", "train": {"images": "x.idx", "labels": "y.idx"}},
                     {"type": "hdf5", "train": {"file": "a.h5", "inputs": "plain", "labels": "labels"}},
                     {"type": "hdf5", "train": {"file": "a.h5", "inputs": "some/packed", "labels": "labels"}, "layout": "NHWC"},
                     {"type": "npy", "train": {"inputs": "x.npy", "labels": "y.npy"}},
                     {"type": "npy", "train": {"file": "stored.npz", "inputs": "x", "labels": "y"}},
                     {"type": "npy", "train": {"file": "packed.npz", "inputs": "x", "labels": "y"}, "layout": "NHWC"}):
            self.config(data | {"mean": 0.4, "std": 0.25, "test": 0.2}, {"flip": True, "crop_pad": 2}, epochs=2)
            self.train()
            models.append(self.model("out"))
            self.assertEqual(models[0], models[-1], data)

    def test_bad_arrays(self):
        np.save(self.folder / "x.npy", np.zeros((10, 3, 16, 16), np.uint8))
        np.save(self.folder / "y.npy", np.zeros(9, np.int64))
        np.save(self.folder / "f.npy", np.asfortranarray(np.zeros((10, 4, 4), np.float32)))
        np.save(self.folder / "big.npy", np.zeros((10, 4), ">f4"))
        np.save(self.folder / "text.npy", np.array(["a"] * 10))
        np.savez_compressed(self.folder / "a.npz", images=np.zeros((10, 3, 16, 16)), labels=np.arange(10))
        packed = (self.folder / "a.npz").read_bytes()
        self.write("cut.npz", packed[:len(packed) // 2])
        middle = packed.index(b"images.npy") + 60
        self.write("bad.npz", packed[:middle] + bytes(8) + packed[middle + 8:])
        whole = (self.folder / "x.npy").read_bytes()
        self.write("cut.npy", whole[:5000])
        self.write("claims.npy", whole.replace(b"(10, 3, 16, 16)", b"(9999999999999)"))

        def refuse(words, train, **more):
            self.config({"type": "npy", "train": train} | more)
            self.refuse(words, "data", self.folder / "train.json")
        for inputs, words in (("f", "Fortran"), ("big", "big-endian"), ("text", "no type of numbers"), ("cut", "cut short"),
                              ("claims", "cut short or damaged"), ("x", "a label for each"), ("none", "no file")):
            refuse([words], {"inputs": f"{inputs}.npy", "labels": "y.npy"})
        for name, inputs, words in (("a", "image", ["no array 'image'", "did you mean 'images'"]), ("cut", "images", ["ZIP"]),
                                    ("bad", "images", ["damaged"])):
            refuse(words, {"file": f"{name}.npz", "inputs": inputs, "labels": "labels"})

    def test_nan_in_an_array(self):
        x = np.random.default_rng(1).normal(size=(24, 5)).astype(np.float32)
        y = (x[:, 0] > 0).astype(np.int64)
        x[7, 3] = np.nan
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "y.npy", y)
        data = {"type": "npy", "train": {"inputs": "x.npy", "labels": "y.npy"}}
        self.config(data | {"on_broken": "stop"}, network_=table(5, 2))
        self.refuse(["x.npy", "row 7", "column 3", "NaN"], "train", self.folder / "train.json", "-d", "cpu")
        self.config(data, network_=table(5, 2))
        self.train()
        self.assertEqual(self.data()[0]["broken"], 1)

    def rows(self, count=64):
        random = np.random.default_rng(2)
        for _ in range(count):
            a, b, c = random.normal(size=3)
            yield a, b, c, "yes, it is" if a + b > 0 else 'a "no"'

    def test_csv(self):
        lines = ["\ufeffa,b,unused,kind"]
        for a, b, c, kind in self.rows():
            quoted = kind.replace('"', '""')
            lines.append(f'{a},+{abs(b)},{c},"{quoted}"' if b > 0 else f'{a},{b},{c},"{quoted}"')
        self.write("a.csv", "\r\n".join(lines))
        self.config({"type": "csv", "train": "a.csv", "label": "kind", "features": ["a", "b"], "validation": 0.25},
                    network_=table(2, 2), epochs=10, solver={"type": "adam", "learning_rate": 0.05})
        _, rows = self.train()
        self.assertGreater(float(rows[-1]["test_accuracy"]), 0.8)
        part = self.data()[0]
        self.assertEqual([one["name"] for one in part["classes"]], ['a "no"', "yes, it is"])
        self.assertEqual(part["examples"], 48)

    def test_bad_csv(self):
        good = "a;b;kind\n" + "1;2;x\n3;4;y\n" * 8
        for text, words in (("", ["is empty"]), ("a;b;kind\n", ["no rows"]), (good + "1;2\n", [":18:", "2 fields"]),
                            (good + '1;2;"x\n', [":18:", "quote is not closed"]), ("a;b;knd\n1;2;x\n", ["'kind'", "did you mean 'knd'"]),
                            (good + '1;"2"3;x\n', ["behind the closing quote"]), ("a;a;kind\n1;2;x\n", ["two columns"]),
                            ("kind\nx\ny\n", ["no column but the label"]), ("a;b;kind\n1;2;x\n", ["one class alone"])):
            self.write("a.csv", text)
            self.config({"type": "csv", "train": "a.csv", "label": "kind", "separator": ";"}, network_=table(2, 2))
            self.refuse(words, "train", self.folder / "train.json", "-d", "cpu")
        for row, words in (("nan;2;x", ["a.csv:18", "column 'a' is 'nan'"]), ("1;;x", ["column 'b' is empty"]),
                           ("1;two;x", ["column 'b' is 'two'"]), ("1;2;", ["the label", "is missing"])):
            self.write("a.csv", good + row + "\n")
            self.config({"type": "csv", "train": "a.csv", "label": "kind", "separator": ";", "on_broken": "stop"},
                        network_=table(2, 2, 17), batch=17)
            self.refuse(words, "train", self.folder / "train.json", "-d", "cpu")
            self.assertEqual(self.data()[0]["broken"], 1)
        self.config({"type": "csv", "train": "a.csv"}, network_=table(2, 2))
        self.refuse(["label"], "train", self.folder / "train.json", "-d", "cpu")

    def test_masks(self):
        """Pictures whose upper half is of class 1, as the mask's palette index, and one with a mask in grey."""
        mask = np.zeros((12, 10), np.uint8)
        mask[:6] = 1
        for i in range(6):
            pixels = np.full((12, 10, 3), 40 * i, np.uint8)
            pixels[:6] = RED
            self.write(f"images/deep/{i}.png", png(pixels))
            self.write(f"masks/deep/{i}.png", png(mask, PALETTE, (0, 0, 0, 255, 0, 0)) if i else png(mask, GREY))
        data = {"type": "folder", "train": {"images": "images", "masks": "masks"}, "classes": ["ground", "sky"], "test": 0.3}
        self.config(data, {"resize": [8, 8], "flip": True})
        sheet = self.folder / "sheet.png"
        train, test = self.data("--sheet", sheet)
        self.assertEqual((train["target"], train["examples"], test["examples"]), ("mask", 4, 2))
        self.assertEqual(train["classes"], [{"name": "ground", "count": 240}, {"name": "sky", "count": 240}])
        self.assertTrue(sheet.read_bytes().startswith(b"\x89PNG"))
        for name, content, words in (("0.png", png(np.zeros((12, 10, 3), np.uint8)), "colours"), ("1.png", JPEG, "JPEG"),
                                     ("2.png", png(np.zeros((12, 10), np.uint16), GREY), "16 bits"),
                                     ("4.png", png(mask[1:], GREY), "its mask is 10 x 11")):
            self.write(f"masks/deep/{name}", content)
            self.assertIn(words, " ".join(self.data()[0]["messages"] + self.data()[1]["messages"]))
        (self.folder / "masks/deep/3.png").unlink()
        self.refuse(["images/deep/3.png", "has no mask"], "data", self.folder / "train.json")

    def test_mixup_needs_targets_of_floats(self):
        self.pictures("train", 8)
        self.config(FOLDER, {"resize": [16, 16], "mixup": 0.2})
        self.refuse(["mixup", "float"], "train", self.folder / "train.json", "-d", "cpu")

    def test_too_few_examples(self):
        self.pictures("train", 2)
        self.config(FOLDER, {"resize": [16, 16]})
        self.refuse(["6 images", "a batch of 8"], "train", self.folder / "train.json", "-d", "cpu")


if __name__ == "__main__":
    main()
