#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_flops beside what one counts by hand, and on every network of examples/."""
import re

from commands import DEVICES, ROOT, CommandTest, main, network, operator

NET = network({"x": [2, 4, 10, 12]}, ["y"],
              operator("Convolution2D", "conv", "x", channels_out=6, groups=2, kernel=[3, 5], pad=[1, 2], stride=2),
              operator("Activation", "act", "conv", activation="relu"),
              operator("InnerProduct", "fc", "act", "y", outputs=7, bias=False))
# 2 a multiply-add; conv makes 2 x 6 x 5 x 6, each from 2 channels of 3 x 5.
CONV, FC = 2 * (2 * 6 * 5 * 6) * (2 * 3 * 5), 2 * (2 * 7) * (6 * 5 * 6)
PARAMETERS = {"conv": 6 * 2 * 3 * 5 + 6, "fc": 7 * 180}


class Flops(CommandTest):
    def read(self, *arguments):
        """The table's rows by node, and the lines below it by their first word."""
        lines = self.succeed("flops", *arguments).out.splitlines()
        self.assertEqual(lines[0].split(), ["node", "type", "GFLOP", "MB", "parameters", "bound", "ms"])
        rows, sums = {}, {}
        for line in lines[1:]:
            row = re.fullmatch(r"(.{44}) (\S.{25}) +(\d+\.\d+) +(\d+\.\d+) +(\d+) +(\d+\.\d+)", line)
            if row:
                name, kind, gflop, mb, parameters, bound = (part.strip() for part in row.groups())
                rows[name] = dict(type=kind, gflop=float(gflop), mb=float(mb), parameters=int(parameters), bound=float(bound))
            else:
                sums[re.match(r"\D+", line).group().strip()] = [float(n) for n in re.findall(r"\d+\.?\d*", line)]
        return rows, sums

    def test_by_hand(self):
        for device in DEVICES:
            for more, batch in (([], 1), (["-B", "6"], 3)):
                rows, sums = self.read(self.write("net.json", NET), "-d", device, *more)
                self.assertAlmostEqual(rows["conv"]["gflop"], batch * CONV * 1e-9, delta=6e-7)
                self.assertAlmostEqual(rows["fc"]["gflop"], batch * FC * 1e-9, delta=6e-7)
                for name, count in PARAMETERS.items():
                    self.assertEqual(rows[name]["parameters"], count)
                    self.assertGreaterEqual(rows[name]["mb"], 4e-6 * count - 1e-3)
                self.assertEqual(sums["parameters"][:2], [sum(PARAMETERS.values())] * 2)
                self.assertAlmostEqual(sums["work"][0], batch * (CONV + FC) * 1e-9, delta=1e-4)
                self.assertAlmostEqual(sums["bound"][0], sum(row["bound"] for row in rows.values()), delta=1e-3)

    def test_backward(self):
        rows, sums = self.read(self.write("net.json", NET), "-d", "cpu", "-b")
        self.assertAlmostEqual(rows["conv/backward_filter"]["gflop"], CONV * 1e-9, delta=6e-7)
        self.assertAlmostEqual(sums["work"][0], (2 * CONV + 3 * FC) * 1e-9, delta=1e-4)  # x gets no gradient

    def test_precision(self):
        """On a GPU, values between nodes take half the bytes in fp16."""
        h200 = "file:" + str(ROOT / "databases/devices/h200.json")
        net = self.write("net.json", network({"x": [4096, 512]}, ["y"],
                                             operator("InnerProduct", "first", "x", outputs=512, bias=False),
                                             operator("InnerProduct", "second", "first", "y", outputs=512, bias=False)))
        wide, narrow = (self.read(net, "-d", h200, "--precision", name)[1]["bytes"][0] for name in ("fp32", "fp16"))
        self.assertLess(narrow, 0.8 * wide)

    def test_frozen_and_running_statistics_are_not_trained(self):
        net = network({"x": [1, 3, 4, 4]}, ["y"],
                      operator("Convolution2D", "conv", "x", channels_out=2, kernel=1, frozen=True),
                      operator("BatchNorm", "bn", "conv", "y"))
        rows, sums = self.read(self.write("net.json", net), "-d", "cpu")
        self.assertEqual(sums["parameters"][:2], [2 * 3 + 2 + 4 * 2, 2 * 2])
        self.assertEqual(sum(row["parameters"] for row in rows.values()), 16)

    def test_examples(self):
        # Multiply-adds of torchvision's models at 224 x 224, in 10^9, and their parameters (with running statistics).
        known = {"alexnet": (0.714, 61100840), "vgg16": (15.47, 138357544), "resnet18": (1.814, 11699112),
                 "resnet50": (4.089, 25610152), "mobilenet_v2": (0.301, 3538984)}
        nets = sorted((ROOT / "examples").glob("*/*net*.json")) + sorted((ROOT / "examples/nets").glob("*.json"))
        self.assertEqual({path.stem for path in nets}, set(known) | {"net"})
        for path in nets:
            with self.subTest(net=path.stem):
                _, sums = self.read(path, "-d", "cpu", "-B", "1")
                if path.stem in known:
                    self.assertAlmostEqual(sums["work"][0] / 2, known[path.stem][0], delta=0.01 * known[path.stem][0])
                    self.assertEqual(sums["parameters"][1], sums["parameters"][0] if "net" not in path.stem else
                                     sums["parameters"][1])

    def test_it_needs_no_opencl(self):
        (self.folder / "none").mkdir()
        self.succeed("flops", self.write("net.json", NET), OCL_ICD_VENDORS=str(self.folder / "none"))


if __name__ == "__main__":
    main()
