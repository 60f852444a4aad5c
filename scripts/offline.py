#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles the programs of networks' plans for devices that are not here, by their makers' compilers.

    offline.py -d databases/devices/rx580.json [...] NET.json [...] [--train] [--also clang:gfx906 ...]
        [--tune build/tools/dlprim_tune] [--json FILE] [--all] [--check]

For each device, dlprim_tune plans the networks (with --train also a training step) and writes the programs. Clang compiles
them for AMD's devices and ocloc for Intel's, each program in a process of its own, since a compiler may crash. A device whose
file names no compiler is planned for, and its launches are compared with its limits. --also compiles each device's programs
for other targets of its compiler, too.

The output is a table of devices, and one of the kernels that fail, spill, exceed a limit, or leave fewer waves on a SIMD than
the device's file wants; --all shows all kernels. --check ends with 1 where a program does not build, a kernel spills, or a
limit is exceeded.

Needs clang-16 with rocm-device-libs, and ocloc (Debian: intel-opencl-icd). docs/commands.md has more.
"""
import argparse
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILERS = {"clang": "clang-16", "ocloc": "ocloc"}


def write_kernels(tune, device_file, nets, train, folder):
    """The list of programs that the plans of the networks need on the device."""
    command = [tune, "-d", f"file:{device_file}", "--write-kernels", folder, nets[0]] + ["--train"] * train
    subprocess.run(command + (["--prewarm", *nets[1:]] if nets[1:] else []), check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "programs.json").read_text())["programs"]


def run(command):
    """(seconds, what went wrong or an empty text, output)"""
    start = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    wrong = ""
    if done.returncode < 0 or done.returncode > 128:
        wrong = f"the compiler crashed (signal {-done.returncode if done.returncode < 0 else done.returncode - 128})"
    elif done.returncode:
        lines = [line for line in done.stdout.splitlines() if "error" in line.lower()]
        wrong = (lines or ["it does not build"])[0].strip()
    return time.monotonic() - start, wrong, done.stdout


def compile_clang(text, options, target, folder):
    """(seconds, wrong, {kernel: numbers}) for one of AMD's processors."""
    assembly = folder / "k.s"
    seconds, wrong, _ = run([COMPILERS["clang"], "-x", "cl", "-cl-std=CL1.2", "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}",
                             "--rocm-device-lib-path=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "-Xclang", "-finclude-default-header",
                             "-w", "-O3", *shlex.split(options), "-S", text, "-o", assembly])
    return seconds, wrong, {} if wrong else amd_kernels(assembly.read_text())


def amd_kernels(assembly):
    """What the compiler says of each kernel: in comments behind it, and spills in the metadata."""
    kernels, name = {}, None
    words = {"NumVgprs": "registers", "ScratchSize": "scratch", "LDSByteSize": "local", "Occupancy": "waves"}
    for line in assembly.splitlines():
        if match := re.match(r"\s*\.amdhsa_kernel (\S+)", line):
            name = match[1]
            kernels[name] = {"spills": 0}
        elif name and (match := re.match(r"; (\w+): (\d+)", line)) and match[1] in words:
            kernels[name].setdefault(words[match[1]], int(match[2]))
    for block in re.split(r"(?m)^  - (?=\.\w)", assembly[assembly.rfind("amdhsa.kernels:"):]):
        if (named := re.search(r"\.name: +(\S+)", block)) and named[1] in kernels:
            kernels[named[1]]["spills"] = sum(map(int, re.findall(r"\.[sv]gpr_spill_count: +(\d+)", block)))
    return kernels


def compile_ocloc(text, options, target, folder):
    """The same for one of Intel's. Its binary describes kernels where it has the newer of two formats."""
    seconds, wrong, log = run([COMPILERS["ocloc"], "compile", "-file", text, "-device", target, "-options", f"-cl-std=CL1.2 {options}",
                               "-internal_options", "-cl-intel-allow-zebin", "-output", "k", "-out_dir", folder])
    if wrong:
        return seconds, wrong, {}
    kernels = intel_kernels(max(folder.glob("k*.bin")).read_bytes().decode("latin-1"))
    for kernel, spills in re.findall(r"kernel (\w+)\s+compiled SIMD\d+ allocated \d+ regs and spilled around (\d+)", log):
        kernels[kernel]["spills"] = int(spills)
    return seconds, wrong, kernels


def intel_kernels(binary):
    kernels = {}
    described = binary[binary.find("\nkernels:\n"):].split("\nkernels_misc_info:")[0]
    for block in re.split(r"(?m)^  - name: +", described)[1:]:
        numbers = {key: int(number) for key, number in re.findall(r"\b(grf_count|simd_size|slm_size): +(\d+)", block)}
        scratch = sum(map(int, re.findall(r"type: +scratch\s+usage: +\w+\s+size: +(\d+)", block)))
        kernels[block.split()[0].strip("'")] = {"registers": numbers.get("grf_count", 0), "lanes": numbers.get("simd_size", 0),
                                                "local": numbers.get("slm_size", 0), "scratch": scratch, "spills": 0}
    return kernels


class Builds:
    """Compiles programs, each text once for each target."""

    def __init__(self, jobs):
        self.pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self.known = {}

    def start(self, text, options, compiler, target):
        key = text, options, target
        if key not in self.known:
            self.known[key] = self.pool.submit(self.build, text, options, compiler, target)
        return self.known[key]

    @staticmethod
    def build(text, options, compiler, target):
        with tempfile.TemporaryDirectory(prefix="dlprim_offline_") as folder:
            folder = pathlib.Path(folder)
            (folder / "k.cl").write_text(text)
            how = compile_clang if compiler == "clang" else compile_ocloc
            return how(folder / "k.cl", options, target, folder)


def rows_of(device, target, programs):
    """A row for each kernel that a plan launches, or for each program that does not build."""
    for program, build in programs:
        seconds, wrong, numbers = build.result() if build else (0, "", {})
        launches = collections.defaultdict(list)
        for kernel in program["kernels"]:
            launches[kernel["name"]].append(kernel)
        for name, calls in launches.items():
            row = {"device": device["name"], "target": target, "program": program["name"], "kernel": name, "options": program["options"],
                   "engines": sorted({call["engine"] for call in calls}), "nodes": len(calls), "example": calls[0]["node"],
                   "net": calls[0]["net"], "items": max(functools.reduce(lambda a, b: a * b, call["local"]) for call in calls),
                   "seconds": round(seconds, 2), "wrong": wrong, **numbers.get(name, {"spills": 0})}
            if "lanes" in row:
                row["waves"] = intel_waves(row, device)
            row["faults"] = faults_of(row, device)
            yield row


def intel_waves(row, device):
    """Threads of an execution unit, of which eight share 64 KiB of local memory."""
    if not row["local"]:
        return device["max_waves"]
    threads = max(1, row["items"] // row["lanes"])
    return min(device["max_waves"], max(1, (64 << 10) // row["local"] * threads // 8))


def faults_of(row, device):
    """Sentences about what must not be: with them --check fails."""
    faults = [row["wrong"]] if row["wrong"] else []
    if row["spills"]:
        faults.append(f"{row['spills']} spills")
    if row["items"] > device["max_work_group"]:
        faults.append(f"a work-group of {row['items']} work-items, where the device allows {device['max_work_group']}")
    if row.get("local", 0) > device["local_kib"] << 10:
        faults.append(f"{row['local']} bytes of local memory, where the device has {device['local_kib'] << 10}")
    return faults


def few_waves(row, device):
    return row.get("waves", device["wanted_waves"]) < device["wanted_waves"]


def cells(*values):
    return "| " + " | ".join("" if value is None else str(value) for value in values) + " |"


def print_tables(results, show_all):
    print(cells("device", "compiled by", "programs", "kernels", "do not build", "spill", "beyond a limit", "fewer waves than wanted", "seconds"))
    print("|" + "---|" * 9)
    for device, target, rows, programs, seconds in results:
        beyond = sum(any("device" in fault for fault in row["faults"]) for row in rows)
        counts = [sum(map(bool, each)) for each in ((row["wrong"] for row in rows), (row["spills"] for row in rows),
                                                    (few_waves(row, device) for row in rows))]
        wrong, spill, few = counts if target != "none" else "---"
        by = target if target != "none" else "by rule, not compiled"
        print(cells(device["name"], by, programs, len(rows), wrong, spill, beyond, few, round(seconds)))
    print()
    print(cells("device", "kernel", "engine", "launches", "options", "work-items", "registers", "spills", "scratch", "local", "waves", "what is wrong"))
    print("|" + "---|" * 12)
    for device, target, rows, *_ in results:
        for row in rows:
            if show_all or row["faults"] or few_waves(row, device):
                print(cells(f"{device['name']} ({target})", row["kernel"], ", ".join(row["engines"]), row["nodes"],
                            f"`{tile_of(row['options'])}`", row["items"], row.get("registers"), row["spills"], row.get("scratch"),
                            row.get("local"), row.get("waves"), "; ".join(row["faults"])))


def tile_of(options):
    """The options that shape a tile."""
    return " ".join(re.findall(r"-D((?:TX|TY|GM|GN|BK|SG|TM|TN|GROUPS|TILE\w*|ROWS|COLUMNS|KERNEL_[HW])=\S+)", options))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("nets", nargs="+", metavar="NET")
    parser.add_argument("-d", "--device", action="append", required=True, metavar="FILE", help="a file of databases/devices")
    parser.add_argument("--train", action="store_true", help="programs of a training step, not of inference")
    parser.add_argument("--also", action="append", default=[], metavar="COMPILER:TARGET")
    parser.add_argument("--tune", default=ROOT / "build/tools/dlprim_tune", metavar="PATH", help="dlprim_tune (build/tools/dlprim_tune)")
    parser.add_argument("--json", metavar="FILE", help="write all numbers there")
    parser.add_argument("--all", action="store_true", help="show all kernels")
    parser.add_argument("--check", action="store_true", help="end with 1 where a table has a fault")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    return parser.parse_args()


def targets_of(device, also):
    """(compiler, target) pairs; the compiler is None where nothing is compiled."""
    if device["compiler"] == "none":
        return [(None, "none")]
    return [(device["compiler"], device["target"])] + [(a, b) for a, b in (each.split(":", 1) for each in also) if a == device["compiler"]]


def main():
    arguments = parse_arguments()
    builds, results = Builds(arguments.jobs), []
    for file in arguments.device:
        device = json.loads(pathlib.Path(file).read_text())
        for compiler, target in targets_of(device, arguments.also):
            if compiler and not shutil.which(COMPILERS[compiler]):
                sys.exit(f"offline.py: {COMPILERS[compiler]} is not installed, which compiles for {device['name']}")
            start = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="dlprim_offline_") as folder:
                folder = pathlib.Path(folder)
                programs = write_kernels(arguments.tune, file, arguments.nets, arguments.train, folder)
                started = [(program, compiler and builds.start((folder / program["file"]).read_text(), program["options"], compiler, target))
                           for program in programs]
                rows = list(rows_of(device, target, started))
            results.append((device, target, rows, len(programs), time.monotonic() - start))
    print_tables(results, arguments.all)
    if arguments.json:
        everything = [{"device": device["name"], "target": target, "rows": rows} for device, target, rows, *_ in results]
        pathlib.Path(arguments.json).write_text(json.dumps(everything, indent=1) + "\n")
    return int(arguments.check and any(row["faults"] for _, _, rows, *_ in results for row in rows))


if __name__ == "__main__":
    sys.exit(main())
