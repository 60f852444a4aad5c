#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train --trace of operators on several devices: a process for each part, and one for each way between two."""
import json
import re
from typing import Any

import trace_test
import train_test
from commands import DEVICES, main
from placed_shards_test import PlacedRuns, placed

Event = dict[str, Any]


class PlacedTrace(PlacedRuns):
    def setUp(self) -> None:
        super().setUp()
        self.write("net.json", placed(train_test.NET, {"drop": "b"}))
        self.path = self.folder / "trace.json"

    def traced(self, devices: str, *more: Any, **how: Any) -> tuple[dict[str, list[Event]], str]:
        """The spans of a run by the names of their processes, and what the command has printed."""
        printed = self.train("run", "-d", devices, "--trace", self.path, "--trace-steps", 3, *more, **how).out
        trace = json.loads(self.path.read_text())
        self.assertEqual(trace_test.problems_of(trace), [])
        names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
        spans: dict[str, list[Event]] = {name: [] for name in names.values()}
        for event in trace["traceEvents"]:
            if event["ph"] == "X":
                spans[names[event["pid"]]].append(event)
                self.assertIn(event["args"]["step"], (3, 4, 5), "after two steps of warm-up")
        return spans, printed

    def assert_parts(self, spans: dict[str, list[Event]], shards: int) -> None:
        for number, first, last in ((1, "conv", "pool"), (2, "drop", "drop"), (3, "fc", "loss")):
            name, = (each for each in spans if each.startswith(f"part {number}, '{first}' to '{last}', on device '"))
            device = [span["name"] for span in spans[name] if span["tid"] == 1]
            self.assertEqual(device.count("forward"), 3 * shards, f"{shards} shards of three steps: {device}")
            self.assertEqual(device.count("backward"), 3 * shards)
            self.assertEqual(device.count("update"), 0 if number == 2 else 3)

    def assert_ways(self, spans: dict[str, list[Event]], shards: int) -> None:
        """Each value moves once for each shard, and its gradient back."""
        for way, names in (("moves from device 'a' to device 'b'", ("move pool", "move gradient of drop")),
                           ("moves from device 'b' to device 'a'", ("move drop", "move gradient of pool"))):
            moved = [span["name"] for span in spans[way] if span["cat"] == "move"]
            self.assertEqual({span["tid"] for span in spans[way]}, {2})
            for name in names:
                self.assertEqual(moved.count(name), 3 * shards, f"{way}: {moved}")
        kinds = {span["cat"] for of_one in spans.values() for span in of_one}
        self.assertEqual(kinds, {"compute", "move", "wait"})

    def test_two_devices(self) -> None:
        ids = self.pocl_devices()
        for shards in (1, 4):
            with self.subTest(shards=shards):
                spans, _ = self.traced(f"a={ids[0]},b={ids[1]}", shards=shards)
                self.assertEqual(len(spans), 5, "three parts and two ways")
                self.assert_parts(spans, shards)
                self.assert_ways(spans, shards)

    def test_the_host_and_another_device(self) -> None:
        for device in DEVICES[1:]:
            for shards in (1, 4):
                with self.subTest(device=device, shards=shards):
                    spans, _ = self.traced(f"a={device},b=cpu", shards=shards)
                    self.assert_parts(spans, shards)
                    self.assert_ways(spans, shards)
                    host = [span["name"] for of_one in spans.values() for span in of_one if span["tid"] == 3]
                    self.assertLessEqual({"wait for data", "wait for the loss", "upload input"}, set(host))

    def test_parts_of_one_device(self) -> None:
        """They have a queue in common: a part waits while another one computes."""
        for device in DEVICES:
            spans, _ = self.traced(f"a={device},b={device}", shards=2)
            self.assert_parts(spans, 2)
            self.assertEqual(len(spans), 3, "nothing moves")
            computes = sorted((span["ts"], span["ts"] + span["dur"]) for of_one in spans.values() for span in of_one
                              if span["tid"] == 1 and span["cat"] == "compute")
            for before, after in zip(computes, computes[1:]):
                self.assertLessEqual(before[1], after[0] + 0.01, "one device computes one thing at a time")

    def test_it_changes_no_bits(self) -> None:
        how = dict(shards=2, checkpoints={"keep": 9})
        self.train("one", "-d", "a=cpu,b=cpu", **how)
        self.train("two", "-d", "a=cpu,b=cpu", "--trace", self.path, **how)
        self.assert_same_run("one", "two")

    def test_short_runs(self) -> None:
        spans, printed = self.traced("a=cpu,b=cpu", batch=128, epochs=2)
        self.assertIn("holds no step", printed)
        self.assertEqual(re.findall("saved", printed), ["saved"])
        self.assertEqual(sum(map(len, spans.values())), 0)


if __name__ == "__main__":
    main()
