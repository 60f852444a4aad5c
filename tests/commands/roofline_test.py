#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""benchmarks/roofline.py draws what dlprim_benchmark --roofline writes: each node, where it belongs."""
import json
import subprocess
import sys
import xml.etree.ElementTree as xml

from commands import DEVICES, ROOT, SECONDS, CommandTest, main, network, operator

NET = network({"x": [2, 4, 8, 8]}, ["prob"],
              operator("Convolution2D", "conv<1>", "x", channels_out=6, kernel=3, pad=1),
              operator("Pooling2D", "pool", "conv<1>", kernel=2, stride=2),
              operator("InnerProduct", "fc", "pool", outputs=5),
              operator("Softmax", "prob", "fc"))


class Roofline(CommandTest):
    def draw(self, path, *arguments):
        return subprocess.run([sys.executable, ROOT / "benchmarks/roofline.py", path, *arguments], capture_output=True,
                              text=True, timeout=SECONDS, check=False)

    def parts(self, done, kind, of_class):
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("nan", done.stdout)
        return [part for part in xml.fromstring(done.stdout).iter("{http://www.w3.org/2000/svg}" + kind)
                if part.get("class") == of_class]

    def test_each_node_with_operations_is_a_point(self):
        net, path = self.write("net.json", NET), self.folder / "result.json"
        for device in DEVICES:
            for flags in ([], ["-a"]):
                with self.subTest(device=device, flags=flags):
                    self.succeed("benchmark", "-i2", "-w1", "--roofline", "--json", path, device, net, *flags)
                    result = json.loads(path.read_text())
                    self.assertGreater(min(result["device_peak"].values()), 0)
                    wanted = [node["name"] for node in result["nodes"] if node["gflops"] > 0]
                    self.assertIn("conv<1>", wanted)
                    self.assertIn("fc", wanted)
                    points = self.parts(self.draw(path), "circle", "node")
                    self.assertEqual(sorted(point[0].text.split("\n")[0] for point in points), sorted(wanted))
                    for node in result["nodes"]:
                        if node["name"] == "fc" and not flags:  # x, weight, bias and y, each once
                            self.assertAlmostEqual(node["gbytes"] * 1e9 / (4 * (2 * 96 + 5 * 96 + 5 + 2 * 5)), 1, 6)

    def made_up(self, **more):
        """A node at the corner of the roof of 1000 GFLOP/s and 100 GB/s, and one at a tenth of the bandwidth."""
        node = {"type": "MatMul", "engine": "matmul.x", "fused": [], "device": "d", "bound_ms": 1.0}
        return self.write("made.json", {
            "net": "n", "device": "d", "batch": 1, "mode": "inference", "precision": "fp32",
            "ms_per_batch": {"median": 2.0},
            "nodes": [node | {"name": "corner", "ms": 1.0, "gflops": 1000.0, "gbytes": 0.1},
                      node | {"name": "below", "ms": 1.0, "gflops": 10.0, "gbytes": 0.01},
                      node | {"name": "copy", "ms": 1.0, "gflops": 0.0, "gbytes": 0.1}]} | more)

    def test_a_node_at_its_bound_lies_on_the_roof(self):
        done = self.draw(self.made_up(), "--peak", "fp32=1000", "--peak", "fp16=4000", "--bandwidth", "100")
        at = {point[0].text.split("\n")[0]: (float(point.get("cx")), float(point.get("cy")))
              for point in self.parts(done, "circle", "node")}
        self.assertEqual(sorted(at), ["below", "corner"])
        lower, upper = sorted(self.parts(done, "line", "peak"), key=lambda line: -float(line.get("y1")))
        self.assertEqual(at["corner"], (float(lower.get("x1")), float(lower.get("y1"))))
        slope, = self.parts(done, "line", "bandwidth")
        x1, y1, x2, y2 = (float(slope.get(end)) for end in ("x1", "y1", "x2", "y2"))
        self.assertEqual((x2, y2), (float(upper.get("x1")), float(upper.get("y1"))))
        x, y = at["below"]
        decade = at["below"][1] - at["corner"][1]  # two decades of rate
        self.assertAlmostEqual(y, y1 + (x - x1) / (x2 - x1) * (y2 - y1) + decade / 2, delta=0.2)
        self.assertIn("33 %", done.stdout)

    def test_what_is_missing_is_said(self):
        net, path = self.write("net.json", NET), self.folder / "result.json"
        self.succeed("benchmark", "-t", "-i2", "-w1", "--json", path, "cpu", net)
        for given, arguments, word in ((path, [], "--roofline"), (self.made_up(), [], "no peak"),
                                       (self.folder / "nothing.json", [], "nothing.json"),
                                       (self.made_up(nodes=[]), ["--peak", "a=1", "--bandwidth", "1"], "operations")):
            done = self.draw(given, *arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(word, done.stderr)
            self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    main()
