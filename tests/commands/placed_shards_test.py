#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train with "shards" and operators on several devices: the bits of one device with as many shards."""
import os
import random
import re
import signal
import subprocess
import time
import unittest.mock

import train_test
from commands import DEVICES, TOOLS, call, main
from shards_test import SYNCHRONOUS, ShardRuns

PARTS = {"drop": "b", "fc": "b"}


def placed(net, device_of):
    """The network with the devices of these operators."""
    return net | {"operators": [each | ({"device": device_of[each["name"]]} if each["name"] in device_of else {})
                                for each in net["operators"]]}


class PlacedRuns(ShardRuns):
    """Runs on several devices, of which some tests want so many of PoCL's."""
    # Checkpoints also name the engine of each launch, and a border makes others of these.
    MAY_DIFFER = frozenset({"solver/engines"})

    def pocl_devices(self, count=2):
        """The ids of so many devices of PoCL, which it shows to the commands of this test."""
        patch = unittest.mock.patch.dict(os.environ, POCL_DEVICES=" ".join(["pthread"] * count))
        patch.start()
        self.addCleanup(patch.stop)
        ids = re.findall(r"(\d+:\d+) = [^,]*\(Portable", call("flops", __file__, "-d", "no such device").err)
        if len(ids) < count:
            self.skipTest(f"PoCL shows no {count} devices")
        return ids[:count]


class PlacedShards(PlacedRuns):
    HOW = {"checkpoints": {"every_steps": 5, "keep": 9}}

    def setUp(self):
        super().setUp()
        self.write("net.json", placed(train_test.NET, PARTS))

    def assert_bits(self, one, two, shards):
        """Trains on one device and on two, and goes on in each from a checkpoint of the other."""
        how = self.HOW | {"shards": shards}
        self.train("one", "-d", one, **how)
        self.train("placed", "-d", two, **how)
        self.assert_same_run("one", "placed")
        # In the middle of the second epoch.
        self.train("third", "-d", two, "--resume", self.folder / "one/checkpoint_1_2.h5", **how)
        self.assert_same_run("one", "third")
        self.train("fourth", "-d", one, "--resume", self.folder / "placed/checkpoint_1_2.h5", **how)
        self.assert_same_run("one", "fourth")
        self.assertGreater(float(self.rows("one")[-1]["test_accuracy"]), 0.5)

    def test_parts_on_one_device(self):
        for device in DEVICES:
            for shards in (1, 4):
                with self.subTest(device=device, shards=shards):
                    self.assert_bits(device, f"a={device},b={device}", shards)

    def test_parts_on_two_devices(self):
        ids = self.pocl_devices()
        for shards in (1, 2, 8):
            with self.subTest(shards=shards):
                self.assert_bits(ids[0], f"a={ids[0]},b={ids[1]}", shards)

    def test_parts_on_three_devices(self):
        self.write("net.json", placed(train_test.NET, {"drop": "b", "fc": "c", "prob": "c", "loss": "c"}))
        ids = self.pocl_devices(3)
        self.assert_bits(ids[0], f"a={ids[0]},b={ids[1]},c={ids[2]}", 8)

    def test_the_host_and_another_device(self):
        """Engines of the two differ, so that the bits are not those of one device, but the same each time."""
        for device in DEVICES[1:]:
            for out in ("once", "twice"):
                done = self.train(out, "-d", f"a={device},b=cpu", "--place", "auto", shards=4)
                self.assertIn("test accuracy", done.out)
            self.assert_same_run("once", "twice")
            self.assertGreater(float(self.rows("once")[-1]["test_accuracy"]), 0.5)

    def test_several_cuts(self):
        """a, b, a: the first device has two parts, which take turns."""
        self.write("net.json", placed(train_test.NET, {"drop": "b"}))
        for device in DEVICES:
            self.train("one", "-d", device, shards=4)
            self.train("two", "-d", f"a={device},b={device}", shards=4)
            self.assert_same_run("one", "two")

    def test_runs_that_are_killed_go_on_anywhere(self):
        """Each on another placement than the one before, from the last checkpoint that was written."""
        pick = random.Random(1)
        ids = self.pocl_devices()
        how = {"shards": 4, "epochs": 12, "checkpoints": {"every_steps": 3, "keep": 99}}
        self.train("one", "-d", ids[0], **how)
        config = self.config(**how)
        placements = [ids[0], f"a={ids[0]},b={ids[1]}", f"b={ids[0]},a={ids[1]}", f"a={ids[1]},b={ids[1]}"]
        killed = 0
        for turn in range(8):
            process = subprocess.Popen(
                [TOOLS / "dlprim_train", config, "-d", placements[turn % 4], "--out", self.folder / "many", "--resume",
                 "latest"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert process.stdout is not None
            for _ in range(pick.randrange(3, 6)):  # a line for each device, and then of epochs
                process.stdout.readline()
            time.sleep(pick.uniform(0, 0.05))
            process.kill()
            process.communicate()
            killed += process.returncode == -signal.SIGKILL
        self.assertGreater(killed, 2)
        self.succeed("train", config, "-d", placements[1], "--out", self.folder / "many", "--resume", "latest")
        self.assert_same_run("one", "many", "checkpoint_12.h5")

    def test_errors(self):
        on_two = ("-d", "a=cpu,b=cpu")
        self.refuse_training(["shards is 3", "does not divide the batch"], *on_two, shards=3)
        self.refuse_training(["operators, and not shards", "how many shards each device has"], *on_two, "--shares", "1,1", shards=2)
        self.refuse_training(["\"states\": \"sharded\""], *on_two, shards=2, states="sharded")
        self.refuse_training(["memory_limit", "device-memory"], *on_two, "--memory-limit", "100", shards=2)
        self.train("one", "-d", "cpu", shards=2, epochs=1)
        self.refuse_training(["made with shards 2", "has shards 4"], *on_two, "--resume", self.folder / "one/checkpoint_1.h5", shards=4)
        self.write("net.json", SYNCHRONOUS)
        self.refuse_training(["BatchNorm 'norm'", "statistics of all shards", "one after the other"], *on_two, shards=2)


if __name__ == "__main__":
    main()
