#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small devices, by DLPRIM_TRAITS: constants fit allocations, and results stay as they were."""
import numpy as np
from commands import DEVICES, CommandTest, main, network, operator

RANDOM = np.random.default_rng(44)


def image(*shape):
    return RANDOM.standard_normal(shape, dtype=np.float32)


def convolution(name, source, channels_in, channels_out, kernel, **options):
    weights = {f"{name}.0": image(channels_out, channels_in // options.get("groups", 1), kernel, kernel) * 0.05,
               f"{name}.1": image(channels_out) * 0.05}
    return operator("Convolution2D", name, source, channels_out=channels_out, kernel=kernel, **options), weights


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


if __name__ == "__main__":
    main()
