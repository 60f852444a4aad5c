#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times networks on this machine's processor, side by side: dlprim, PyTorch, ONNX Runtime, OpenVINO, ncnn.

    benchmarks/cpu.py [NET ...] [-d opencl] [--threads 2] [--peers torch,onnxruntime,openvino,ncnn] [--json FILE]
    benchmarks/cpu.py --others

Inference at batch 1 (ncnn here alone) and 16 and a training step with Adam at batch 16 (PyTorch alone trains), fp32.
--others runs instead what nothing was tuned for: wide_resnet50_2 and densenet121 at batch 1 and 16, and resnet50 at
batch 24 with images of 192x192. PyTorch runs in NCHW and in channels_last, and its better time counts. Prints the
machine, versions, tables in markdown and each library's settings. Beside a time stands memory: the peak of dlprim's
plan; the growth of a peer's resident memory (cpu_peer.py, which measures each in a process of its own). The others
read files that PyTorch makes and pnnx converts for ncnn, and their outputs are compared with PyTorch's. Peers that are
not installed are left out. Run it on a machine that does nothing else.
"""
import argparse
import importlib.metadata
import json
import os
import pathlib
import sys
import tempfile

import common

# What must be installed for each peer: all need networks, which torchvision makes.
PEERS = {"torch": ["torch"], "onnxruntime": ["torch", "onnxruntime", "onnx"], "openvino": ["torch", "openvino", "onnx"],
         "ncnn": ["torch", "ncnn", "pnnx"]}
OTHERS = [("wide_resnet50_2", 1, None), ("densenet121", 1, None), ("wide_resnet50_2", 16, None),
          ("densenet121", 16, None), ("resnet50", 24, 192)]


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


class Workload:
    """A network, its batch and its images, or None for the network's own size, in inference or training."""

    def __init__(self, net, batch, size, training):
        self.net, self.batch, self.size, self.training = net, batch, size, training
        self.label = f"{net}, batch {batch}" + (f", {size}x{size}" if size else "")

    def peers(self, installed):
        """Those that can run it: PyTorch alone trains, ncnn takes no batches."""
        return [peer for peer in installed
                if (peer == "torch" or not self.training) and (peer != "ncnn" or self.batch == 1)]

    def example(self):
        """The repository's file of it, or None."""
        path = common.ROOT / "examples/nets" / (self.net + ".json")
        return path if not self.size and path.exists() else None


class Run:
    """Measures workloads with the libraries that the command line names, and keeps every record."""

    def __init__(self, arguments, installed):
        self.arguments, self.installed = arguments, installed
        self.records, self.settings = [], {}

    def peer(self, what, workload, folder, *more):
        """The record that cpu_peer.py prints."""
        a = self.arguments
        command = [sys.executable, str(pathlib.Path(__file__).with_name("cpu_peer.py")), what, workload.net, folder,
                   "--batch", str(workload.batch), "--threads", str(a.threads), "-i", str(a.iterations),
                   "-w", str(a.warmup), *more]
        if workload.size:
            command += ["--size", str(workload.size)]
        if workload.training:
            command += ["--training"]
        return json.loads(common.output_of(command).splitlines()[-1])

    def torch(self, workload, folder):
        layouts = [self.peer(layout, workload, folder) for layout in ("torch", "torch_channels_last")]
        return min(layouts, key=lambda record: record["ms"])

    def dlprim(self, workload, folder):
        a = self.arguments
        result = common.dlprim_result(a.benchmark, a.device, workload.example() or pathlib.Path(folder) / "net.json",
                                      workload.batch, workload.training, a.iterations, a.warmup,
                                      [f"--engine={engine}" for engine in a.engine])
        device = f"{result['device']}, driver {result['driver']}"
        engines = [node["engine"] for node in result["nodes"] if node["engine"]]
        threads = ", ".join(f"{name}={os.environ[name]}" for name in ("POCL_MAX_PTHREAD_COUNT", "DLPRIM_THREADS"))
        return {"ms": result["ms_per_batch"]["median"], "mib": result["planned_peak_bytes"] / (1 << 20),
                "engines": {engine: engines.count(engine) for engine in sorted(set(engines))},
                "settings": f"{device}, {threads}, engines and layouts of its planner"
                            + (f" with --engine {' '.join(a.engine)}" if a.engine else "")}

    def measure(self, library, workload, folder):
        if library == "dlprim":
            return self.dlprim(workload, folder)
        return self.torch(workload, folder) if library == "torch" else self.peer(library, workload, folder)

    def row(self, workload):
        """column -> record of the best round, or None."""
        libraries = ["dlprim", *workload.peers(self.installed)]
        files = [library for library in libraries
                 if library != "torch" and (library != "dlprim" or not workload.example())]
        rounds = {library: [] for library in libraries}
        with tempfile.TemporaryDirectory() as folder:
            if files:
                common.attempt(f"files of {workload.label}",
                               lambda: self.peer("prepare", workload, folder, "--for", ",".join(files)))
            for _ in range(self.arguments.rounds):
                for library in libraries:
                    record = common.attempt(f"{library}, {workload.label}",
                                            lambda: self.measure(library, workload, folder))
                    if record:
                        rounds[library].append(record)
                        self.settings.setdefault(library, {})[record["settings"]] = None
        best = {library: min(records, key=lambda record: record["ms"], default=None)
                for library, records in rounds.items()}
        for library, record in best.items():
            if record:
                self.records.append({"library": library, "net": workload.net, "batch": workload.batch,
                                     "size": workload.size, "training": workload.training,
                                     "rounds_ms": [r["ms"] for r in rounds[library]], **record})
        if self.arguments.json:
            self.arguments.json.write_text(json.dumps(self.records, indent=1) + "\n")
        return best

    def table(self, head, workloads):
        columns = [library for library in ["dlprim", *self.installed]
                   if library == "dlprim" or any(library in workload.peers(self.installed) for workload in workloads)]
        table = common.Table(columns)
        for workload in workloads:
            table.add(workload.label, self.row(workload))
        table.print(head)
        print(flush=True)

    def print_settings(self):
        print("Settings, as the libraries report them:\n")
        for library, settings in self.settings.items():
            for text in settings:
                print(f"- {library}: {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", default=common.NETS, help="default: " + " ".join(common.NETS))
    parser.add_argument("--others", action="store_true", help="what nothing was tuned for, instead of NETs and batches")
    parser.add_argument("--benchmark", default=common.BENCHMARK, help="dlprim's command")
    parser.add_argument("-d", "--device", default="opencl", help="dlprim's device; cpu is the host without OpenCL")
    parser.add_argument("--engine", action="append", default=[], help="dlprim_benchmark's, such as Convolution2D=NAME")
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 16], help="of inference")
    parser.add_argument("--train-batch", type=int, default=16, help="0: no training")
    parser.add_argument("--size", type=int, help="of the images; default: each network's own")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-i", "--iterations", type=int, default=10)
    parser.add_argument("-w", "--warmup", type=int, default=3)
    parser.add_argument("-r", "--rounds", type=int, default=1, help="of all libraries in turns; the best counts")
    parser.add_argument("--json", type=pathlib.Path, help="write all that was measured, dlprim's engines too")
    arguments = parser.parse_args()
    peers = [peer for peer in arguments.peers.split(",") if peer]
    if unknown := [peer for peer in peers if peer not in PEERS]:
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    for variable in ("OMP_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT", "DLPRIM_THREADS"):
        os.environ[variable] = str(arguments.threads)
    installed = []
    for peer in peers:
        if missing := [package for package in PEERS[peer] if not version(package)]:
            print(f"{peer} is left out: {', '.join(missing)} not installed", file=sys.stderr)
        else:
            installed.append(peer)
    packages = sorted({package for peer in installed for package in PEERS[peer]} - {"onnx"})
    print(common.machine() + ".")
    print(f"fp32, {arguments.threads} threads; dlprim's device: {arguments.device}; medians of {arguments.iterations} "
          f"after {arguments.warmup}, best of {arguments.rounds} rounds.")
    versions = [common.library_version(arguments.benchmark)] + [f"{package} {version(package)}" for package in packages]
    print(", ".join(versions) + ".\n", flush=True)

    run = Run(arguments, installed)
    try:
        if arguments.others:
            run.table("Inference of what nothing was tuned for", [Workload(*what, False) for what in OTHERS])
            return
        for batch in arguments.batches:
            run.table(f"Inference, batch {batch}",
                      [Workload(net, batch, arguments.size, False) for net in arguments.nets])
        if batch := arguments.train_batch:
            run.table(f"Training step with Adam, batch {batch}",
                      [Workload(net, batch, arguments.size, True) for net in arguments.nets])
    finally:  # of a run that was called off, too
        run.print_settings()


if __name__ == "__main__":
    main()
