#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which devices there are, which one is taken, and what is said where the best one cannot be."""
import json
import os
import pathlib
import re
import unittest
import unittest.mock

import numpy as np
from commands import DEVICE, DEVICES, CommandTest, call, main, network, operator
from training_runs import write_smallest

COMMANDS = ("run", "benchmark", "train", "flops", "tune")


def listed(text):
    """The rows of --list as dictionaries, and the id of the default device."""
    lines = text.splitlines()
    # Columns are two blanks or more apart.
    starts = [lines[0].index(word) for word in ("id", "name", "platform", "type", "memory", "driver")]
    rows = []
    for line in lines[1:]:
        if line.startswith("* the default"):
            break
        cells = [line[begin:end].strip() for begin, end in zip(starts, starts[1:] + [None])]
        rows.append(dict(zip(("id", "name", "platform", "type", "memory", "driver"), cells)) | {"default": line[0] == "*"})
    return rows, [row["id"] for row in rows if row["default"]]


def shown(row):
    """How reports and messages name a device."""
    return f"{row['id']} ({row['name']}, {'the host' if row['id'] == 'cpu' else row['platform']})"


class Listing(CommandTest):
    def test_every_command_lists_the_devices(self):
        texts = {command: self.succeed(command, "--list").out for command in COMMANDS}
        self.assertEqual(len(set(texts.values())), 1)
        rows, default = listed(texts["run"])
        self.assertEqual((rows[-1]["id"], rows[-1]["type"]), ("cpu", "host"))
        self.assertEqual(len(default), 1)
        self.assertEqual(len({row["id"] for row in rows}), len(rows))
        for row in rows:
            for key in ("name", "platform", "driver"):
                self.assertTrue(row[key], row)
            self.assertRegex(row["id"], r"^(cpu|\d+:\d+)$")
            self.assertIn(row["type"], ("host", "cpu", "gpu", "accelerator"))
            self.assertRegex(row["memory"], r"^\d+\.\d GiB$")
            self.assertGreater(float(row["memory"].split()[0]), 0)

    def test_help_and_other_arguments(self):
        for command in COMMANDS:
            self.assertIn("--list", self.succeed(command, "--help").out)
        self.assertEqual(self.succeed("flops", "none.json", "--list").out, self.succeed("flops", "--list").out)

    def test_the_default_is_what_opens(self):
        net = self.write("net.json", network({"x": [1]}, ["x"]))
        for environment in ({"DLPRIM_DEVICE": ""}, *({"DLPRIM_DEVICE": device} for device in DEVICES)):
            rows, default = listed(self.succeed("flops", "--list", **environment).out)
            row = next(row for row in rows if row["default"])
            self.assertIn(f" on {shown(row)}: ", self.succeed("flops", net, **environment).out)
        result = call("flops", "--list", DLPRIM_DEVICE="no such one")
        self.assertEqual(result.code, 1)
        self.assertEqual(listed(result.out)[1], [])
        self.assertIn("'no such one' (from DLPRIM_DEVICE)", result.err)

    def test_reports_name_id_and_platform(self):
        config, net = write_smallest(self), self.folder / "net.json"
        for device in DEVICES:
            rows, default = listed(self.succeed("flops", "--list", DLPRIM_DEVICE=device).out)
            row = next(row for row in rows if row["default"])
            report = self.folder / "report.json"
            text = self.succeed("benchmark", "-i1", "-w1", "--json", report, device, net).out
            self.assertIn(f" on {shown(row)}, batch 4", text)
            result = json.loads(report.read_text())
            self.assertEqual([result[key] for key in ("device", "device_id", "platform", "driver")],
                             [row[key] for key in ("name", "id", "platform", "driver")])
            self.assertIn(f"device: {shown(row)}\n",
                          self.succeed("train", config, "-d", device, "--out", self.folder / "out",
                                       "--replace").out)
            self.assertIn(f"<p>device: {shown(row)}</p>", (self.folder / "out/report.html").read_text())


def pocl_alone(folder):
    """A folder in which the loader finds PoCL and no other platform, or None."""
    for place in (os.environ.get("OCL_ICD_VENDORS", "/etc/OpenCL/vendors"), "/etc/OpenCL/vendors"):
        for path in sorted(pathlib.Path(place).glob("*.icd")):
            if "pocl" in path.read_text():
                (folder / "pocl.icd").write_text(path.read_text())
                return folder
    return None


@unittest.skipUnless(DEVICE in DEVICES[1:], "no OpenCL device")
class PoclCache(CommandTest):
    """PoCL does nothing without a folder to write to: without a word the host took its place, or no program was built."""

    def setUp(self):
        super().setUp()
        (self.folder / "vendors").mkdir()
        vendors = pocl_alone(self.folder / "vendors")
        if vendors is None:
            self.skipTest("no PoCL")
        self.net = self.write("net.json", network({"x": [2, 6]}, ["y"], operator("Softmax", "y", "x")))
        self.inputs = self.write_tensors("in.h5", x=np.zeros((2, 6), np.float32))
        self.arguments = ("run", self.net, "--inputs", self.inputs, "--outputs", self.folder / "out.h5")
        self.alone = dict(OCL_ICD_VENDORS=str(vendors), OPENCL_VENDOR_PATH=str(vendors), DLPRIM_DEVICE="", DLPRIM_CACHE="0")

    def check_trouble(self, folder, why, **environment):
        """The host computes and a warning says why; who asks for OpenCL gets that as an error."""
        environment = self.alone | environment
        words = [f"'{folder}'", why, "POCL_CACHE_DIR"]
        result = self.succeed(*self.arguments, **environment)
        self.assertEqual(len(result.err.splitlines()), 1, result.err)
        self.assertTrue(result.err.startswith("dlprim_run: warning: device cpu ("), result.err)
        for word in words:
            self.assertIn(word, result.err)
        np.testing.assert_allclose(self.read_tensors("out.h5")["y"], np.full((2, 6), 1 / 6), rtol=1e-6)
        error = self.refuse(words, *self.arguments, "-d", "opencl", **environment).err
        self.assertNotIn("is installed", error)
        # Who chooses the host is not told of other devices.
        self.assertEqual(self.succeed(*self.arguments, "-d", "cpu", **environment).err, "")
        result = self.succeed("flops", "--list", **environment)
        self.assertEqual(listed(result.out)[1], ["cpu"])
        for word in words:
            self.assertIn(word, result.err)

    def test_a_folder_that_can_be_written(self):
        result = self.succeed(*self.arguments, **self.alone, POCL_CACHE_DIR=str(self.folder / "cache"))
        self.assertEqual(result.err, "")
        self.assertTrue(list((self.folder / "cache").iterdir()))
        self.assertEqual([path.name for path in (self.folder / "cache").glob("dlprim-??????")], [], "nothing of the try is left")

    def test_a_folder_that_cannot_be_made(self):
        file = self.write("file", "not a folder")
        for folder in (file / "below", pathlib.Path("/proc/pocl")):
            self.check_trouble(folder, "cannot be made", POCL_CACHE_DIR=str(folder))
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("POCL_CACHE_DIR", None)
            self.check_trouble(file / "pocl/kcache", "cannot be made", XDG_CACHE_HOME=str(file))
            self.check_trouble(file / ".cache/pocl/kcache", "cannot be made", XDG_CACHE_HOME="", HOME=str(file))

    def test_what_is_no_folder(self):
        file = self.write("file", "not a folder")
        self.check_trouble(file, "Not a directory", POCL_CACHE_DIR=str(file))

    def test_a_folder_that_cannot_be_written(self):
        folder = self.mounted("ro,size=64k")
        self.check_trouble(folder, "Read-only file system", POCL_CACHE_DIR=str(folder))

    def test_a_folder_on_a_full_disk(self):
        folder = self.mounted("size=4k")
        (folder / "full").write_bytes(bytes(4096))
        self.check_trouble(folder, "No space left", POCL_CACHE_DIR=str(folder))

    def test_an_error_is_its_own_line(self):
        """Behind the warning, what is wrong is one line, with exit code 1."""
        environment = self.alone | {"POCL_CACHE_DIR": "/proc/pocl"}
        result = call("flops", self.folder / "none.json", **environment)
        self.assertEqual(result.code, 1)
        lines = result.err.splitlines()
        self.assertEqual([bool(re.match("dlprim_flops: warning: ", line)) for line in lines], [True, False], result.err)


if __name__ == "__main__":
    main()
