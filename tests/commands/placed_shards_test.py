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


def pocl_devices(count=2):
    """The ids of so many devices of PoCL where POCL_DEVICES asks for them; nothing without PoCL."""
    refusal = call("flops", __file__, "-d", "no such device").err
    ids = re.findall(r"(\d+:\d+) = [^,]*\(Portable", refusal)
    return ids[:count] if len(ids) >= count else []


def placed(net, device_of):
    """The network with the devices of these operators."""
    return net | {"operators": [each | ({"device": device_of[each["name"]]} if each["name"] in device_of else {})
                                for each in net["operators"]]}


class PlacedShards(ShardRuns):
    HOW = {"checkpoints": {"every_steps": 5, "keep": 9}}

    def setUp(self):
        super().setUp()
        self.write("net.json", placed(train_test.NET, PARTS))

    def assert_same_run(self, a, b, last="checkpoint_2.h5"):
        """Checkpoints also name the engine of each launch, and a border makes others of these."""
        for name in ("model.h5", last):
            first, second = self.read_tensors(f"{a}/{name}"), self.read_tensors(f"{b}/{name}")
            self.assertEqual(sorted(first), sorted(second))
            for key in first.keys() - {"solver/engines"}:
                self.assertEqual(first[key].tobytes(), second[key].tobytes(), f"{name} {key}")
        self.assertEqual(self.rows(a), self.rows(b))

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
        with unittest.mock.patch.dict(os.environ, POCL_DEVICES="pthread pthread"):
            ids = pocl_devices()
            if not ids:
                self.skipTest("PoCL shows no two devices")
            for shards in (1, 2, 8):
                with self.subTest(shards=shards):
                    self.assert_bits(ids[0], f"a={ids[0]},b={ids[1]}", shards)

    def test_parts_on_three_devices(self):
        self.write("net.json", placed(train_test.NET, {"drop": "b", "fc": "c", "prob": "c", "loss": "c"}))
        with unittest.mock.patch.dict(os.environ, POCL_DEVICES="pthread pthread pthread"):
            ids = pocl_devices(3)
            if not ids:
                self.skipTest("PoCL shows no three devices")
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
        with unittest.mock.patch.dict(os.environ, POCL_DEVICES="pthread pthread"):
            ids = pocl_devices()
            if not ids:
                self.skipTest("PoCL shows no two devices")
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
        out = ("--out", self.folder / "no")
        self.refuse(["shards is 3", "does not divide the batch"], "train", self.config(shards=3), "-d", "a=cpu,b=cpu", *out)
        self.refuse(["operators, and not shards", "how many shards each device has"], "train", self.config(shards=2), "-d",
                    "a=cpu,b=cpu", "--shares", "1,1", *out)
        self.refuse(["\"states\": \"sharded\""], "train", self.config(shards=2, states="sharded"), "-d", "a=cpu,b=cpu", *out)
        self.refuse(["memory_limit", "device-memory"], "train", self.config(shards=2), "-d", "a=cpu,b=cpu", *out,
                    "--memory-limit", "100")
        self.train("one", "-d", "cpu", shards=2, epochs=1)
        self.refuse(["made with shards 2", "has shards 4"], "train", self.config(shards=4), "-d", "a=cpu,b=cpu", *out,
                    "--resume", self.folder / "one/checkpoint_1.h5")
        self.write("net.json", SYNCHRONOUS)
        self.refuse(["BatchNorm 'norm'", "statistics of all shards", "one after the other"], "train", self.config(shards=2),
                    "-d", "a=cpu,b=cpu", *out)


if __name__ == "__main__":
    main()
