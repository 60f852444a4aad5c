#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Losses that are not finite where operators run on several devices: which operator they come from, and going on."""
import numpy as np
from commands import DEVICES, idx, main, operator
from placed_shards_test import PARTS, PlacedRuns, placed
from training_runs import TRAIN_SET, classifier, quarters

NET = classifier([16, 1, 8, 8], 4,
                 operator("Activation", "logarithm", "image", activation="log"),
                 operator("BatchNorm", "bn", "logarithm"),
                 operator("Dropout", "drop", "bn", p=0.1))


class PlacedNan(PlacedRuns):
    """One picture makes the loss infinite; the running statistics of the first part have seen it by then."""

    def setUp(self):
        super().setUp()
        self.write("net.json", placed(NET, PARTS))
        self.how = {"data": self.write_set_with_a_dark_picture(),
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
        ids = self.pocl_devices()
        for shards in (1, 4):
            with self.subTest(shards=shards):
                self.assert_going_on(ids[0], f"a={ids[0]},b={ids[1]}", shards=shards)

    def test_the_operator_that_it_comes_from(self):
        for device in DEVICES:
            for devices in (f"a={device},b=cpu", f"b={device},a=cpu", f"a={device},b={device}"):
                for shards in (1, 4):
                    with self.subTest(devices=devices, shards=shards):
                        self.refuse_training(["the loss is", "in epoch 1, batch ", "not finite is 'logarithm'", "on_nan"],
                                             "-d", devices, "--replace", shards=shards, **self.how)

    def test_an_operator_of_a_later_part(self):
        good = self.how | {"data": {"type": "idx", "train": TRAIN_SET | {"images": "good-images"}}}
        self.write("good-images", idx(np.maximum(quarters(128, 1)[0], 1)))
        self.train("good", "-d", "cpu", "--epochs", 1, **good)
        weights = self.read_tensors("good/model.h5")
        weights["fc.1"][0] = np.nan
        self.write_tensors("bad.h5", **weights)
        for device in DEVICES:
            for shards in (1, 2):
                self.refuse_training(["the loss is nan in epoch 1, batch 1;", "not finite is 'fc'"], "-d", f"a={device},b=cpu",
                                     "--replace", weights="bad.h5", shards=shards, **good)
        self.refuse_training(["epoch 1", "no batch with a finite loss"], "-d", "a=cpu,b=cpu", "--replace", weights="bad.h5",
                             on_nan="continue", **good)


if __name__ == "__main__":
    main()
