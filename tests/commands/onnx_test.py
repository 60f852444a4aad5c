#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ONNX models through the commands: they run, are counted and converted, and bad ones are refused in one line."""
import struct

import h5py
import numpy as np
from commands import DEVICE, CommandTest, call, main


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A protobuf field: an integer, a text or a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor_info(name, shape):
    dims = b"".join(field(1, field(2, "N") if size is None else field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


def model():
    """y = relu(x + w), x of [N, 2]."""
    weight = field(1, 2) + field(2, 1) + field(8, "w") + field(9, struct.pack("<2f", 1, -1))
    nodes = [field(1, "x") + field(1, "w") + field(2, "s") + field(4, "Add"), field(1, "s") + field(2, "y") + field(4, "Relu")]
    graph = b"".join(field(1, node) for node in nodes) + field(5, weight) + field(11, tensor_info("x", [None, 2]))
    return field(1, 8) + field(7, graph + field(12, tensor_info("y", [None, 2]))) + field(8, field(2, 17))


class OnnxTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("model.onnx", model())
        if "reads no ONNX models" in call("flops", self.model, "-d", "cpu").err:
            self.skipTest("this build reads no ONNX models")

    def run_net(self, net, device, *more):
        with h5py.File(self.folder / "in.h5", "w") as file:
            file["x"] = np.array([[1, 2], [-3, 4], [5, -6]], np.float32)
        self.succeed("run", net, "-d", device, "--inputs", self.folder / "in.h5", "--outputs", self.folder / "out.h5", *more)
        with h5py.File(self.folder / "out.h5") as file:
            return file["y"][...].tolist()

    def test_run_at_the_size_of_the_inputs(self):
        for device in ("cpu", DEVICE):
            self.assertEqual(self.run_net(self.model, device), [[2, 1], [0, 3], [6, 0]])
        # A model that is not trusted is read in a process of its own.
        self.assertEqual(self.run_net(self.model, "cpu", "--untrusted"), [[2, 1], [0, 3], [6, 0]])
        self.succeed("benchmark", "-B", "4", "-i1", "-w1", "--untrusted", "cpu", self.model)

    def test_convert(self):
        net, weights = self.folder / "net.json", self.folder / "w.h5"
        self.succeed("convert", self.model, net, weights, "--shape", "x=3,2")
        self.assertEqual(self.run_net(net, "cpu", "--weights", weights), [[2, 1], [0, 3], [6, 0]])
        self.refuse(["same file"], "convert", self.model, net, net)
        self.refuse(["NAME=SIZE"], "convert", self.model, net, weights, "--shape", "x=3,a", code=2)

    def test_other_commands(self):
        self.succeed("flops", self.model, "-d", "cpu", "-B", "4")
        self.succeed("benchmark", "-B4", "-i1", "-w1", "cpu", self.model)

    def test_bad_models(self):
        for name, data, words in (("text", b"{}", ["JSON", "an ONNX model is expected"]), ("half", model()[:40], ["cut short"]),
                                  ("operator", model().replace(b"Relu", b"Rule"), ["[Rule 'y', opset 17]", "not supported"])):
            with self.subTest(name):
                self.refuse(words, "flops", self.write("bad.onnx", data), "-d", "cpu")


if __name__ == "__main__":
    main()
