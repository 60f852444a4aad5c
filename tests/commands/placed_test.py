#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Networks whose operators run on several devices: -d a=...,b=... of dlprim_run and dlprim_benchmark."""
import re

import numpy as np
from commands import DEVICES, CommandTest, main, network, operator

random = np.random.default_rng(1)
NET = network({"x": [4, 3], "label": ([4], "int")}, ["scores", "loss"],
              operator("InnerProduct", "one", "x", outputs=6, activation="tanh", device="a"),
              operator("InnerProduct", "two", "one", outputs=5, device="b"),
              operator("Elementwise", "scores", "two two"),
              operator("SoftmaxWithLoss", "loss", "scores label"))


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32)


class Placed(CommandTest):
    def setUp(self):
        super().setUp()
        self.net = self.write("net.json", NET)
        self.w = {"one.0": normal(6, 3), "one.1": normal(6), "two.0": normal(5, 6), "two.1": normal(5)}
        self.weights = self.write_tensors("w.h5", **self.w)
        self.x = normal(4, 3)
        self.inputs = self.write_tensors("in.h5", x=self.x, label=np.array([0, 1, 2, 4], np.int32))
        self.run_options = ("--weights", self.weights, "--inputs", self.inputs, "--outputs", self.folder / "out.h5")

    def test_outputs(self):
        one = np.tanh(self.x @ self.w["one.0"].T + self.w["one.1"])
        want = 2 * (one @ self.w["two.0"].T + self.w["two.1"])
        for device in DEVICES:
            for devices in (f"a={device},b=cpu", f"b=cpu,a={device}", f"a={device},b={device}"):
                with self.subTest(devices=devices):
                    self.succeed("run", self.net, "-d", devices, *self.run_options)
                    np.testing.assert_allclose(self.read_tensors("out.h5")["scores"], want, rtol=2e-5, atol=2e-5)

    def test_one_device_says_that_it_runs_all(self):
        text = self.succeed("run", self.net, "-d", "cpu", *self.run_options).err
        self.assertRegex(text, "^note: operators of the network name the devices 'a', 'b'")

    def test_benchmark(self):
        for device in DEVICES:
            for flags, moves in (([], 2), (["-b"], 4), (["-a"], 4), (["-g"], 4)):
                with self.subTest(device=device, flags=flags):
                    devices = f"a={device},b=cpu"
                    text = self.succeed("benchmark", devices, self.net, "-i3", "-w1", *flags).out
                    self.assertRegex(text, r"time a batch +\d+\.\d+ ms median")
                    same = device == "cpu"
                    self.assertIn(f" MiB in {0 if same else moves} moves", text)
                    self.assertEqual(len(re.findall("planned peak", text)), 1 if same else 2)
                    self.assertEqual(re.findall(r"part +on (\w)", text), ["a", "b", "a"])

    def test_automatic(self):
        net = self.write("auto.json", network(
            {"words": ([16], "int")}, ["scores"],
            operator("Embedding", "table", "words", num_embeddings=40000, embedding_dim=16),
            operator("InnerProduct", "hidden", "table", outputs=4096, activation="tanh"),
            operator("InnerProduct", "scores", "hidden", outputs=5)))
        table, hidden, out = normal(40000, 16), normal(4096, 16), normal(5, 4096)
        words = np.arange(16, dtype=np.int32) * 2000
        options = ("--weights", self.write_tensors("t.h5", table__0=table, hidden__0=hidden, hidden__1=normal(4096) * 0,
                                                   scores__0=out, scores__1=normal(5) * 0),
                   "--inputs", self.write_tensors("words.h5", words=words), "--outputs", self.folder / "out.h5")
        for device in DEVICES:
            with self.subTest(device=device):
                names = f"fast={device},large=cpu"
                whole = self.succeed("run", net, "-d", names, "--place", "auto", *options).err
                self.assertIn("part 1 of 1", whole)
                measured = self.succeed("run", net, "-d", names, "--place", "measured", *options).err
                self.assertRegex(measured, r"part 1 of \d runs on device '\w+': operators 'table' to ")
                if device == "cpu":
                    continue  # both names are of one device
                # The table takes 2.4 MiB, and the rest does not fit beside it on the host.
                limits = ("--device-memory", "fast=2MiB", "--device-memory", "large=2.5MiB")
                found = self.succeed("run", net, "-d", names, "--place", "auto", *limits, *options).err
                self.assertRegex(found, "part 1 of 2 runs on device 'large': operators 'table' to 'table', about "
                                        r"\d+\.\d+ ms and 2\.\d+ MiB")
                self.assertIn("part 2 of 2 runs on device 'fast': operators 'hidden' to 'scores'", found)
                np.testing.assert_allclose(self.read_tensors("out.h5")["scores"], np.tanh(table[words] @ hidden.T) @ out.T,
                                           rtol=1e-3, atol=1e-3)
                text = self.succeed("benchmark", names, net, "-i3", "-w1", "--place", "auto", *limits).out
                self.assertRegex(text, r"part +on large, 1 operators from table to table, estimated \d+\.\d+ ms, 2\.\d MiB")
                self.refuse(["'table'", "fits on no device", "device 'fast'"], "benchmark", names, net, "-a", "--place",
                            "auto", *limits)

    def test_mistakes(self):
        self.refuse(["'two'", "device 'b'", "nobody has bound", "bound is a"],
                    "run", self.net, "-d", "a=cpu", *self.run_options)
        self.refuse(["'b'", "NAME=DEVICE"], "run", self.net, "-d", "a=cpu,b", *self.run_options)
        self.refuse(["no such device"], "run", self.net, "-d", "a=no such device", *self.run_options)
        self.refuse(["--grads"], "run", self.net, "-d", "a=cpu,b=cpu", *self.run_options,
                    "--grads", self.folder / "g.h5")
        self.refuse(["several devices", "-b"], "benchmark", "a=cpu,b=cpu", self.net, "-t")


if __name__ == "__main__":
    main()
