#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small and slow devices, by DLPRIM_TRAITS: launches are split, constants fit allocations, and results stay as they were."""
import json
import unittest

import numpy as np
from commands import DEVICE, DEVICES, CommandTest, main, network, operator

RANDOM = np.random.default_rng(44)


def image(*shape):
    return RANDOM.standard_normal(shape, dtype=np.float32)


def convolution(name, source, channels_in, channels_out, kernel, **options):
    weights = {f"{name}.0": image(channels_out, channels_in // options.get("groups", 1), kernel, kernel) * 0.05,
               f"{name}.1": image(channels_out) * 0.05}
    return operator("Convolution2D", name, source, channels_out=channels_out, kernel=kernel, **options), weights


class Watchdog(CommandTest):
    def net(self):
        """Convolutions of several kinds, pooling, a product and a norm, of which reference engines take milliseconds."""
        first, weights = convolution("first", "x", 8, 32, 3, pad=1, activation="relu")
        wise, more = convolution("wise", "first", 32, 32, 3, pad=1, groups=32)
        point, last = convolution("point", "wise", 32, 48, 1)
        weights |= more | last | {"fc.0": image(10, 48 * 14 * 14) * 0.01, "fc.1": image(10)}
        return network({"x": [2, 8, 28, 28]}, ["y"], first, wise, point, operator("Pooling2D", "pool", "point", kernel=2, stride=2),
                       operator("InnerProduct", "fc", "pool", outputs=10), operator("Softmax", "soft", "fc", "y")), weights

    @unittest.skipUnless(DEVICE in DEVICES[1:], "no OpenCL device")
    def test_split_launches_have_the_same_bits(self):
        net, weights = self.net()
        inputs = {"x": image(2, 8, 28, 28)}
        path = self.write("net.json", net)
        # The reference engines are slow by their estimate, so that they are split.
        for engines in [], ["--engine", "Convolution2D=conv2d.reference"]:
            found, launches = [], []
            for traits in {}, {"DLPRIM_TRAITS": "launch_ms=1"}:
                found.append(self.outputs_of(net, DEVICE, *engines, weights=weights, inputs=inputs, **traits)["y"])
                report = self.folder / "report.json"
                self.succeed("benchmark", DEVICE, path, "-i", "1", "-w", "1", *engines, "--json", report, **traits)
                launches.append(json.loads(report.read_text())["per_batch"]["launches"])
            np.testing.assert_array_equal(found[0].view(np.uint32), found[1].view(np.uint32))
            if engines:
                self.assertGreater(launches[1], launches[0], "the limit has split nothing")

    def test_the_limit_is_a_number_of_milliseconds(self):
        net = self.write("net.json", self.net()[0])
        self.refuse(["DLPRIM_TRAITS", "launch_ms must be at least 1"], "flops", net, "-d", "cpu", DLPRIM_TRAITS="launch_ms=0")
        self.succeed("flops", net, "-d", "cpu", DLPRIM_TRAITS="launch_ms=1")


class Allocations(CommandTest):
    def layers(self, count, channels=384):
        operators, weights = [], {}
        for i in range(count):
            one, its = convolution(f"conv{i}", f"conv{i - 1}" if i else "x", channels, channels, 1)
            operators.append(one)
            weights |= its
        return network({"x": [1, channels, 6, 6]}, [f"conv{count - 1}"], *operators), weights

    def test_constants_beyond_one_allocation_are_several(self):
        """Four layers have 2.3 MiB of packed weights, none more than 0.6."""
        net, weights = self.layers(4)
        inputs = {"x": image(1, 384, 6, 6)}
        for device in DEVICES:
            found = [self.outputs_of(net, device, weights=weights, inputs=inputs, **traits)["conv3"]
                     for traits in ({}, {"DLPRIM_TRAITS": "max_alloc_mib=1"})]
            np.testing.assert_array_equal(*found)

    def test_a_constant_beyond_one_allocation_is_named(self):
        net = self.write("net.json", self.layers(1, 768)[0])
        for device in DEVICES:
            for arguments in (["flops", net, "-d", device], ["benchmark", "-i1", "-w1", device, net]):
                self.refuse(["'conv0.0' needs 2.2 MiB in one allocation", "the device allows 1.0 MiB"], *arguments,
                            DLPRIM_TRAITS="max_alloc_mib=1")

    def test_trained_parameters_beyond_one_allocation_are_named(self):
        net = self.write("net.json", self.layers(4)[0])
        for device in DEVICES:
            self.refuse(["the block of params needs 2.3 MiB in one allocation", "the device allows 1.0 MiB"], "benchmark", "-b",
                        "-i1", "-w1", device, net, DLPRIM_TRAITS="max_alloc_mib=1")


class SharedMemory(CommandTest):
    def test_large_tensors_come_and_go_unchanged(self):
        """On devices that share the host's memory it is mapped from a few MiB on, at any offset."""
        for elements in 2 ** 20 - 3, 2 ** 20, 2 ** 21 + 5:
            net = network({"x": [elements]}, ["y"], operator("Activation", "y", "x", activation="relu"))
            x = image(elements)
            for device in DEVICES:
                y = self.outputs_of(net, device, inputs={"x": x})["y"]
                np.testing.assert_array_equal(y, np.maximum(x, 0))


if __name__ == "__main__":
    main()
