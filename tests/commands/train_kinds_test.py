#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train beyond the classification of pictures: regression, several labels, segmentation, their metrics, averages
of the weights, fine-tuning from another network's weights, files for TensorBoard, and the bar on a terminal."""
import contextlib
import fcntl
import math
import os
import pathlib
import pty
import re
import struct
import subprocess
import termios
import zlib
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
from commands import DEVICES, TOOLS, Result, main, network, operator
from numpy.typing import NDArray
from pictures import BLUE, GREY, RED, png
from training_runs import Training, regression, several_labels

Array = NDArray[Any]


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message in protobuf's encoding."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            size, kind = (8, "<d") if key & 7 == 1 else (4, "<f")
            yield key >> 3, struct.unpack(kind, data[at:at + size])[0]
            at += size


def read_events(path: pathlib.Path) -> list[dict[int, Any]]:
    """The events of a file, whose checksums are right; summaries as dicts."""
    data, events = path.read_bytes(), []
    while data:
        length, crc = struct.unpack("<QI", data[:12])
        assert crc == masked(data[:8])
        record = data[12:12 + length]
        assert struct.unpack("<I", data[12 + length:16 + length])[0] == masked(record)
        event = dict(fields(record))
        if 5 in event:
            event[5] = {found[1].decode(): found[2] for found in (dict(fields(value)) for _, value in fields(event[5]))}
        events.append(event)
        data = data[16 + length:]
    return events


class Kinds(Training):
    CONFIG = {"net": "net.json", "batch": 16, "epochs": 4, "solver": {"learning_rate": 0.02}}

    def run_of(self, out: str, *arguments: Any, **more: Any) -> Result:
        """A run in a folder of its own, on the host unless arguments name a device. It replaces nothing."""
        device = () if "-d" in arguments else ("-d", "cpu")
        return self.succeed("train", self.config(**more), "--out", self.folder / out, *device, *arguments)

    def metrics(self, out: str) -> list[dict[str, float]]:
        return [{key: float(value) for key, value in row.items()} for row in self.rows(out)]

    def numbers(self) -> tuple[Array, Array]:
        x = np.random.default_rng(1).normal(size=(96, 6)).astype(np.float32)
        return x, x @ np.random.default_rng(2).normal(size=(6, 3)).astype(np.float32)

    def regression(self) -> dict[str, Any]:
        x, y = self.numbers()
        self.write("net.json", regression(16, 3))
        return self.arrays(x=x, y=y)

    def outputs(self, out: str, **inputs: Array) -> dict[str, Any]:
        return dict(self.outputs_of(self.folder / "net.json", "cpu", weights=self.folder / out / "model.h5", inputs=inputs))

    def test_regression(self) -> None:
        data = self.regression()
        for device in DEVICES:
            self.run_of(device, "-d", device, data=data, epochs=30)
            rows = self.metrics(device)
            self.assertEqual(list(rows[0]), ["epoch", "learning_rate", "train_loss", "train_mean_absolute_error", "test_loss",
                                             "test_mean_absolute_error"])
            self.assertLess(rows[-1]["test_loss"], 0.5 * rows[0]["test_loss"])
            x, y = self.numbers()
            found = self.outputs(device, x=x[:16], y=y[:16])["found"]
            self.assertLess(abs(np.abs(found - y[:16]).mean() - rows[-1]["test_mean_absolute_error"]), 0.3)

    def test_several_labels(self) -> None:
        x, y = self.numbers()
        yes = (y > 0).astype(np.float32)
        self.write("net.json", several_labels(96, 3))
        self.run_of("out", data=self.arrays(x=x, y=yes), epochs=60, batch=32, metrics=["f1"], solver={"learning_rate": 0.1})
        row = self.metrics("out")[-1]
        self.assertGreater(row["test_f1"], 0.9)
        said = self.outputs("out", x=x, y=yes)["found"] > 0.5
        f1 = np.mean([2 * (said[:, c] & (yes[:, c] > 0)).sum() / (said[:, c].sum() + yes[:, c].sum()) for c in range(3)])
        self.assertAlmostEqual(float(f1), row["test_f1"], places=6)

    def test_segmentation(self) -> None:
        """A bright pixel is of class 1, a dark one of class 0, and class 2 does not occur."""
        x = np.random.default_rng(1).integers(0, 256, (48, 4, 5)).astype(np.uint8)
        y = (x > 100).astype(np.int32)
        self.write("net.json", network({"x": [16, 1, 4, 5], "y": ([16, 4, 5], "int")}, ["scores", "loss"],
                                       operator("Convolution2D", "scores", "x", channels_out=3, kernel=1),
                                       operator("SoftmaxWithLoss", "loss", "scores y")))
        for device in DEVICES:
            self.run_of(device, "-d", device, data=self.arrays(x=x, y=y), epochs=40, solver={"learning_rate": 0.1})
            row = self.metrics(device)[-1]
            self.assertGreater(row["test_accuracy"], 0.85)
            found = self.outputs(device, x=(x[:16, None] / 255).astype(np.float32), y=y[:16])["scores"].argmax(axis=1)
            self.assertGreater((found == y[:16]).mean(), 0.8)
            self.assertLess(row["test_mean_iou"], row["test_accuracy"])

    def test_segmentation_of_pictures(self) -> None:
        """Red squares on blue ground, with masks as annotators draw them: a border of class 255, which does not count."""
        shapes = np.random.default_rng(1)
        masks = []
        for i in range(24):
            left, top = shapes.integers(2, 6, 2)
            mask: Array = np.zeros((16, 16), np.uint8)
            mask[top - 1:top + 8, left - 1:left + 8] = 255
            mask[top:top + 7, left:left + 7] = 1
            colours = np.where((mask == 1)[..., None], RED, BLUE) + shapes.integers(-25, 25, (16, 16, 3))
            colours[mask == 255] = shapes.integers(0, 256, (int((mask == 255).sum()), 3))
            part = "train" if i < 16 else "test"
            self.write(f"{part}/images/{i}.png", png(np.clip(colours, 0, 255).astype(np.uint8)))
            self.write(f"{part}/masks/{i}.png", png(mask, GREY))
            masks.append(mask)

        def write_net(**options: Any) -> None:
            self.write("net.json", network({"x": [8, 3, 16, 16], "y": ([8, 16, 16], "int")}, ["scores", "loss"],
                                           operator("Convolution2D", "body", "x", channels_out=8, kernel=3, pad=1, activation="relu"),
                                           operator("Convolution2D", "scores", "body", channels_out=2, kernel=1),
                                           operator("SoftmaxWithLoss", "loss", "scores y", **options)))

        data = {"type": "folder", "std": 0.5, "mean": 0.5,
                **{part: {"images": f"{part}/images", "masks": f"{part}/masks"} for part in ("train", "test")}}
        how: dict[str, Any] = dict(data=data, batch=8, epochs=12, metrics=["mean_iou", "accuracy"],
                                   augmentation={"resize": [16, 16], "flip": True})
        for device in DEVICES:
            write_net(ignore_index=255)
            self.run_of(device, "-d", device, **how)
            row = self.metrics(device)[-1]
            self.assertGreater(row["test_mean_iou"], 0.9)
            self.assertGreater(row["test_accuracy"], row["test_mean_iou"])
            # The same by hand: the network's outputs for the test set, without the border.
            pictures = [self.read_png(f"test/images/{i}.png") for i in range(16, 24)]
            x = ((np.stack(pictures) / 255 - 0.5) / 0.5).astype(np.float32).transpose(0, 3, 1, 2)
            y = np.stack(masks[16:]).astype(np.int32)
            found = self.outputs(device, x=x, y=y)
            best, counts = found["scores"].argmax(axis=1), y != 255
            self.assertAlmostEqual(float((best == y)[counts].mean()), row["test_accuracy"], places=5)
            iou = [((best == c) & (y == c) & counts).sum() / (((best == c) | (y == c)) & counts).sum() for c in (0, 1)]
            self.assertAlmostEqual(float(np.mean(iou)), row["test_mean_iou"], places=5)
            logits = found["scores"].astype(np.float64)
            each = np.log(np.exp(logits).sum(axis=1)) - np.take_along_axis(logits, np.where(counts, y, 0)[:, None], 1)[:, 0]
            self.assertAlmostEqual(float(each[counts].mean()), row["test_loss"], places=4)
        write_net()
        self.refuse_training([".png", "holds class 255", "2 classes", "ignore_index"], "-d", "cpu", **how)

    def read_png(self, name: str) -> Array:
        """The colours of a file of pictures.png()."""
        data, rows = (self.folder / name).read_bytes(), b""
        at = 8
        while at < len(data):
            size, kind = struct.unpack(">I4s", data[at:at + 8])
            rows += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
            at += 12 + size
        return np.frombuffer(zlib.decompress(rows), np.uint8).reshape(16, -1)[:, 1:].reshape(16, 16, 3)

    def test_top_k(self) -> None:
        x, y = self.numbers()
        self.write("net.json", network({"x": [16, 6], "y": ([16], "int")}, ["scores", "loss"],
                                       operator("InnerProduct", "scores", "x", outputs=3),
                                       operator("SoftmaxWithLoss", "loss", "scores y")))
        data = self.arrays(x=x, y=y.argmax(axis=1).astype(np.int32))
        self.run_of("out", data=data, metrics=["accuracy", "top2", "top3"], judge_by="top2")
        for row in self.metrics("out"):
            self.assertEqual(row["test_top3"], 1)
            self.assertLessEqual(row["test_accuracy"], row["test_top2"])
        self.refuse_training(["top2", "judges", "classes"], "-d", "cpu", data=self.regression(), metrics=["top2"])

    def test_averages_of_the_weights(self) -> None:
        """Of the parameters after each update, by the documented rule; the model and the test are of them."""
        data = self.regression()
        keep = 0.5
        for device in DEVICES:
            for solver in ({"type": "sgd", "learning_rate": 0.05}, {"type": "adam", "learning_rate": 0.05}):
                out = f"{device}-{solver['type']}"
                self.run_of(out, "-d", device, data=data, epochs=2, solver=solver | {"average": keep},
                            checkpoints={"every_steps": 1, "keep": 99})
                self.run_of(out + "-plain", "-d", device, data=data, epochs=2, solver=solver)
                average: Array = np.zeros(0)
                steps = [(epoch, batch) for epoch in range(2) for batch in range(1, 7)]
                for step, (epoch, batch) in enumerate(steps):
                    name = f"checkpoint_{epoch}_{batch}.h5" if batch < 6 else f"checkpoint_{epoch + 1}.h5"
                    weight = self.read_tensors(f"{out}/{name}")["found.0"].astype(np.float64)
                    share = 1 if step == 0 else 1 - min(keep, (1 + step) / (10 + step))
                    average = weight if step == 0 else average + share * (weight - average)
                np.testing.assert_allclose(self.read_tensors(f"{out}/model.h5")["found.0"], average, rtol=1e-5, atol=1e-6)
                plain = self.read_tensors(f"{out}-plain/model.h5")["found.0"]
                self.assertEqual(plain.tobytes(), self.read_tensors(f"{out}/checkpoint_2.h5")["found.0"].tobytes(),
                                 "averages leave the training as it is")
                self.assertNotEqual(self.metrics(out)[-1]["test_loss"], self.metrics(out + "-plain")[-1]["test_loss"])
                self.assertEqual(self.metrics(out)[-1]["train_loss"], self.metrics(out + "-plain")[-1]["train_loss"])

    def test_averages_go_on(self) -> None:
        how: dict[str, Any] = dict(data=self.regression(), solver={"average": 0.9}, checkpoints={"every_steps": 1, "keep": 99})
        self.run_of("whole", **how)
        self.run_of("rest", "--resume", self.folder / "whole/checkpoint_1_3.h5", **how)
        for name in ("model.h5", "checkpoint_4.h5"):
            whole, rest = self.read_tensors(f"whole/{name}"), self.read_tensors(f"rest/{name}")
            self.assertEqual({key: value.tobytes() for key, value in whole.items()},
                             {key: value.tobytes() for key, value in rest.items()})
        self.refuse_training(["@average", "solver.average 0.9 instead of 0"], "-d", "cpu", "--resume", self.plain_checkpoint(),
                             **how)

    def plain_checkpoint(self) -> pathlib.Path:
        self.run_of("plain", data=self.regression(), epochs=1)
        return self.folder / "plain/checkpoint_1.h5"

    def two_layers(self, outputs: int, prefix: str = "") -> None:
        self.write("net.json", network({"x": [16, 6], "y": [16, 3]}, ["found", "loss"],
                                       operator("InnerProduct", prefix + "body", "x", outputs=5, activation="tanh"),
                                       operator("InnerProduct", prefix + "head", prefix + "body", outputs=outputs),
                                       operator("InnerProduct", "found", prefix + "head", outputs=3),
                                       operator("MSELoss", "loss", "found y")))

    def test_fine_tuning(self) -> None:
        data = self.regression()
        self.two_layers(4)
        self.run_of("first", data=data)
        first = self.read_tensors("first/model.h5")
        self.two_layers(7, "net.")
        initial = {"weights": "first/model.h5", "rename": {"body": "net.body", "head": "net.head"}, "exclude": ["*.1"],
                   "freeze": ["net.b*"]}
        out = self.run_of("second", data=data, epochs=1, initial=initial).out
        self.assertRegex(out, r"(?m)^note: '.*first/model.h5' gives 1 of 6 parameters; of another shape: "
                              r"found.0 \(\[3, 4\], not \[3, 7\]\), net.head.0 \(.*\); excluded: found.1, net.body.1, net.head.1$")
        self.assertRegex(out, r"(?m)^note: not trained: net.body.0, net.body.1$")
        second = self.read_tensors("second/model.h5")
        self.assertEqual(second["net.body.0"].tobytes(), first["body.0"].tobytes())

    def test_running_statistics_count_as_trained_unless_they_are_frozen(self) -> None:
        data = self.regression()
        self.write("net.json", network({"x": [16, 6], "y": [16, 3]}, ["found", "loss"],
                                       operator("InnerProduct", "body", "x", outputs=5), operator("BatchNorm", "bn", "body"),
                                       operator("InnerProduct", "found", "bn", outputs=3),
                                       operator("MSELoss", "loss", "found y")))
        for freeze, names in ((["body"], "body.0, body.1"), (["b*"], "body.0, body.1, bn.0, bn.1, bn.2, bn.3")):
            how = {"data": data, "epochs": 1, "initial": {"freeze": freeze}}
            out = self.run_of("frozen", "--replace", **how).out
            self.assertRegex(out, rf"(?m)^note: not trained: {names}$")

    def test_weights_that_do_not_fit(self) -> None:
        data = self.regression()
        self.two_layers(4)
        self.run_of("first", data=data, epochs=1)
        self.two_layers(4, "other_")
        self.refuse_training(["has no parameters other_body.0, other_body.1, other_head.0, other_head.1",
                              "does not have the file's body.0, body.1, head.0, head.1", "initial"], "-d", "cpu", data=data,
                             weights="first/model.h5")
        self.refuse_training(["gives 0 of 6", "nothing"], "-d", "cpu", data=data,
                             initial={"weights": "first/model.h5", "include": ["none*"]})
        self.refuse_training(["freeze", "'oter_body'", "did you mean 'other_body'"], "-d", "cpu", data=data,
                             initial={"freeze": ["oter_body"]})
        tensors = self.read_tensors("first/model.h5")
        self.two_layers(4)
        self.write_tensors("more.h5", extra=np.zeros(3, np.float32), **tensors)
        said = self.run_of("more", data=data, epochs=1, weights="more.h5").err
        self.assertRegex(said, r"(?m)^dlprim_train: warning: '.*more.h5' holds what the network does not have: extra$")
        self.refuse_training(["initial", "include"], "-d", "cpu", data=data, initial={"includ": []})

    def test_files_for_tensorboard(self) -> None:
        data = self.regression()
        self.run_of("out", data=data, epochs=2)
        self.run_of("out", "--resume", "latest", data=data, epochs=4)
        first, second = sorted((self.folder / "out").glob("events.out.tfevents.*"), key=lambda path: path.stat().st_mtime_ns)
        told, later = read_events(first), read_events(second)
        self.assertEqual([event.get(3) for event in told], [b"brain.Event:2", None, None])
        self.assertEqual([event[2] for event in told], [0, 6, 12])
        self.assertEqual([event[2] for event in later], [12, 12, 18, 24])
        self.assertEqual(dict(fields(later[1][7])), {1: 1}, "a session that starts: what it repeats is dropped")
        for event, row in zip(told[1:] + later[2:], self.metrics("out")):
            self.assertEqual({"loss/train", "loss/test", "learning_rate", "mean_absolute_error/train",
                              "mean_absolute_error/test"}, set(event[5]))
            self.assertTrue(math.isclose(event[5]["loss/test"], row["test_loss"], rel_tol=1e-6))
            self.assertGreater(event[1], 1.6e9)
        self.run_of("none", data=data, epochs=1, tensorboard=False)
        self.assertEqual(list((self.folder / "none").glob("events*")), [])

    def test_tensorboard_reads_them(self) -> None:
        try:
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        except ImportError:
            self.skipTest("no tensorboard")
        self.run_of("out", data=self.regression(), epochs=3)
        found = EventAccumulator(str(self.folder / "out"))
        found.Reload()
        self.assertEqual([event.step for event in found.Scalars("loss/train")], [6, 12, 18])

    def test_the_bar_fits_the_terminal(self) -> None:
        data = self.regression()
        for columns in (20, 40, 79, 200):
            terminal, screen = pty.openpty()
            fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            process = subprocess.Popen([TOOLS / "dlprim_train", self.config(data=data, epochs=60000), "--out",
                                        self.folder / f"out{columns}", "-d", "cpu"], stdout=screen, stderr=screen,
                                       stdin=subprocess.DEVNULL)
            os.close(screen)
            text = b""
            with contextlib.suppress(OSError):  # how reading a terminal ends
                while len(re.findall(rb"/60000: b", text)) < 3:
                    text += os.read(terminal, 65536)
            process.kill()
            process.wait()
            os.close(terminal)
            bars = re.findall(r"\r\x1b\[K(epoch \d+/60000: b[^\r\n]*)", text.decode())
            self.assertGreaterEqual(len(bars), 2)
            for bar in bars[:-1]:
                self.assertLess(len(bar), columns)
            if columns == 200:
                self.assertRegex(bars[0], r"^epoch \d+/60000: batch \d/6 \[=* *\]  loss [\d.]+  mean absolute error [\d.]+")

    def test_a_checkpoint_has_what_it_needs(self) -> None:
        self.run_of("out", data=self.regression(), checkpoints={"every_steps": 1, "keep": 99})
        with h5py.File(self.folder / "out/checkpoint_1_2.h5") as file:
            self.assertEqual(file["run/columns"][()].tobytes().decode().split(",")[0], "epoch")
            self.assertEqual(file["run/history"].shape[0], 1)
            self.assertIn(b"batch 16\n", file["run/settings"][()].tobytes())
            self.assertEqual(file["run/sums_mean_absolute_error"][1], 2 * 16 * 3)


if __name__ == "__main__":
    main()
