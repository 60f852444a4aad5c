#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times networks on a GPU, side by side: dlprim through OpenCL, PyTorch through CUDA.

    benchmarks/gpu.py [NET ...] [-d gpu] [--batch 64] [--precision fp32 tf32 fp16] [--compile]
    benchmarks/gpu.py --others

Inference and a training step with Adam (PyTorch's fused one), in each precision asked for. fp32 is strict: TF32 is off.
fp16 and bf16 are PyTorch's autocast, fp16's steps with its gradient scaler. PyTorch runs eagerly, in NCHW and in
channels_last, and the better time counts; --compile adds torch.compile, likewise. --others runs what nothing was tuned
for: wide_resnet50_2 and densenet121, and resnet50 at batch 24 with images of 192x192. MiB: dlprim's plan at its peak;
the most that PyTorch has allocated. Prints tables in markdown.
"""
import argparse
import contextlib
import pathlib
import tempfile

import common

OTHERS = [("wide_resnet50_2", 64, None), ("densenet121", 64, None), ("resnet50", 24, 192)]


@contextlib.contextmanager
def torch_precision(precision):
    """PyTorch as it is run in a precision."""
    import torch
    tf32 = precision != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    if precision in ("fp32", "tf32"):
        yield
    else:
        with torch.autocast("cuda", dtype=torch.float16 if precision == "fp16" else torch.bfloat16):
            yield


def torch_result(arguments, what, precision, training, compiled):
    import torch
    net, batch, size = what
    times, most = [], []
    with torch_precision(precision):
        for channels_last in (False, True):
            torch.cuda.reset_peak_memory_stats()
            run = common.torch_batch(net, batch, training, "cuda", channels_last, compiled, size, precision == "fp16")
            times.append(common.median_ms(run, arguments.iterations, arguments.warmup))
            most.append(torch.cuda.max_memory_allocated() / (1 << 20))
            del run
            torch.cuda.empty_cache()
    best = times.index(min(times))
    return {"ms": times[best], "mib": most[best]}


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
    parser.add_argument("-i", "--iterations", type=int, default=30)
    parser.add_argument("-w", "--warmup", type=int, default=10)
    arguments = parser.parse_args()
    about = common.library_version(arguments.benchmark)
    columns = ["dlprim"]
    try:
        import torch
        if not torch.cuda.is_available():
            raise ImportError("PyTorch sees no CUDA device")
        torch.backends.cudnn.benchmark = True
        columns.append("PyTorch")
        about = f"{torch.cuda.get_device_name(0)}; {about}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}"
        if arguments.compile:
            columns.append("PyTorch compiled")
    except ImportError as error:
        about += f" alone: {error}"
    print(about + ".\n", flush=True)
    workloads = OTHERS if arguments.others else [(net, arguments.batch, None) for net in arguments.nets]
    modes = ([] if arguments.no_inference else [False]) + ([] if arguments.no_training else [True])
    for precision in arguments.precision:
        for training in modes:
            table = common.Table(columns)
            for what in workloads:
                net, batch, size = what
                label = f"{net}, batch {batch}" + (f", {size}x{size}" if size else "")
                results = {"dlprim": common.attempt(f"dlprim {label}",
                                                    lambda: dlprim_result(arguments, what, precision, training))}
                for column in columns[1:]:
                    results[column] = common.attempt(f"{column} {label}", lambda: torch_result(
                        arguments, what, precision, training, column.endswith("compiled")))
                table.add(label, results)
            table.print(f"{'Training step with Adam' if training else 'Inference'}, {precision}")
            print(flush=True)


if __name__ == "__main__":
    main()
