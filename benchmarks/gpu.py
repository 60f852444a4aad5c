#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times networks on a GPU, side by side: dlprim through OpenCL, PyTorch through CUDA.

    benchmarks/gpu.py [NET ...] [-d gpu] [--batch 64] [--compile]

Inference and a training step with Adam (PyTorch's fused one), in strict fp32: TF32 is off on both sides. PyTorch
runs eagerly, in NCHW and in channels_last, and the better time counts; --compile adds torch.compile, likewise.
Prints tables in markdown.
"""
import argparse

import common


def torch_result(arguments, net, training, compiled):
    import torch
    times = []
    for channels_last in (False, True):
        times.append(common.median_ms(common.torch_batch(net, arguments.batch, training, "cuda", channels_last, compiled),
                                      arguments.iterations, arguments.warmup))
        torch.cuda.empty_cache()
    return {"ms": min(times)}


def dlprim_result(arguments, net, training):
    path = common.ROOT / "examples/nets" / (net + ".json")
    result = common.dlprim_result(arguments.benchmark, arguments.device, path, arguments.batch, training,
                                  arguments.iterations, arguments.warmup)
    return {"ms": result["ms_per_batch"]["median"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", default=common.NETS)
    parser.add_argument("--benchmark", default=common.BENCHMARK, help="dlprim's command")
    parser.add_argument("-d", "--device", default="gpu", help="dlprim's device")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--no-training", action="store_true")
    parser.add_argument("--compile", action="store_true", help="torch.compile, too; takes minutes")
    parser.add_argument("-i", "--iterations", type=int, default=30)
    parser.add_argument("-w", "--warmup", type=int, default=10)
    arguments = parser.parse_args()
    about = common.library_version(arguments.benchmark)
    columns = ["dlprim"]
    try:
        import torch
        if not torch.cuda.is_available():
            raise ImportError("PyTorch sees no CUDA device")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        columns.append("PyTorch")
        about = f"{torch.cuda.get_device_name(0)}; fp32; {about}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
        if arguments.compile:
            columns.append("PyTorch compiled")
    except ImportError as error:
        about += f" alone: {error}"
    print(about + ".\n", flush=True)
    for training in [False] if arguments.no_training else [False, True]:
        table = common.Table(columns)
        for net in arguments.nets:
            results = {"dlprim": common.attempt(f"dlprim {net}", lambda: dlprim_result(arguments, net, training))}
            for column in columns[1:]:
                results[column] = common.attempt(f"{column} {net}", lambda: torch_result(
                    arguments, net, training, column.endswith("compiled")))
            table.add(f"{net}, batch {arguments.batch}", results)
        table.print("Training step with Adam" if training else "Inference")
        print(flush=True)


if __name__ == "__main__":
    main()
