#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times attention by dlprim_benchmark beside PyTorch's scaled_dot_product_attention on a CUDA device.

    benchmarks/attention.py -d gpu --command build/tools/dlprim_benchmark
    benchmarks/attention.py -d gpu --sizes 8,16,1024,64 2,6,577,80 --precisions fp32 fp16 --causal

A size is batch, heads, positions, features. The two take turns, --rounds times; the table has medians in ms, the ratio of
PyTorch's time to ours, and the engine that the planner chose. --errors compares one head's results, and PyTorch's, with
attention in double: the root mean square of the difference over that of the result. That needs h5py and dlprim_run, which
is looked for beside dlprim_benchmark. --training times forward and backward, of parameters q, k and v in the precision's type, in
front of a mean squared error, whose own nodes do not count.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

import common

SIZES = [
    "8,16,1024,64",
    "2,16,4096,64",
    "8,16,1024,128",
    "1,16,16384,64",
    "4,6,577,80",
    "8,20,197,64",
    "2,3,1500,96",
    "16,12,77,40",
]
TORCH_TYPES = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def network(shape: list[int], causal: bool, training: bool, precision: str) -> dict[str, Any]:
    """Attention of inputs, stored as PyTorch's are; or, in training, of parameters, whose gradients are computed."""
    names = ["q", "k", "v"]
    attention = {
        "name": "attention",
        "type": "Attention",
        "inputs": names,
        "outputs": ["y"],
        "options": {"is_causal": causal},
    }
    if not training:
        return {
            "inputs": [{"name": name, "shape": shape, "dtype": TORCH_TYPES[precision]} for name in names],
            "outputs": ["y"],
            "operators": [attention],
        }

    def cast(source: str, to: str, dtype: str) -> dict[str, Any]:
        return {"name": f"cast_{to}", "type": "Cast", "inputs": [source], "outputs": [to], "options": {"dtype": dtype}}

    parameters = [
        {"name": f"of_{name}", "type": "Parameter", "inputs": [], "outputs": [f"{name}0"], "options": {"shape": shape}}
        for name in names
    ]
    casts = [cast(f"{name}0", name, TORCH_TYPES[precision]) for name in names]
    loss = {"name": "loss", "type": "MSELoss", "inputs": ["y0", "target"], "outputs": ["loss"]}
    return {
        "inputs": [{"name": "target", "shape": shape}],
        "outputs": ["loss"],
        "operators": [*parameters, *casts, attention, cast("y", "y0", "float32"), loss],
    }


def dlprim_ms(arguments: argparse.Namespace, net: pathlib.Path, batch: int, precision: str) -> tuple[float, str]:
    """The time of the launches of attention's nodes, as CUDA's events take PyTorch's, and the engines of these nodes."""
    more = ["-t", "--precision", precision, *(["-b"] if arguments.training else [])]
    more += ["--engine", f"Attention={arguments.engine}"] if arguments.engine else []
    record = common.dlprim_result(arguments.command, arguments.device, net, batch, False, 20, 5, more)
    nodes = [node for node in record["nodes"] if node["name"].startswith("attention")]
    engines = dict.fromkeys(node["engine"] for node in nodes)
    return sum(node["ms"] for node in nodes), " ".join(filter(None, engines))


def torch_ms(shape: list[int], causal: bool, precision: str, training: bool) -> float:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    dtype = getattr(torch, TORCH_TYPES[precision])
    q, k, v = (torch.randn(shape, device="cuda", dtype=dtype, requires_grad=training) for _ in range(3))
    dy = torch.randn(shape, device="cuda", dtype=dtype)

    def run() -> None:
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        if training:
            torch.autograd.grad(y, (q, k, v), dy)

    for _ in range(5):
        run()
    times = []
    for _ in range(20):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def errors(
    arguments: argparse.Namespace, shape: list[int], causal: bool, precision: str, folder: pathlib.Path
) -> tuple[float, float]:
    """Of ours and of PyTorch's result for the first head."""
    import h5py
    import torch

    shape = [1, 1, *shape[2:]]
    torch.manual_seed(shape[2])
    inputs = [torch.randn(shape, dtype=torch.float64) for _ in range(3)]
    dtype = getattr(torch, TORCH_TYPES[precision])
    inputs = [x.to(dtype) for x in inputs]
    wanted = torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in inputs), is_causal=causal)
    theirs = torch.nn.functional.scaled_dot_product_attention(*(x.cuda() for x in inputs), is_causal=causal).cpu()
    net = folder / "one.json"
    net.write_text(json.dumps(network(shape, causal, False, precision)))
    with h5py.File(folder / "in.h5", "w") as file:
        for name, x in zip("qkv", inputs):
            file[name] = x.float().numpy()
    engine = ["--engine", f"Attention={arguments.engine}"] if arguments.engine else []
    subprocess.run(
        [
            str(pathlib.Path(arguments.command).with_name("dlprim_run")),
            "-d",
            arguments.device,
            str(net),
            "--inputs",
            str(folder / "in.h5"),
            "--outputs",
            str(folder / "out.h5"),
            "--precision",
            precision,
            *engine,
        ],
        check=True,
        capture_output=True,
    )
    with h5py.File(folder / "out.h5") as file:
        found = file["y"][()]
        ours = (
            torch.from_numpy(found.view("int16")).view(torch.bfloat16)
            if precision == "bf16"
            else torch.from_numpy(found)
        )

    def error(found: Any) -> float:
        return float((found.double() - wanted).pow(2).mean().sqrt() / wanted.pow(2).mean().sqrt())

    return error(ours), error(theirs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--device", default="gpu")
    parser.add_argument("--command", default="build/tools/dlprim_benchmark")
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--precisions", nargs="+", default=["fp32"], choices=list(TORCH_TYPES))
    parser.add_argument("--training", action="store_true", help="forward and backward")
    parser.add_argument("--causal", action="store_true", help="also causal attention")
    parser.add_argument("--engine", help="the engine to force")
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("| size | causal | precision | PyTorch | dlprim | ratio | engines | error, PyTorch's |")
    print("|---|---|---|---:|---:|---:|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for size in arguments.sizes:
            shape = [int(number) for number in size.split(",")]
            for causal in [False, True] if arguments.causal else [False]:
                net = folder / "net.json"
                for precision in arguments.precisions:
                    net.write_text(json.dumps(network(shape, causal, arguments.training, precision)))
                    ours, theirs, engines, found = [], [], "", ""
                    try:
                        for _ in range(arguments.rounds):
                            theirs.append(torch_ms(shape, causal, precision, arguments.training))
                            ms, engines = dlprim_ms(arguments, net, shape[0], precision)
                            ours.append(ms)
                        if arguments.errors:
                            found = "{:.1e}, {:.1e}".format(*errors(arguments, shape, causal, precision, folder))
                    except (RuntimeError, subprocess.CalledProcessError) as error:
                        print(f"{size} {precision}: {error}", file=sys.stderr)
                        continue
                    mine, other = statistics.median(ours), statistics.median(theirs)
                    print(
                        f"| {' x '.join(map(str, shape))} | {'yes' if causal else 'no'} | {precision} | {other:.3f} | {mine:.3f} |"
                        f" {other / mine:.2f} | {engines} | {found} |",
                        flush=True,
                    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
