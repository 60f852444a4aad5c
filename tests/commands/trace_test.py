#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_train --trace: what devices compute, move and wait for, as a file that Chrome and Perfetto open."""
import json
import pathlib
import signal
import subprocess
import unittest
from typing import Any

from commands import DEVICES, TOOLS, main
from shards_test import ShardRuns

Event = dict[str, Any]
ROWS = {1: "device", 2: "exchange", 3: "host thread"}


def problems_of(trace: dict[str, Any]) -> list[str]:
    """What is wrong with a trace, as sentences: fields, categories, rows without a name, spans of a row that overlap."""
    wrong = []
    events: list[Event] = trace["traceEvents"]
    named = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    rows: dict[tuple[int, int], list[Event]] = {}
    for event in events:
        if event["ph"] == "M":
            continue
        if event["ph"] != "X" or event["cat"] not in ("compute", "move", "wait") or event["dur"] < 0:
            wrong.append(f"no span of a known kind: {event}")
        if event["args"]["step"] < 1:
            wrong.append(f"of no step: {event}")
        rows.setdefault((event["pid"], event["tid"]), []).append(event)
    for row, spans in rows.items():
        if named.get(row) != ROWS.get(row[1]):
            wrong.append(f"row {row} is called {named.get(row)}")
        for before, after in zip(spans, spans[1:]):
            # Times are in microseconds, written with fewer digits than nanoseconds need.
            if before["ts"] + before["dur"] > after["ts"] + 0.01:
                wrong.append(f"in {row}, {before} overlaps {after}")
    return wrong


def spans_of(test: unittest.TestCase, path: pathlib.Path) -> list[Event]:
    """The spans of a trace, with which nothing is wrong."""
    trace = json.loads(path.read_text())
    test.assertEqual(problems_of(trace), [])
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


class Trace(ShardRuns):
    def setUp(self) -> None:
        super().setUp()
        self.path = self.folder / "trace.json"

    def spans(self, name: str = "trace.json") -> list[Event]:
        return spans_of(self, self.folder / name)

    def test_the_check_can_fail(self) -> None:
        def span(begin: float, kind: str = "move") -> Event:
            return {"ph": "X", "name": "a", "cat": kind, "ts": begin, "dur": 2, "pid": 0, "tid": 1, "args": {"step": 1}}
        row = {"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": "device"}}
        self.assertEqual(problems_of({"traceEvents": [row, span(1), span(3)]}), [])
        for bad in ([span(1)], [row, span(1), span(2)], [row, span(1, "rest")]):
            self.assertEqual(len(problems_of({"traceEvents": bad})), 1)

    def test_two_devices(self) -> None:
        for device in DEVICES:
            self.train("run", "-d", f"{device},{device}", "--trace", self.path, "--trace-steps", 3, shards=4)
            spans = self.spans()
            self.assertEqual({event["args"]["step"] for event in spans}, {3, 4, 5}, "after two steps of warm-up")
            self.assertEqual({event["cat"] for event in spans}, {"compute", "move", "wait"})
            for rank in (0, 1):
                names = [event["name"] for event in spans if (event["pid"], event["tid"]) == (rank, 1)]
                for name, times in (("forward", 6), ("backward", 6), ("update", 3)):
                    self.assertEqual(names.count(name), times, f"two shards of three steps: {names}")
                moved = {event["name"] for event in spans if event["pid"] == rank and event["cat"] == "move"}
                self.assertLessEqual({"send sums", "add all", "upload input"}, moved)
                parts = {event["args"].get("part") for event in spans if event["name"] == "send sums"}
                self.assertLessEqual({0, 1}, parts, "losses and statistics, then gradients")
            waits = {event["name"] for event in spans if event["cat"] == "wait"}
            self.assertLessEqual({"wait for data", "wait for the sums of others"}, waits)

    def test_it_changes_no_bits(self) -> None:
        how = dict(shards=2, checkpoints={"keep": 9})
        self.train("one", "-d", "cpu,cpu", **how)
        self.train("two", "-d", "cpu,cpu", "--trace", self.path, **how)
        self.assert_same_run("one", "two")

    def test_one_device(self) -> None:
        self.train("run", "-d", "cpu", "--trace", self.path)
        spans = self.spans()
        self.assertEqual({event["args"]["step"] for event in spans}, {3, 4, 5, 6, 7})
        self.assertEqual({event["tid"] for event in spans}, {1, 3}, "there is no exchange")

    def test_the_end_of_an_epoch_is_no_wait(self) -> None:
        """Epochs of two steps, behind each of which the test set is judged."""
        self.train("run", "-d", "cpu", "--trace", self.path, batch=64)
        device = [event for event in self.spans() if event["tid"] == 1]
        self.assertEqual({event["args"]["step"] for event in device}, {3, 4})
        first = next(event for event in device if event["args"]["step"] == 3)
        self.assertEqual(first["name"], "forward", "what came before is no part of a step")

    def test_the_state_in_parts(self) -> None:
        self.train("run", "-d", "cpu,cpu", "--trace", self.path, shards=2, states="sharded")
        self.assertIn("share parameters", {event["name"] for event in self.spans()})

    def test_a_short_run(self) -> None:
        result = self.train("run", "-d", "cpu", "--trace", self.path, batch=128, epochs=2)
        self.assertIn("holds no step", result.out)
        self.assertEqual(self.spans(), [])
        result = self.train("run", "-d", "cpu", "--trace", self.path, batch=128, epochs=3)
        self.assertEqual({event["args"]["step"] for event in self.spans()}, {3}, "the run ends before the trace does")

    def test_an_interrupted_run(self) -> None:
        config = self.config(epochs=1000, checkpoints={"every_epochs": 1000})
        process = subprocess.Popen(
            [TOOLS / "dlprim_train", config, "-d", "cpu", "--out", self.folder / "run", "--trace", self.path,
             "--trace-steps", "100"], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            if "epoch 2" in line:
                break
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertGreater(len(self.spans()), 10)
        self.assertEqual([path.name for path in self.folder.iterdir() if "trace" in path.name], ["trace.json"])

    def test_a_run_that_fails(self) -> None:
        self.refuse_training(["the loss is"], "-d", "cpu", "--trace", self.path, out="run",
                             solver={"type": "sgd", "learning_rate": 1e30})
        self.spans()

    def test_what_cannot_be_written(self) -> None:
        self.write("file", "text")
        (self.folder / "folder").mkdir()
        for path in ("none/trace.json", "file/trace.json", "folder"):
            self.refuse_training(["cannot", path], "-d", "cpu", "--trace", self.folder / path, out="run")
        for steps in ("0", "many", "100000"):
            self.refuse(["--trace-steps"], "train", self.config(), "--trace", self.path, "--trace-steps", steps, code=2)
        self.assertEqual([path.name for path in (self.folder / "run").glob("checkpoint*")], [])


if __name__ == "__main__":
    main()
