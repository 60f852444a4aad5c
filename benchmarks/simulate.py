#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Simulates a training step on a described cluster by SimGrid, beside what dlprim_scale predicts for it.

    benchmarks/simulate.py NET.json --cluster cluster.json -B 64 -n 8,64,1024

The cluster is that of dlprim_scale (docs/scale.md), whose --json also says when which part of the gradients is ready. The
library's plan of levels and its transport, with the plugin for MPI, then exchange these parts between simulated ranks
(tests/simulation); devices are timers. -n are the numbers of devices; they fill the members of each level alike.

Efficiency is the time of a device that computes its own shards alone, by that of the simulated step.

Needs SimGrid (scripts/install_deps.sh simulation). Prints a table in markdown; --json FILE keeps all that was found.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from common import ROOT, output_of

SOURCES = ["tests/simulation/simulate.cpp", "tests/simulation/exchange.cpp", "tests/simulation/cluster.cpp",
           "tests/simulation/description.cpp", "tests/simulation/level_transport.cpp", "src/collective/processes/transport.cpp",
           "src/collective/processes/sum_check.cpp", "src/collective/processes/level_plan.cpp", "src/base/text.cpp",
           "src/base/synonyms.cpp"]
PLATFORM = ["tests/simulation/platform.cpp", "tests/simulation/description.cpp"]
# A plain model of links: bytes by bandwidth, and latency. Messages that the sender leaves behind make SimGrid slow.
OPTIONS = ["network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:1e18", "network/weight-S:0",
           "network/latency-factor:1", "network/bandwidth-factor:1", "smpi/simulate-computation:no",
           "smpi/send-is-detached-thresh:0", "smpi/privatization:no", "contexts/stack-size:256", "contexts/guard-size:0"]


class NoSimGrid(Exception):
    pass


def build(folder):
    """The program of the ranks, and the library that describes the platform."""
    if not (shutil.which("smpicxx") and shutil.which("smpirun")):
        raise NoSimGrid("SimGrid is not installed: scripts/install_deps.sh simulation")
    flags = ["-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-DSMPI_NO_OVERRIDE_MALLOC",
             *(f"-I{ROOT / name}" for name in ("tests", "src", "include"))]
    output_of(["smpicxx", *flags, *(str(ROOT / name) for name in SOURCES), "-o", str(folder / "simulate")])
    output_of(["c++", *flags, "-fPIC", "-shared", *(str(ROOT / name) for name in PLATFORM), "-o",
               str(folder / "platform.so"), "-lsimgrid"])


def description(cluster, profile, devices, direct=False, fold=1):
    """The words that tests/simulation/description.hpp reads; `profile` is what dlprim_scale has written."""
    device = cluster.get("device", {})
    words = {"devices": devices, "shards": profile["shards"], "forward": profile["forward_ms"] * 1e-3,
             "backward": profile["backward_ms"] * 1e-3, "update": profile["update_ms"] * 1e-3,
             "memory": device.get("gbytes_per_s", 0) * 1e9, "wake": device.get("wake_us", 0) * 1e-6,
             "copies": device.get("copies_gbytes_per_s", 0) * 1e9,
             "digests": device.get("digests_gbytes_per_s", 0) * 1e9, "direct": int(direct), "fold": fold}
    lines = [f"{key} {value!r}" for key, value in words.items()]
    for index, level in enumerate(cluster.get("levels", []), 1):
        name = level.get("name", f"level {index}").replace(" ", "_")
        lines.append(f"level {name} {level['count']} {level['gbytes_per_s'] * 1e9!r} "
                     f"{level.get('latency_us', 0) * 1e-6!r} {level.get('way', 'transport')}")
    lines += [f"part {part['bytes']!r} {part['ready_ms'] * 1e-3!r}" for part in profile["parts"]]
    return "\n".join(lines) + "\n"


def simulate(folder, text, devices):
    """What rank 0 reports of a step, and how long the simulation took."""
    (folder / "step.txt").write_text(text)
    (folder / "hosts.txt").write_text("".join(f"rank-{rank}\n" for rank in range(devices)))
    begin = time.monotonic()
    done = subprocess.run(
        ["smpirun", "-np", str(devices), "-hostfile", str(folder / "hosts.txt"), "-platform", str(folder / "platform.so"),
         *(f"--cfg={option}" for option in OPTIONS), "--log=root.thres:error", str(folder / "simulate")],
        capture_output=True, text=True, env=os.environ | {"DLPRIM_SIMULATION": str(folder / "step.txt")})
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or len(lines) != 1:
        raise RuntimeError(f"smpirun ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
    result = json.loads(lines[0])
    if not (result["sums_are_right"] and result["ranks_agree"]):
        raise RuntimeError(f"the simulated exchange adds up something else: {lines[0]}")
    return result | {"simulated_s": time.monotonic() - begin}


def profile_of(arguments, folder, devices):
    """What dlprim_scale says about a batch with a shard for each device."""
    path = folder / "scale.json"
    output_of([arguments.scale, arguments.net, "--cluster", arguments.cluster, "-B", str(arguments.batch), "--shards",
               str(devices * arguments.shards), "-n", str(devices), "--json", str(path),
               *(["--direct"] if arguments.direct else []), *(["-d", arguments.device] if arguments.device else [])])
    return json.loads(path.read_text())


def bound_of(result, compute):
    """What the exchange of rank 0 spent most of its time on; computing, if that is longer."""
    seconds = {name: value for name, value in result["seconds"].items() if name != "wait"}
    most = max(seconds, key=seconds.get, default="compute")
    return "compute" if not seconds or compute >= seconds[most] else most


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("net")
    parser.add_argument("--cluster", required=True)
    parser.add_argument("-B", dest="batch", type=int, default=64)
    parser.add_argument("-d", dest="device", help="measure the profile on this device")
    parser.add_argument("-n", dest="devices", default="2", help="numbers of devices: 2,8,64")
    parser.add_argument("--shards", type=int, default=1, help="of each device")
    parser.add_argument("--direct", action="store_true", help="all devices exchange with all")
    parser.add_argument("--fold", type=int, default=16,
                        help="a simulated byte stands for so many, which saves memory; headers take longer")
    parser.add_argument("--scale", default=str(ROOT / "build/tools/dlprim_scale"))
    parser.add_argument("--json")
    arguments = parser.parse_args()
    cluster = json.loads(pathlib.Path(arguments.cluster).read_text())
    found = []
    print("| devices | simulated, ms | efficiency | wait, ms | exchange, ms | most of it | predicted, ms | by simulated | "
          "messages | took, s |\n|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        build(folder)
        for devices in (int(word) for word in arguments.devices.split(",")):
            profile = profile_of(arguments, folder, devices)
            point = profile["points"][0]
            text = description(cluster, profile, devices, arguments.direct, arguments.fold)
            result = simulate(folder, text, devices)
            computing = arguments.shards * (profile["forward_ms"] + profile["backward_ms"])
            efficiency = (computing + profile["update_ms"]) / result["step_ms"]
            bound = bound_of(result, computing * 1e-3)
            messages = sum(stage["messages"] for stage in result["stages"])
            print(f"| {devices} | {result['step_ms']:.3f} | {efficiency:.3f} | {result['wait_ms']:.3f} | "
                  f"{result['exchange_ms']:.3f} | {bound} | {point['step_ms']:.3f} | "
                  f"{point['step_ms'] / result['step_ms']:.3f} | {messages} | {result['simulated_s']:.1f} |", flush=True)
            found.append({"profile": profile, "simulated": result, "efficiency": efficiency})
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    try:
        main()
    except (RuntimeError, NoSimGrid) as error:
        sys.exit(f"simulate.py: {error}")
