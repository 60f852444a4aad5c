#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_benchmark: what it reports, what a batch costs after the first, and forced engines."""
import json
import os
import re

import numpy as np
from browser import data_of
from commands import DEVICE, DEVICES, CommandTest, call, main, network, operator
from training_runs import classifier, write_smallest

NET = classifier([2, 4, 8, 8], 5,
                 operator("Convolution2D", "conv", "x", channels_out=6, kernel=3, pad=1),
                 operator("BatchNorm", "bn", "conv"),
                 operator("Activation", "act", "bn", activation="relu"), data="x")
CONV, FC = 2 * (2 * 6 * 8 * 8) * (4 * 9), 2 * (2 * 5) * (6 * 8 * 8)  # 2 a multiply-add
KEYS = ["net", "device", "device_id", "platform", "driver", "batch", "precision", "mode", "ms_per_batch",
        "ms_per_batch_with_copies", "gflop", "gflops", "gbytes_per_s", "planned_peak_bytes", "first_batch_ms", "per_batch", "nodes",
        "notes"]
NODE_KEYS = ["name", "type", "engine", "device", "fused", "ms", "gflops", "bound_ms"]


class Benchmark(CommandTest):
    def setUp(self):
        super().setUp()
        self.net = self.write("net.json", NET)

    def bench(self, *arguments, **environment):
        path = self.folder / "result.json"
        self.text = self.succeed("benchmark", "-i4", "-w2", "--json", path, *arguments, **environment).out
        return json.loads(path.read_text())

    def engines(self, *arguments, **environment):
        return {node["name"]: node["engine"] for node in self.bench(*arguments, **environment)["nodes"]}

    def test_the_keys_of_the_json_file(self):
        for device in DEVICES:
            for flags, mode in (([], "inference"), (["-b"], "training"), (["-a"], "training"), (["-g"], "training")):
                with self.subTest(device=device, flags=flags):
                    result = self.bench(*flags, device, self.net)
                    self.assertEqual(list(result), KEYS)
                    self.assertEqual((result["batch"], result["precision"], result["mode"]), (2, "fp32", mode))
                    for key in ("ms_per_batch", "ms_per_batch_with_copies"):
                        times = result[key]
                        self.assertEqual(list(times), ["median", "min", "max"])
                        self.assertTrue(0 < times["min"] <= times["median"] <= times["max"], times)
                    self.assertGreater(result["first_batch_ms"], result["ms_per_batch"]["min"])
                    self.assertGreater(result["planned_peak_bytes"], 4 * 2 * 6 * 8 * 8)
                    for node in result["nodes"]:
                        self.assertEqual(list(node), NODE_KEYS)
                        self.assertEqual(node["ms"], 0, "times only with -t")
                    self.assertAlmostEqual(result["gflops"], result["gflop"] / result["ms_per_batch"]["median"] * 1e3)

    def test_the_version_names_the_commit_that_was_built(self):
        text = self.succeed("benchmark", "--version").out
        self.assertRegex(text, r"^dlprim \d+\.\d+\.\d+ \(commit (unknown|[0-9a-f]{7,}(-dirty)?)\)\n$")

    def test_a_driver_whose_wait_does_not_wait(self):
        shim = os.environ.get("DLPRIM_IDLE_FINISH", "")
        if not shim or "LD_PRELOAD" in os.environ or len(DEVICES) < 2:
            self.skipTest("no library that makes waits idle, or no OpenCL device")
        net = self.write("long.json", network({"x": [2048, 2048]}, ["y"], operator("InnerProduct", "y", "x", outputs=2048)))
        words = "returns before the device is done"
        self.assertNotIn(words, "".join(self.bench(DEVICE, net)["notes"]))
        self.assertRegex("".join(self.bench(DEVICE, net, LD_PRELOAD=shim)["notes"]), words)
        self.assertIn(words, self.text)

    def test_a_batch_after_the_first_allocates_and_compiles_nothing(self):
        for device in DEVICES:
            for flags in ([], ["-b"], ["-a"], ["-g"]):
                with self.subTest(device=device, flags=flags):
                    counts = self.bench(*flags, device, self.net)["per_batch"]
                    self.assertEqual(list(counts), ["launches", "waits", "allocations", "compiles"])
                    self.assertEqual((counts["allocations"], counts["compiles"]), (0, 0))
                    self.assertLessEqual(counts["waits"], 1)
                    self.assertGreaterEqual(counts["launches"], 1)

    def test_nominal_work(self):
        for device in DEVICES:
            self.assertAlmostEqual(self.bench(device, self.net)["gflop"], (CONV + FC) * 1e-9, delta=1e-12)
            self.assertAlmostEqual(self.bench("-B6", device, self.net)["gflop"], 3 * (CONV + FC) * 1e-9, delta=1e-12)
            self.assertAlmostEqual(self.bench("-b", device, self.net)["gflop"], 3 * (CONV + FC) * 1e-9, delta=1e-12)

    def test_the_text(self):
        result = self.bench("-B3", "cpu", self.net)
        for line in ("batch 3, inference, fp32", "time a batch", "with copies", "first batch", "planned peak",
                     "0.0 allocations, 0.0 compiles"):
            self.assertIn(line, self.text)
        self.assertEqual(result["batch"], 3)

    def test_precisions(self):
        for flags in ([], ["-a"]):
            for precision in ("tf32", "fp16", "bf16"):
                result = self.bench(*flags, "--precision", precision, "cpu", self.net)
                self.assertEqual(result["precision"], precision)
                self.assertRegex(self.text, f"(?m)^.*batch 2, .*, {precision}$")
        result = self.bench("--precision", "fc=tf32", "--precision", "fp16", "cpu", self.net)
        self.assertEqual(list(result), KEYS + ["precisions"])
        self.assertEqual((result["precision"], result["precisions"]), ("fp16", {"fc": "tf32"}))
        self.assertRegex(self.text, "(?m)^.*batch 2, .*, fp16, fc=tf32$")

    def test_an_operators_own_precision(self):
        net = json.loads(json.dumps(NET))
        for precision in ("tf32", "fp16", "bf16"):
            net["operators"][0]["precision"] = precision
            self.bench("-b", "cpu", self.write("own.json", net))
        net["operators"][0]["precision"] = "fp8"
        self.refuse(["own.json", "operators[0].precision", "'fp8'"], "benchmark", "cpu",
                    self.write("own.json", net))

    def test_json_into_what_is_no_file(self):
        result = self.succeed("benchmark", "-i1", "-w1", "--json", "/dev/stdout", "cpu", self.net)
        self.assertEqual(json.JSONDecoder().raw_decode(result.out)[0]["batch"], 2)
        link = self.folder / "link"
        link.symlink_to(self.write("target", ""))
        self.succeed("benchmark", "-i1", "-w1", "--json", link, "cpu", self.net)
        self.assertTrue(link.is_symlink(), "a link such as /dev/stdout stays where standard output is a file")
        self.assertEqual(json.loads((self.folder / "target").read_text())["batch"], 2)

    def test_times_by_node(self):
        for device in DEVICES:
            nodes = {node["name"]: node for node in self.bench("-t", device, self.net)["nodes"]}
            self.assertEqual(nodes["conv"]["fused"], ["bn", "act"], "inference folds and fuses")
            for name in ("conv", "fc"):
                self.assertGreater(nodes[name]["ms"], 0)
                self.assertGreater(nodes[name]["gflops"], 0)
                self.assertGreater(nodes[name]["bound_ms"], 0)
                self.assertRegex(self.text, rf"(?m)^{name} .*{nodes[name]['engine']}")

    def test_a_trace(self):
        for device in DEVICES:
            self.bench("-a", "--trace", self.folder / "trace.json", device, self.net)
            events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
            self.assertTrue({"conv", "fc", "conv/backward_filter"} <= {event["name"] for event in events})
            for event in events:
                self.assertEqual(event["ph"], "X")
                self.assertGreaterEqual(min(event["ts"], event["dur"]), 0)

    def test_weights_and_what_they_lack(self):
        weights = self.write_tensors("w.h5", fc__0=np.zeros((5, 384), np.float32))
        self.bench("cpu", self.net, weights)
        self.refuse(["fc.0", "[5, 3]", "[5, 384]"], "benchmark", "cpu", self.net,
                    self.write_tensors("bad.h5", fc__0=np.zeros((5, 3), np.float32)))

    def test_a_net_without_a_loss_trains_too(self):
        net = self.write("net.json", network({"x": [2, 3]}, ["y"], operator("InnerProduct", "y", "x", outputs=4)))
        self.assertIn("y/backward_filter", self.engines("-b", "cpu", net))

    def test_host_where_there_is_no_opencl(self):
        (self.folder / "none").mkdir()
        none = dict(OCL_ICD_VENDORS=str(self.folder / "none"), OPENCL_VENDOR_PATH=str(self.folder / "none"))
        result = self.bench("-a", "cpu", self.net, **none)
        self.assertEqual({node["device"] for node in result["nodes"]}, {"cpu"})
        for device in ("gpu", "opencl", "0:0", "Portable"):
            self.refuse([device, "cpu"], "benchmark", device, self.net, **none)

    def test_an_engine_on_a_node(self):
        self.assertEqual(self.engines("--engine", "conv=conv2d.host", "cpu", self.net)["conv"], "conv2d.host")
        if DEVICE not in DEVICES[1:]:
            self.skipTest("no OpenCL")
        for engine in ("conv2d.reference", "conv2d.implicit_gemm"):
            self.assertEqual(self.engines("--engine", f"conv={engine}", DEVICE, self.net)["conv"], engine)
        both = self.engines("--engine", "conv=conv2d.reference", "--engine", "fc=inner_product.reference", DEVICE, self.net)
        self.assertEqual((both["conv"], both["fc"]), ("conv2d.reference", "inner_product.reference"))

    def test_an_engine_on_a_node_that_is_fused_otherwise(self):
        got = self.engines("--engine", "act=pointwise.host", "--engine", "bn=pointwise.host", "cpu", self.net)
        self.assertEqual((got["conv"], got["act"], got["bn"]), ("conv2d.host", "pointwise.host", "pointwise.host"))

    def test_an_engine_on_a_node_that_becomes_others(self):
        self.assertEqual(self.engines("--engine", "prob=pointwise.host", "cpu", self.net)["prob"], "pointwise.host")
        for target in ("prob=matmul.host", "bn=conv2d.host", "act=conv2d.host"):
            node, engine = target.split("=")
            for flags in ([], ["-b"]):
                self.refuse([f"'{node}", f"engine {engine} does not apply", "it computes"],
                            "benchmark", *flags, "--engine", target, "cpu", self.net)

    def test_an_engine_that_does_not_apply(self):
        for target, words in (("conv=conv2d.reference", ["[Convolution2D 'conv']", "OpenCL devices only"]),
                              ("conv=matmul.host", ["'conv'", "it computes MatMul, not Convolution2D"]),
                              ("conv=conv2d.hots", ["no engine 'conv2d.hots'", "did you mean 'conv2d.host'"]),
                              ("cnov=conv2d.host", ["no node 'cnov'", "did you mean 'conv'"]),
                              ("Convolution3D=conv2d.host", ["did you mean 'Convolution2D'"])):
            self.refuse(words, "benchmark", "--engine", target, "cpu", self.net)

    def test_an_engine_on_a_type_is_a_wish(self):
        got = self.engines("--engine", "InnerProduct=inner_product.reference", "cpu", self.net)
        self.assertEqual(got["fc"], "inner_product.host")
        self.assertIn("note: [InnerProduct 'fc'] engine inner_product.reference does not apply", self.text)
        for target in ("Pooling2D=pooling2d.host", "BatchNorm=conv2d.host"):
            self.bench("--engine", target, "cpu", self.net)
            self.assertIn(f"note: engine {target}: ", self.text)

    def test_an_engine_in_the_description(self):
        net = json.loads(json.dumps(NET))
        net["operators"][2]["engine"] = "pointwise.host"
        self.assertEqual(self.engines("cpu", self.write("net.json", net))["act"], "pointwise.host")
        net["operators"][2]["engine"] = "conv2d.host"
        self.refuse(["'act'", "conv2d.host does not apply"], "benchmark", "cpu", self.write("net.json", net))



class Memory(CommandTest):
    """--memory and --memory-html."""

    def setUp(self):
        super().setUp()
        self.net = self.write("net.json", network({"x": [2, 3, 32, 32]}, ["y"],
                                                  operator("Convolution2D", "c<1>", "x", "c1", channels_out=8, kernel=3),
                                                  operator("Activation", "r", "c1", activation="tanh"),
                                                  operator("InnerProduct", "y", "r", outputs=4)))

    def test_what_a_step_takes(self):
        for device in DEVICES:
            for flags, phases in (([], ["forward"]), (["-a"], ["forward", "backward", "update"])):
                out = self.succeed("benchmark", "-i1", "-w1", "--memory", *flags, device, self.net).out
                memory, results = out.split("\nplanned peak", 1)[0], out
                self.assertTrue(memory.startswith(f"memory of {self.net} on "), out)
                for phase in phases:
                    self.assertRegex(out, rf"(?m)^{phase} +[0-9.]+ MiB live at most, in step \d+ \[")
                self.assertRegex(out, r"(?m)^ +[0-9.]+ MiB  bound +steps \d+ to \d+ +x$")
                planned = [float(found) for found in re.findall(r"planned peak +([0-9.]+) MiB", results)]
                self.assertEqual(len(planned), 2, "before anything is allocated, and as the net has it")
                self.assertAlmostEqual(planned[0], planned[1], delta=0.06)

    def test_more_than_the_device_has(self):
        result = call("benchmark", "--memory", "-B4096", "cpu", self.net, DLPRIM_TRAITS="global_mib=50")
        self.assertEqual(result.code, 1)
        self.assertRegex(result.out, r"(?m)^forward +[0-9.]+ MiB live at most")
        self.assertRegex(result.err, r"; \[\w+ '.*'\] wants [0-9.]+ MiB for '\w+' while [0-9.]+ MiB are live; "
                                     r"the largest batch that fits is \d+$")
        fits = int(result.err.split()[-1])
        self.succeed("benchmark", "-i1", "-w1", f"-B{fits}", "cpu", self.net, DLPRIM_TRAITS="global_mib=50")
        self.assertEqual(call("benchmark", f"-B{fits + 1}", "cpu", self.net, DLPRIM_TRAITS="global_mib=50").code, 1)

    def test_what_training_takes(self):
        config = write_smallest(self)
        page = self.folder / "memory.html"
        out = self.succeed("train", config, "-d", "cpu", "--memory", "--memory-html", page, "--out", self.folder / "out").out
        self.assertIn(f"memory of {config} on cpu", out)
        for phase in ("forward", "backward", "update"):
            self.assertRegex(out, rf"(?m)^{phase} +[0-9.]+ MiB live at most")
        self.assertRegex(out, r"(?m)^ +[0-9.]+ MiB  block +steps \d+ to \d+ +states$")
        self.assertLess(out.index("memory of"), out.index("epoch 1/1"))
        self.assertGreater(data_of(page)["memory"]["peak"], 0)

    def test_a_limit(self):
        layers = [operator("Convolution2D", f"c{i}", f"r{i - 1}" if i else "x", channels_out=8, kernel=3, pad=1) for i in range(8)]
        acts = [operator("Activation", f"r{i}", f"c{i}", activation="tanh") for i in range(8)]
        net = self.write("deep.json", network({"x": [16, 3, 32, 32]}, ["loss"], *(o for pair in zip(layers, acts) for o in pair),
                                              operator("Reduction", "loss", "r7", method="sumsq")))
        flags = ["-i1", "-w1", "-a", "--memory"]
        page = self.folder / "memory.html"
        for device in DEVICES:
            plain = self.succeed("benchmark", *flags, device, net).out
            self.assertNotIn("recompute", plain)
            peak = float(re.search(r"planned peak +([0-9.]+) MiB", plain)[1])
            out = self.succeed("benchmark", *flags, "--memory-limit", peak * 0.8, "--memory-html", page, device, net).out
            self.assertRegex(out, r"(?m)^planned peak .*; the limit is [0-9.]+ MiB\n  \d+ tensors?, [0-9.]+ MiB in sum, recomputed in backward$")
            self.assertIn("recomputed", {entry["kind"] for entry in data_of(page)["memory"]["entries"]})
            self.assertRegex(out, r"note: \d+ nodes? recomputes? tensors in backward: the plan needs [0-9.]+ MiB in place of "
                                  r"[0-9.]+, and a step is estimated to take [0-9.]+ % longer")
            self.assertLessEqual(float(re.search(r"planned peak +([0-9.]+) MiB", out)[1]), peak * 0.8 + 0.01)
        self.refuse(["the plan needs", "at least, with", "nodes that recompute tensors", "the memory limit is 1.0 MiB",
                     "the largest batch that fits is"], "benchmark", "-a", "--memory-limit", 1, "cpu", net)
        for wrong in ("0", "-3", "1GiB", "1e30"):
            result = call("benchmark", "-a", "--memory-limit", wrong, "cpu", net)
            self.assertEqual(result.code, 2, result.err)
            self.assertIn("--memory-limit", result.err)

    def test_the_page(self):
        page = self.folder / "memory.html"
        self.succeed("benchmark", "-i1", "-w1", "-a", "--memory-html", page, "cpu", self.net)
        memory = data_of(page)["memory"]
        self.assertEqual({step["phase"] for step in memory["steps"]}, {"forward", "backward", "update"})
        self.assertLessEqual({"tensor", "block"}, {entry["kind"] for entry in memory["entries"]})
        for entry in memory["entries"]:
            self.assertLessEqual(entry["first"], entry["last"])
            if entry["slab"] >= 0:
                self.assertLessEqual(entry["offset"] + entry["bytes"], memory["slabs"][entry["slab"]])
        self.assertIn("c<1>", [step["name"] for step in memory["steps"]])
        self.assertNotIn("c<1>", page.read_text(), "names cannot become markup")
        self.refuse(["/nonexistent/x.html"], "benchmark", "--memory-html", "/nonexistent/x.html", "cpu", self.net)


if __name__ == "__main__":
    main()
