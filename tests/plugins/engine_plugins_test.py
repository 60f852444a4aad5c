#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Networks with plugins of engines: those that work are used; one with a fault is left out, and the run goes on.

engine_plugins_test.py DLPRIM_BENCHMARK FOLDER
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCHMARK, PLUGINS = sys.argv[1], pathlib.Path(sys.argv[2])

PRODUCTS = {
    "inputs": [{"name": "x", "shape": [4, 8]}, {"name": "w", "shape": [8, 3]}],
    "outputs": ["y", "z"],
    "operators": [
        {"name": "y", "type": "InnerProduct", "inputs": ["x"], "outputs": ["y"], "options": {"outputs": 5}},
        {"name": "z", "type": "MatMul", "inputs": ["x", "w"], "outputs": ["z"]},
    ],
}

CONVOLUTIONS = {
    "inputs": [{"name": "x", "shape": [2, 16, 14, 14]}],
    "outputs": ["y"],
    "operators": [
        {
            "name": "conv",
            "type": "Convolution",
            "inputs": ["x"],
            "outputs": ["c"],
            "options": {"channels_out": 32, "kernel": 3, "pad": 1, "activation": "relu"},
        },
        {"name": "pool", "type": "Pooling", "inputs": ["c"], "outputs": ["p"], "options": {"kernel": 2, "stride": 2}},
        {"name": "y", "type": "InnerProduct", "inputs": ["p"], "outputs": ["y"], "options": {"outputs": 10}},
    ],
}


def run(plugin, network, *options):
    """The exit code, the engines by node and all that was said."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "net.json"
        path.write_text(json.dumps(network), encoding="utf-8")
        environment = os.environ | {"DLPRIM_PLUGINS": str(PLUGINS / plugin), "DLPRIM_CACHE_DIR": folder}
        done = subprocess.run(
            [BENCHMARK, "cpu", str(path), "-i", "1", "-w", "1", "-t", *options],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    engines = {
        words[0]: words[2] for words in map(str.split, done.stdout.splitlines()) if len(words) > 3 and "." in words[2]
    }
    return done.returncode, engines, done.stdout + done.stderr


class Plugins(unittest.TestCase):
    def test_the_example_computes_what_it_is_asked_for(self):
        code, engines, log = run("example", PRODUCTS, "--engine", "MatMul=example.matmul")
        self.assertEqual(code, 0, log)
        self.assertEqual(engines["z"], "example.matmul")
        self.assertNotEqual(engines["y"], "example.matmul")

    def test_a_reason_is_shown_to_who_asks_for_an_engine(self):
        transposed = json.loads(json.dumps(PRODUCTS))
        transposed["inputs"][1]["shape"] = [3, 8]
        transposed["operators"][1]["options"] = {"transpose_b": True}
        code, _, log = run("example", transposed, "--engine", "z=example.matmul")
        self.assertEqual(code, 1)
        self.assertIn("it supports neither transposed matrices nor a bias", log)

    @unittest.skipUnless((PLUGINS / "onednn").is_dir(), "this build has no oneDNN")
    def test_onednn_computes_a_network(self):
        forced = [
            word
            for name in ("Convolution=conv", "Pooling=pooling", "InnerProduct=inner_product")
            for word in ("--engine", name.replace("=", "=onednn."))
        ]
        code, engines, log = run("onednn", CONVOLUTIONS, *forced)
        self.assertEqual(code, 0, log)
        self.assertEqual(engines["conv"], "onednn.conv")
        self.assertEqual(engines["pool"], "onednn.pooling")
        self.assertEqual(engines["y"], "onednn.inner_product")

    @unittest.skipUnless((PLUGINS / "onednn").is_dir(), "this build has no oneDNN")
    def test_onednn_computes_gradients(self):
        code, engines, log = run(
            "onednn", CONVOLUTIONS, "-a", "--engine", "Convolution2DBackwardFilter=onednn.conv_backward_filter"
        )
        self.assertEqual(code, 0, log)
        self.assertIn("onednn.conv_backward_filter", engines.values())


class Faults(unittest.TestCase):
    def expect(self, plugin, *said):
        code, engines, log = run("faulty_" + plugin, PRODUCTS)
        self.assertEqual(code, 0, log)
        self.assertNotEqual(engines["y"], "faulty.product")
        for text in said:
            self.assertIn(text, log)

    def test_another_version(self):
        self.expect(
            "version",
            "faulty_version.so' is left out: it is of version 99 of dlprim/engine_plugin.h",
            "compile it again",
        )

    def test_one_that_crashes_when_it_is_opened(self):
        self.expect("crash", "faulty_crash.so' is left out: a process that loads it ends by signal 11")

    def test_one_that_does_not_want_this_machine(self):
        self.expect("unwilling", "it does not work on this machine: this processor has no abacus")

    def test_an_engine_without_a_name(self):
        self.expect("nameless", "an engine of it lacks its name, operator or a function")

    def test_an_engine_whose_results_are_wrong(self):
        self.expect("wrong", "engine faulty.product is not used: it failed on this device: its results are wrong")

    def test_an_engine_that_cannot_be_built(self):
        self.expect("failing", "engine faulty.product cannot be built: the moon is full")

    def test_an_engine_with_impossible_layouts(self):
        self.expect("layout")
        code, _, log = run("faulty_layout", PRODUCTS, "--engine", "y=faulty.product")
        self.assertEqual(code, 1)
        self.assertIn("it wants [4, 8] in the layout blocked, which only values of four dimensions have", log)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
