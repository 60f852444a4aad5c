#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Losses that are not finite where operators run on several devices: which operator they come from, and going on."""
import os
import unittest.mock

import numpy as np
import placed_shards_test
import train_test
from commands import DEVICES, idx, main, network, operator
from shards_test import ShardRuns

NET = network({"image": [16, 1, 8, 8], "label": ([16], "int")}, ["prob", "loss"],
              operator("Activation", "logarithm", "image", activation="log"),
              operator("BatchNorm", "bn", "logarithm"),
              operator("Dropout", "drop", "bn", p=0.1),
              operator("InnerProduct", "fc", "drop", outputs=4),
              operator("Softmax", "prob", "fc"), operator("SoftmaxWithLoss", "loss", "fc label"))


class PlacedNan(ShardRuns):
    """One picture makes the loss infinite; the running statistics of the first part have seen it by then."""
    assert_same_run = placed_shards_test.PlacedShards.assert_same_run

    def setUp(self):
        super().setUp()
        self.write("net.json", placed_shards_test.placed(NET, {"drop": "b", "fc": "b"}))
        pictures, _ = train_test.images(128, 1)
        pictures = np.maximum(pictures, 1)
        pictures[77] = 0
        self.write("train-images", idx(pictures))
        self.how = {"data": {"type": "idx", "train": {"images": "train-images", "labels": "train-labels"}},
                    "solver": {"type": "sgd", "momentum": 0.9, "learning_rate": 0.01}}

    def assert_going_on(self, one, two, **more):
        how = self.how | {"on_nan": "continue"} | more
        self.train("one", "-d", one, **how)
        self.train("two", "-d", two, **how)
        self.assert_same_run("one", "two")
        for name, values in self.read_tensors("two/model.h5").items():
            self.assertTrue(np.isfinite(values).all(), name)

    def test_going_on_as_on_one_device(self):
        for device in DEVICES:
            for shards in (1, 4):
                with self.subTest(device=device, shards=shards):
                    self.assert_going_on(device, f"a={device},b={device}", shards=shards)

    def test_going_on_with_batches_that_are_accumulated(self):
        solver = {"type": "adam", "learning_rate": 0.01, "accumulate": 2, "clip_norm": 1}
        for device in DEVICES:
            self.assert_going_on(device, f"a={device},b={device}", solver=solver)

    def test_going_on_on_two_devices(self):
        with unittest.mock.patch.dict(os.environ, POCL_DEVICES="pthread pthread"):
            ids = placed_shards_test.pocl_devices()
            if not ids:
                self.skipTest("PoCL shows no two devices")
            for shards in (1, 4):
                with self.subTest(shards=shards):
                    self.assert_going_on(ids[0], f"a={ids[0]},b={ids[1]}", shards=shards)

    def test_the_operator_that_it_comes_from(self):
        out = ("--out", self.folder / "out", "--replace")
        for device in DEVICES:
            for devices in (f"a={device},b=cpu", f"b={device},a=cpu", f"a={device},b={device}"):
                for shards in (1, 4):
                    with self.subTest(devices=devices, shards=shards):
                        self.refuse(["the loss is", "in epoch 1, batch ", "not finite is 'logarithm'", "on_nan"], "train",
                                    self.config(shards=shards, **self.how), "-d", devices, *out)

    def test_an_operator_of_a_later_part(self):
        good = self.how | {"data": {"type": "idx", "train": {"images": "good-images", "labels": "train-labels"}}}
        pictures, _ = train_test.images(128, 1)
        self.write("good-images", idx(np.maximum(pictures, 1)))
        self.train("good", "-d", "cpu", "--epochs", 1, **good)
        weights = self.read_tensors("good/model.h5")
        weights["fc.1"][0] = np.nan
        self.write_tensors("bad.h5", **weights)
        for device in DEVICES:
            for shards in (1, 2):
                self.refuse(["the loss is nan in epoch 1, batch 1;", "not finite is 'fc'"], "train",
                            self.config(weights="bad.h5", shards=shards, **good), "-d", f"a={device},b=cpu",
                            "--out", self.folder / "out", "--replace")
        self.refuse(["epoch 1", "no batch with a finite loss"], "train",
                    self.config(weights="bad.h5", on_nan="continue", **good), "-d", "a=cpu,b=cpu", "--out",
                    self.folder / "out", "--replace")


if __name__ == "__main__":
    main()
