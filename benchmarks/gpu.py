#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times networks on a GPU, side by side: dlprim through OpenCL, PyTorch through CUDA.

    benchmarks/gpu.py [NET ...] [-d gpu] [--batch 64] [--precision fp32 tf32 fp16] [--compile]
    benchmarks/gpu.py --others
    benchmarks/gpu.py --all

Inference and a training step with Adam (PyTorch's fused one), in each precision asked for. fp32 is strict: TF32 is off.
PyTorch's inference in fp16 and bf16 has parameters and images of that type, its steps are autocast, fp16's with its
gradient scaler. PyTorch runs eagerly, in NCHW and in channels_last, and the better time counts; --compile adds
torch.compile in channels_last. Networks are prepared beside each other, then measured one by one (gpu_peer.py).

--others runs what nothing was tuned for: wide_resnet50_2 and densenet121, and resnet50 at batch 24 with images of
192x192. --all runs NETs in fp32, tf32 and fp16 beside all of PyTorch's forms, resnet18 at batch 1 (there torch.compile
makes graphs of launches), --others, and NETs by portable engines alone.

MiB: dlprim's plan at its peak; the most that PyTorch has allocated. Prints tables in markdown.
"""
import argparse
import concurrent.futures
import os
import pathlib
import sys
import tempfile
import time

import common

EAGER, COMPILED = "PyTorch", "PyTorch compiled"
PORTABLE = "wgmma=0,mma=0"  # DLPRIM_TRAITS without matrix instructions
OTHERS = [("wide_resnet50_2", 64, None), ("densenet121", 64, None), ("resnet50", 24, 192)]


def prepare(arguments, what, precision, training, channels_last, compiled):
    """A process of gpu_peer.py, which prepares itself from its start on."""
    net, batch, size = what
    command = [sys.executable, str(pathlib.Path(__file__).with_name("gpu_peer.py")), net, "--batch", str(batch),
               "--precision", precision, "-i", str(arguments.iterations), "-w", str(max(arguments.warmup, 2))]
    command += ["--size", str(size)] if size else []
    command += [flag for flag, on in (("--training", training), ("--channels-last", channels_last), ("--compiled", compiled))
                if on]
    return common.Prepared(command)


def start(arguments, workloads, precision, training, compiled):
    """Peers that prepare themselves: workload -> a list of them, the forms of which the better one counts. Compiled ones
    are in channels_last alone, which they do best in."""
    return {what: [prepare(arguments, what, precision, training, channels_last, compiled)
                   for channels_last in ((True,) if compiled else (False, True))] for what in workloads}


def await_ready(peers, column, deadline):
    """Waits until they are prepared; those that cannot be, or not by the deadline, are left out."""
    for what, forms in peers.items():
        forms[:] = [peer for peer in forms if common.attempt(
            f"{column} {what[0]}", lambda peer=peer: peer.expect_line(max(deadline - time.monotonic(), 1)))]


def best_result(peers):
    """Of PyTorch's forms the faster one."""
    results = [peer.result() for peer in peers]
    return min(results, key=lambda result: result["ms"]) if results else None


def dlprim_result(arguments, what, precision, training):
    net, batch, size = what
    path = common.ROOT / "examples/nets" / (net + ".json")
    with tempfile.TemporaryDirectory() as folder:
        if size or not path.exists():
            import torchvision_net
            path = pathlib.Path(folder) / (net + ".json")
            torchvision_net.write_json(path, torchvision_net.export(net, batch, True, True, size=size)[0])
        result = common.dlprim_result(arguments.benchmark, arguments.device, path, batch, training, arguments.iterations,
                                      arguments.warmup, ["--precision", precision])
    return {"ms": result["ms_per_batch"]["median"], "mib": result["planned_peak_bytes"] / (1 << 20)}


def measure(arguments, columns, workloads, tables, head=""):
    """Prints a table for each (precision, training) of `tables`, with a row a workload."""
    deadline = time.monotonic() + arguments.prepare_limit
    compiled = {}
    if COMPILED in columns:
        compiled = {table: start(arguments, workloads, *table, True) for table in tables}
    # Its first runs compile kernels, beside the peers.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda run: common.attempt(f"dlprim {run[0][0]}", lambda: dlprim_result(arguments, *run)),
                      [(what, *table) for table in tables for what in workloads]))
    for peers in compiled.values():
        await_ready(peers, COMPILED, deadline)
    for precision, training in tables:
        table = common.Table(columns)
        eager = start(arguments, workloads, precision, training, False) if EAGER in columns else {}
        await_ready(eager, EAGER, time.monotonic() + arguments.prepare_limit)
        for what in workloads:
            net, batch, size = what
            label = f"{net}, batch {batch}" + (f", {size}x{size}" if size else "")
            results = {"dlprim": common.attempt(f"dlprim {label}",
                                                lambda: dlprim_result(arguments, what, precision, training))}
            for column, peers in zip(columns[1:], (eager, compiled.get((precision, training)))):
                results[column] = common.attempt(f"{column} {label}", lambda: best_result(peers[what]))
            table.add(label, results)
        table.print(head + f"{'Training step with Adam' if training else 'Inference'}, {precision}")
        print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", default=common.NETS)
    parser.add_argument("--benchmark", default=common.BENCHMARK, help="dlprim's command")
    parser.add_argument("-d", "--device", default="gpu", help="dlprim's device")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", nargs="+", default=["fp32"], choices=["fp32", "tf32", "fp16", "bf16"])
    parser.add_argument("--others", action="store_true", help="what nothing was tuned for, instead of NETs")
    parser.add_argument("--no-training", action="store_true")
    parser.add_argument("--no-inference", action="store_true")
    parser.add_argument("--compile", action="store_true", help="torch.compile, too; takes minutes")
    parser.add_argument("--prepare-limit", type=float, default=900, help="seconds that peers may prepare themselves for")
    parser.add_argument("--all", action="store_true", help="all of it: see above")
    parser.add_argument("-i", "--iterations", type=int, default=30)
    parser.add_argument("-w", "--warmup", type=int, default=10)
    arguments = parser.parse_args()
    about = common.library_version(arguments.benchmark)
    columns = ["dlprim"]
    try:
        import torch
        if not torch.cuda.is_available():
            raise ImportError("PyTorch sees no CUDA device")
        columns.append(EAGER)
        about = f"{torch.cuda.get_device_name(0)}; {about}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
        if arguments.compile or arguments.all:
            columns.append(COMPILED)
    except ImportError as error:
        about += f" alone: {error}"
    print(about + ".\n", flush=True)
    nets = [(net, arguments.batch, None) for net in arguments.nets]
    modes = ([] if arguments.no_inference else [False]) + ([] if arguments.no_training else [True])
    if not arguments.all:
        tables = [(precision, training) for precision in arguments.precision for training in modes]
        measure(arguments, columns, OTHERS if arguments.others else nets, tables)
        return
    measure(arguments, columns, nets, [(precision, training) for precision in ("fp32", "tf32", "fp16") for training in modes])
    measure(arguments, columns, [("resnet18", 1, None)], [("fp32", False), ("fp16", False)])
    measure(arguments, columns[:2], OTHERS, [(precision, training) for precision in ("fp32", "fp16") for training in modes])
    os.environ["DLPRIM_TRAITS"] = PORTABLE
    measure(arguments, columns[:1], nets, [("fp32", training) for training in modes], "Portable engines alone. ")


if __name__ == "__main__":
    main()
