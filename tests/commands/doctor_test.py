#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlprim_doctor on systems that lack things: what it says, and that it always ends."""
import grp
import json
import os
import shutil
import subprocess
import time
import unittest

from commands import DEVICE, DEVICES, SECONDS, TOOLS, CommandTest, call, main

NO_PLATFORM = {"OCL_ICD_VENDORS": "/nonexistent", "OPENCL_VENDOR_PATH": ""}

# A probe with one device, whose test of Flip ends its process after bytes that no terminal shows, and that of Abs never ends.
PROBE = """#!/usr/bin/env python3
import json, os, sys, time
answers = {
    "list": {"devices": [{"id": "0:0", "name": "fake \\x1b[31m\\u202e", "platform": "fake", "vendor": "", "driver": "1", "type": "cpu",
                          "memory_mib": 1}], "troubles": [], "default": "0:0"},
    "open": {"compute_units": 1, "vector_width": 1, "max_work_group": 1, "local_kib": 1, "max_alloc_mib": 1, "global_mib": 1,
             "cache_kib": 1, "unified_memory": True, "fp64": False, "fp16": False, "subgroup_size": 0, "wgmma": False,
             "mma": False, "matrix_fp16": False, "matrix_bf16": False},
    "peaks": {"error": "none"},
    "trust": {"right": 0, "unknown": 0, "wrong": []},
    "rows": {"rows": []},
    "cases": {"cases": [{"type": "Flip", "name": "basic"}, {"type": "Abs", "name": "basic"}]},
}
for line in os.fdopen(3):
    question = json.loads(line)
    if question["what"] == "test":
        if question["type"] == "Flip":
            os.write(2, b"driver: \\x00\\xff\\x1b[2J\\xe2\\x80\\xae bad")
            os.abort()
        time.sleep(1000)
    os.write(4, (json.dumps(answers[question["what"]]) + "\\n").encode())
"""

CRASHING = """
#include <stdlib.h>
#include <string.h>
int clGetPlatformInfo(void* p, unsigned w, size_t n, void* v, size_t* s) { abort(); }
int clIcdGetPlatformIDsKHR(unsigned n, void** p, unsigned* count) { abort(); }
void* clGetExtensionFunctionAddress(const char* name) {
    return strcmp(name, "clIcdGetPlatformIDsKHR") ? 0 : (void*)clIcdGetPlatformIDsKHR;
}
"""


class DoctorTest(CommandTest):
    def examine(self, *arguments, code=0, **environment):
        """The report as JSON; it also checks the text that comes with it."""
        path = self.folder / "report.json"
        result = call("doctor", *arguments, "--json", path, timeout=3 * SECONDS, **environment)
        self.assertEqual(result.code, code, result)
        for line in result.err.splitlines():
            self.assertRegex(line, r"^dlprim_doctor: \d+ s: \w", "only what it works on, now and then")
        report = json.loads(path.read_text())
        self.assertEqual(result.out.split("\n")[0], f"dlprim_doctor: {report['summary']}")
        self.assertTrue(all(line.isprintable() for line in result.out.split("\n")), result.out)
        self.text = result.out
        return report

    def advice(self, report, words):
        """The advice on the trouble whose sentence has these words."""
        found = [trouble["advice"] for trouble in report["troubles"] if words in trouble["what"]]
        self.assertEqual(len(found), 1, f"'{words}' in {report['troubles']}")
        return found[0]


class Doctor(DoctorTest):
    def test_the_host_alone(self):
        report = self.examine("-d", "cpu", "--quick", **NO_PLATFORM)
        self.assertTrue(report["ok"])
        (device,) = report["devices"]
        self.assertEqual((device["id"], device["works"]), ("cpu", True))
        for peak in ("fp32_gflops", "copy_gbytes_per_s"):
            self.assertGreater(device["peaks"][peak], 0)
        test = device["self_test"]
        self.assertEqual((test["wrong"], test["failed"], test["unfinished"]), (0, 0, 0))
        self.assertGreater(test["right"], 50, "each operator has a case")
        self.assertLess(test["worst_error"], 1e-5)
        self.assertIn("no OpenCL platform", report["summary"], "the first line says what is missing")
        self.assertRegex(self.advice(report, "no OpenCL platform"), "pocl|PoCL")

    def test_every_engine_of_the_host(self):
        test = self.examine("-d", "cpu", **NO_PLATFORM)["devices"][0]["self_test"]
        self.assertLessEqual({"matmul.host", "matmul.host_wide"}, {engine for row in test["rows"] for engine in row["ran"]})
        self.assertGreater(test["engines"], 25)
        self.assertTrue(any(row["direction"] == "backward" for row in test["rows"]))

    def test_a_device_that_is_not_there(self):
        report = self.examine("-d", "no such device", "--quick", code=1)
        self.assertFalse(report["ok"])
        self.assertIn("no such device", report["summary"])

    def test_an_icd_file_without_its_library(self):
        self.write("vendors/gone.icd", "/nonexistent/libgone.so\n")
        self.write("vendors/empty.icd", "")
        report = self.examine("-d", "cpu", "--quick", OCL_ICD_VENDORS=str(self.folder / "vendors"))
        self.assertIn("cannot open shared object file", self.text)
        self.assertIn("again", self.advice(report, "gone.icd"))
        self.assertIn("names no library", self.text)
        self.assertTrue(report["devices"][0]["works"])

    def test_a_driver_that_crashes(self):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            self.skipTest("no C compiler")
        library = self.folder / "libcrash.so"
        source = self.write("crash.c", CRASHING)
        subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", library, source], check=True)
        self.write("vendors/crash.icd", f"{library}\n")
        report = self.examine("--quick", OCL_ICD_VENDORS=str(self.folder / "vendors"))
        self.assertIn("crash.icd", self.advice(report, "listing the devices failed"))
        self.assertEqual([device["id"] for device in report["devices"]], ["cpu"])
        self.assertIn("Abort", self.text)

    def test_without_the_loader(self):
        """The probe does not start then. A program that says what the system's linker says stands for it."""
        shutil.copy(TOOLS / "dlprim_doctor", self.folder / "dlprim_doctor")
        probe = self.write("dlprim_doctor_probe", "#!/bin/sh\necho 'error while loading shared libraries: libOpenCL.so.1' >&2\n"
                           "exit 127\n")
        for mode, words in ((0o755, "libOpenCL.so.1"), (0o644, "dlprim_doctor_probe is not beside")):
            probe.chmod(mode)
            done = subprocess.run([self.folder / "dlprim_doctor", "--quick"], capture_output=True, text=True, timeout=SECONDS,
                                  env=os.environ | NO_PLATFORM)
            self.assertEqual((done.returncode, done.stderr), (1, ""))
            self.assertRegex(done.stdout.split("\n")[0], "^dlprim_doctor: no device works: ")
            self.assertIn(words, done.stdout)

    def examine_fake(self, *arguments):
        """The report of a probe that stands for a bad driver."""
        shutil.copy(TOOLS / "dlprim_doctor", self.folder / "dlprim_doctor")
        self.write("dlprim_doctor_probe", PROBE).chmod(0o755)
        path = self.folder / "report.json"
        done = subprocess.run([self.folder / "dlprim_doctor", "--json", path, *arguments], capture_output=True, timeout=SECONDS)
        return done, json.loads(path.read_text())

    def test_a_crash_and_a_hang(self):
        start = time.monotonic()
        done, report = self.examine_fake("--seconds", "12")
        self.assertLess(time.monotonic() - start, 40, "it keeps to its time")
        self.assertEqual(done.returncode, 1)
        test = report["devices"][0]["self_test"]
        self.assertEqual([test[key] for key in ("wrong", "crashed", "failed", "unfinished")], [0, 1, 0, 1])
        self.assertEqual([one["case"] for one in test["stopped"]], ["Abs/basic"])
        text = done.stdout.decode()
        self.assertIn(" 0 wrong, 1 crashed, ", text)
        self.assertIn("Flip/basic forward crashed: the driver's process was ended by signal", text)
        self.assertIn("tuning rows     none: rules choose engines", text)
        self.assertRegex(text, r"stopped: Abs/basic had run for \d+ s")
        self.assertRegex(done.stderr.decode(), r"^dlprim_doctor: \d+ s: testing 0:0: (Abs|Flip)/basic \(\d of 2 done\)\n")

    def test_bytes_that_no_terminal_shows(self):
        done, report = self.examine_fake("--seconds", "2")
        text = done.stdout.decode()
        self.assertTrue(all(line.isprintable() for line in text.split("\n")), text)
        self.assertIn(r"driver: \x00\xff\x1b[2J\u202e bad", text)
        self.assertIn(r"fake \x1b[31m\u202e", text)
        self.assertIn(r"driver: \x00\xff\x1b[2J\u202e bad", report["devices"][0]["self_test"]["rows"][0]["reason"])

    def test_an_operator_that_there_is_not(self):
        for name in ("Conv", "Convolution2d"):
            result = call("doctor", "-d", "cpu", "--operator", name, **NO_PLATFORM)
            self.assertEqual((result.code, result.out), (2, ""))
            self.assertEqual(result.err, f"dlprim_doctor: --operator {name}: there is no operator type '{name}'; did you mean "
                             "'Convolution'?\n")

    def test_environment_and_caches(self):
        report = self.examine("-d", "cpu", "--quick", DLPRIM_THREDS="2", DLPRIM_CACHE_DIR="/proc/cache", **NO_PLATFORM)
        self.assertIn("DLPRIM_THREADS", self.advice(report, "DLPRIM_THREDS"))
        self.assertIn("DLPRIM_CACHE_DIR", self.advice(report, "compiled kernels"))
        self.assertFalse(report["system"]["storage"][0]["writable"])
        self.assertIn("DLPRIM_THREDS=2", self.text)
        groups = [grp.getgrgid(group).gr_name for group in {os.getegid(), *os.getgroups()}]
        self.assertEqual(sorted(report["system"]["device_files"]["groups"]), sorted(groups))

    def test_the_output(self):
        result = self.succeed("doctor", "-d", "cpu", "--quick", "--json", "-", **NO_PLATFORM)
        self.assertTrue(json.loads(result.out)["ok"])
        self.assertEqual(call("doctor", "--seconds", "x").code, 2)
        self.refuse(["/nonexistent/x"], "doctor", "-d", "cpu", "--quick", "--json", "/nonexistent/x", **NO_PLATFORM)
        self.assertRegex(self.succeed("doctor", "--version").out, r"^dlprim \d+\.\d+\.\d+ \(commit ")


@unittest.skipUnless(DEVICE in DEVICES[1:], "no OpenCL device")
class OpenCL(DoctorTest):
    def test_capabilities(self):
        report = self.examine("-d", DEVICE, "--quick", "--operator", "Flip")
        (device,) = report["devices"]
        self.assertNotEqual(device["id"], "cpu")
        self.assertGreater(device["traits"]["max_alloc_mib"], 0)
        for peak in ("fp32_gflops", "copy_gbytes_per_s", "launch_us", "wait_us"):
            self.assertGreater(device["peaks"][peak], 0)
        self.assertTrue(report["system"]["icd"]["files"])
        self.assertIn("capabilities", self.text)


if __name__ == "__main__":
    main()
