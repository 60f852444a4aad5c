#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One measurement of PyTorch on a CUDA device: what gpu.py starts for each network, precision and form.

Prepares the network, with --compiled by torch.compile, which takes up to minutes and may run beside others that prepare
themselves; says "ready"; and waits for a line on standard input. Then it measures, alone on the device, and prints
{"ms": the median batch, "mib": the most that PyTorch has allocated}. With no line it ends without.
"""
import argparse
import contextlib
import json
import sys

import common

NARROW = {"fp16": "float16", "bf16": "bfloat16"}


def context_of(torch, precision, training):
    """PyTorch as it is run in a precision."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    if training and precision in NARROW:
        return torch.autocast("cuda", dtype=getattr(torch, NARROW[precision]))
    return contextlib.nullcontext()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("net")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--size", type=int, help="of images, where not the network's own")
    parser.add_argument("--precision", required=True, choices=["fp32", "tf32", "fp16", "bf16"])
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("-i", "--iterations", type=int, required=True)
    parser.add_argument("-w", "--warmup", type=int, required=True)
    arguments = parser.parse_args()
    import torch
    cudnn = torch.backends.cudnn
    stored = None if arguments.training else NARROW.get(arguments.precision)
    # Graphs of launches, which small batches gain by, hold cuDNN's algorithms from the first run on.
    graphs = arguments.compiled and arguments.batch < 8
    mode = ("reduce-overhead" if graphs else "default") if arguments.compiled else None
    with context_of(torch, arguments.precision, arguments.training):
        run = common.torch_batch(arguments.net, arguments.batch, arguments.training, "cuda", arguments.channels_last,
                                 compiled=mode, size=arguments.size, scaled=arguments.precision == "fp16", stored=stored)
        if arguments.compiled:
            # Otherwise it must not choose them by times taken beside others; what is chosen is kept by its settings, so
            # that these ones leave the choice open.
            cudnn.benchmark, cudnn.deterministic = False, True
            run()
            torch.cuda.empty_cache()
        print("ready", flush=True)
        if not sys.stdin.readline():
            return
        cudnn.benchmark, cudnn.deterministic = True, False
        torch.cuda.reset_peak_memory_stats()
        ms = common.median_ms(run, arguments.iterations, arguments.warmup)
    print(json.dumps({"ms": ms, "mib": torch.cuda.max_memory_allocated() / (1 << 20)}), flush=True)


if __name__ == "__main__":
    main()
