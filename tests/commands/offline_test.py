#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs for devices that are not here: what dlprim_tune writes, and, where there are compilers, that it compiles."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

from commands import ROOT, TOOLS, CommandTest, main, network, operator

DEVICES = ROOT / "databases/devices"
LIBRARIES_OF_AMD = pathlib.Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")
NET = network({"x": [8, 16, 28, 28]}, ["y"],
              operator("Convolution2D", "first", "x", channels_out=64, kernel=3, pad=1, activation="relu"),
              operator("Convolution2D", "wise", "first", channels_out=64, kernel=3, pad=1, stride=2, groups=64),
              operator("Pooling2D", "pool", "wise", kernel=2, stride=2),
              operator("InnerProduct", "fc", "pool", outputs=100),
              operator("Softmax", "soft", "fc", "y"))


class Offline(CommandTest):
    def test_programs_are_written(self):
        net = self.write("net.json", NET)
        folder = self.folder / "kernels"
        out = self.succeed("tune", "-d", f"file:{DEVICES / 'rx580.json'}", "--write-kernels", folder, net, "--prewarm", net).out
        count = {int(number) for number in re.findall(r"net\.json: (\d+) programs to ", out)}
        written = json.loads((folder / "programs.json").read_text())
        # Both networks have the same programs, which are written once.
        self.assertEqual(count, {len(written["programs"])})
        self.assertEqual(written["device"]["driver"], "clang gfx803")
        nodes = set()
        for program in written["programs"]:
            text = (folder / program["file"]).read_text()
            for kernel in program["kernels"]:
                self.assertRegex(text, rf"\b{kernel['name']}\s*\(")
                self.assertLessEqual(kernel["local"][0] * kernel["local"][1] * kernel["local"][2], 256)
                nodes.add(kernel["node"])
        self.assertLessEqual({"first", "wise", "pool", "fc", "soft"}, nodes)

    def test_a_step_has_more_programs(self):
        net = self.write("net.json", NET)
        counts = []
        for train in [], ["--train"]:
            out = self.succeed("tune", "-d", f"file:{DEVICES / 'mali_g610.json'}", "--write-kernels", self.folder / "kernels", net, *train).out
            counts.append(int(re.search(r"(\d+) programs to ", out)[1]))
        self.assertGreater(counts[1], counts[0])

    def test_rows_whose_tiles_spill_are_passed_over(self):
        """Rows that an H200 measured, as if an RX 580 had, which has 64 registers for an item."""
        net = self.write("net.json", network({"x": [64, 128, 28, 28]}, ["y"],
                                             operator("Convolution2D", "y", "x", channels_in=128, channels_out=256, kernel=[1, 1],
                                                      stride=[2, 2], pad=[0, 0], dilate=[1, 1], groups=1)))
        rows = [row for row in json.loads((ROOT / "databases/nvidia_h200.json").read_text())["rows"]
                if row["engine"] == "conv2d.implicit_gemm" and row["tuning"]["rows"] == 128]
        self.assertTrue(rows)
        device = json.loads((DEVICES / "rx580.json").read_text())
        bias = "(float[64, 128, 28, 28], float[256, 128, 1, 1]!, float[256]!) -> (float[64, 256, 14, 14])"
        problem = rows[0]["problem"].split("(")[0] + bias
        as_here = {"device": device["name"], "platform": "described", "driver": f"clang {device['target']}"}
        for splits, words in ((1, r"needs more than the \d+ registers that a work-item has on this device, and would spill"),
                              (77, "it has no tuning")):
            row = rows[0] | as_here | {"problem": problem, "tuning": rows[0]["tuning"] | {"splits": splits}}
            here = {"DLPRIM_TUNING": str(self.write("rows.json", {"format": 2, "rows": [row]}))}
            out = self.succeed("tune", "-d", f"file:{DEVICES / 'rx580.json'}", "--write-kernels", self.folder / "kernels", net,
                               **here).out
            self.assertRegex(out, "a row of the tuning database is skipped: .*conv2d.implicit_gemm.*" + words)

    def test_a_described_device_runs_nothing(self):
        net = self.write("net.json", NET)
        self.refuse(["Mali-G610", "is described by a file", "planned_programs()"], "tune", "--prewarm", net, "-d", f"file:{DEVICES / 'mali_g610.json'}")
        self.write("bad.json", {"format": 1, "name": 5})
        self.refuse(["bad.json", "field 'name' is 5, and must be a text"], "tune", net, "-d", f"file:{self.folder / 'bad.json'}")

    def check_compiled(self, device, compiler):
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        if compiler == "clang-16" and not LIBRARIES_OF_AMD.exists():
            self.skipTest("rocm-device-libs is not installed")
        numbers = self.folder / "numbers.json"
        done = subprocess.run([sys.executable, ROOT / "scripts/offline.py", "-d", DEVICES / f"{device}.json", self.write("net.json", NET),
                               "--tune", TOOLS / "dlprim_tune", "--json", numbers], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = json.loads(numbers.read_text())[0]["rows"]
        self.assertGreater(len(rows), 4)
        for row in rows:
            self.assertEqual(row["faults"], [], row)
            self.assertGreater(row["registers"], 0)

    def test_chosen_programs_compile_for_a_radeon(self):
        self.check_compiled("rx580", "clang-16")

    def test_chosen_programs_compile_for_an_intel_gpu(self):
        self.check_compiled("hd530", "ocloc")


if __name__ == "__main__":
    main()
