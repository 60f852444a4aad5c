# SPDX-License-Identifier: MIT
"""Small runs of dlprim_train on the host whose reports tests look at: pictures in classes, masks, labels and numbers."""
import contextlib
import pathlib
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from commands import SECONDS, TOOLS, CommandTest, network, operator
from pictures import png
from training_runs import regression, several_labels

# Names that would end the page's script, begin a tag, or break its JSON, if they were not escaped.
HOSTILE = ["</script><script>document.title='broken'</script>", "<img src=x onerror=alert(1)>", "\"'&amp;\\u0000 <!--"]


class Runs(CommandTest):
    def train(self, out: str, *arguments: Any, **config: Any) -> pathlib.Path:
        """Trains net.json in a folder of its own, and returns the report."""
        self.succeed("train", self.config(out, **config), "-d", "cpu", "--out", self.folder / out, *arguments)
        return self.folder / out / "report.html"

    def config(self, name: str, **more: Any) -> pathlib.Path:
        content = {"net": "net.json", "batch": 8, "epochs": 3, "solver": {"learning_rate": 0.01}} | more
        if content["data"]["type"] == "folder":
            content["augmentation"] = {"resize": [12, 12]}
        return self.write(f"{name}.json", content)

    @contextlib.contextmanager
    def running(self, config: pathlib.Path, out: pathlib.Path) -> Iterator["subprocess.Popen[str]"]:
        """A run that has written its first report, and does not outlive the block."""
        process = subprocess.Popen([TOOLS / "dlprim_train", config, "-d", "cpu", "--out", out], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        try:
            until = time.monotonic() + SECONDS
            while not (out / "report.html").exists() and time.monotonic() < until:
                time.sleep(0.05)
            yield process
        finally:
            process.kill()
            process.communicate()

    def line_of(self, run: "subprocess.Popen[str]", word: str) -> str:
        """Waits for a line of a run's output that holds the word, and returns it."""
        assert run.stdout
        patience = threading.Timer(SECONDS, run.kill)
        patience.start()
        try:
            return next((line for line in run.stdout if word in line), "")
        finally:
            patience.cancel()

    def folder_of_pictures(self) -> dict[str, Any]:
        """Noise in three colours, of classes with hostile names; a net that cannot tell them apart at once."""
        numbers = np.random.default_rng(1)
        names = [f"class{i}" for i in range(3)]
        for part, count in (("train", 8), ("test", 6)):
            for i, name in enumerate(names):
                for k in range(count):
                    pixels = numbers.integers(0, 200, (12, 12, 3))
                    pixels[..., i] += 30
                    self.write(f"{part}/{name}/{k}.png", png(pixels.astype(np.uint8)))
        self.write("net.json", network({"x": [8, 3, 12, 12], "label": ([8], "int")}, ["score", "loss"],
                                       operator("Convolution2D", "conv<1>", "x", channels_out=4, kernel=3),
                                       operator("Activation", "act", "conv<1>", activation="relu"),
                                       operator("InnerProduct", "score", "act", outputs=3),
                                       operator("SoftmaxWithLoss", "loss", "score label")))
        return {"type": "folder", "train": "train", "test": "test", "classes": names}

    def hostile_classes(self) -> dict[str, Any]:
        """Pictures as arrays, whose classes have names that no folder could have."""
        numbers = np.random.default_rng(2)
        y = numbers.integers(0, 3, 48).astype(np.int32)
        x = (numbers.integers(0, 200, (48, 8, 8)) + 20 * y[:, None, None]).astype(np.uint8)
        self.write("net.json", network({"x": [8, 1, 8, 8], "label": ([8], "int")}, ["score", "loss"],
                                       operator("InnerProduct", "score", "x", outputs=3),
                                       operator("SoftmaxWithLoss", "loss", "score label")))
        return self.arrays(x=x, y=y) | {"classes": HOSTILE}

    def masks(self) -> dict[str, Any]:
        x = np.random.default_rng(1).integers(0, 256, (24, 10, 12)).astype(np.uint8)
        self.write("net.json", network({"x": [8, 1, 10, 12], "y": ([8, 10, 12], "int")}, ["scores", "loss"],
                                       operator("Convolution2D", "scores", "x", channels_out=2, kernel=1),
                                       operator("Softmax", "log", "scores", log=True),
                                       operator("NLLLoss", "mean", "log y"), operator("Reshape", "loss", "mean", dims=[1])))
        return self.arrays(x=x, y=(x > 100).astype(np.int32))

    def numbers(self) -> dict[str, Any]:
        x = np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)
        self.write("net.json", regression(8, 2))
        return self.arrays(x=x, y=x[:, :2] * 3)

    def labels(self) -> dict[str, Any]:
        x = np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)
        self.write("net.json", several_labels(8, 3))
        return self.arrays(x=x, y=(x[:, :3] > 0).astype(np.float32)) | {"classes": HOSTILE}
