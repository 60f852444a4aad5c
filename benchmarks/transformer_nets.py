#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times transformers by dlprim_benchmark beside PyTorch on a CUDA device.

    benchmarks/transformer_nets.py -d gpu --command build/tools/dlprim_benchmark
    benchmarks/transformer_nets.py -d gpu --works gpt2 bert --precisions fp32 fp16 --both --compiled

gpt2 is GPT-2 small with 8 x 1024 words, bert BERT base with 8 x 512 words, vit ViT-B/16 with 64 images, all with random
weights. dlprim's networks are JSON with the operators that PyTorch's models have: Transposes of heads, Attention, InnerProducts.
PyTorch's are those of the packages transformers and torchvision, with scaled_dot_product_attention, eager and by torch.compile,
of which the better counts; in fp16 inference the model is half, in fp16 training it is autocast. All of PyTorch's runs
prepare themselves beside each other in processes of their own; then the two are measured in turns, one by one.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import common

Operators = list[dict[str, Any]]


@dataclasses.dataclass
class Work:
    batch: int
    length: int
    causal: bool
    first: bool  # LayerNorm before attention and before the two layers behind it, not after the sums
    packed: bool  # queries, keys and values are one product
    classes: int
    words: int = 0  # 0: images
    width: int = 768
    heads: int = 12
    layers: int = 12


WORKS = {
    "gpt2": Work(8, 1024, True, True, True, 50257, 50257),
    "bert": Work(8, 512, False, False, False, 2, 30522),
    "bert_short": Work(32, 128, False, False, False, 2, 30522),
    "vit": Work(64, 197, False, True, True, 1000),
}


class Network:
    """Adds operators, each named after its output."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.operators: Operators = []

    def add(self, name: str, kind: str, operands: list[str], **options: Any) -> str:
        self.operators.append({"name": name, "type": kind, "inputs": operands, "outputs": [name], "options": options})
        return name

    def linear(self, name: str, x: str, inputs: int, outputs: int, **options: Any) -> str:
        return self.add(name, "InnerProduct", [x], inputs=inputs, outputs=outputs, **options)

    def heads(self, name: str, x: str) -> str:
        w = self.work
        split = self.add(f"{name}_split", "Reshape", [x], dims=[w.batch, w.length, w.heads, w.width // w.heads])
        return self.add(f"{name}_heads", "Transpose", [split], dims=[0, 2, 1, 3])

    def attention(self, name: str, x: str) -> str:
        w = self.work
        if w.packed:
            packed = self.linear(f"{name}_qkv", x, w.width, 3 * w.width)
            parts = {
                part: self.add(f"{name}_{part}", "Slice", [packed], dim=1, begin=i * w.width, end=(i + 1) * w.width)
                for i, part in enumerate("qkv")
            }
        else:
            parts = {part: self.linear(f"{name}_{part}", x, w.width, w.width) for part in "qkv"}
        q, k, v = (self.heads(f"{name}_{part}", value) for part, value in parts.items())
        y = self.add(f"{name}_attention", "Attention", [q, k, v], is_causal=w.causal)
        turned = self.add(f"{name}_turned", "Transpose", [y], dims=[0, 2, 1, 3])
        rows = self.add(f"{name}_rows", "Reshape", [turned], dims=[w.batch * w.length, w.width])
        return self.linear(f"{name}_out", rows, w.width, w.width)

    def layer(self, name: str, x: str) -> str:
        w = self.work

        def norm(label: str, value: str) -> str:
            return self.add(f"{name}_{label}", "LayerNorm", [value], normalized_shape=[w.width])

        def sum_of(label: str, a: str, b: str) -> str:
            return self.add(f"{name}_{label}", "Elementwise", [a, b], operation="sum")

        made = self.attention(name, norm("norm1", x) if w.first else x)
        x = sum_of("sum1", x, made) if w.first else norm("norm1", sum_of("sum1", x, made))
        wide = self.linear(f"{name}_wide", norm("norm2", x) if w.first else x, w.width, 4 * w.width)
        narrow = self.linear(
            f"{name}_narrow", self.add(f"{name}_gelu", "Activation", [wide], activation="gelu"), 4 * w.width, w.width
        )
        return sum_of("sum2", x, narrow) if w.first else norm("norm2", sum_of("sum2", x, narrow))

    def description(self, training: bool) -> dict[str, Any]:
        w = self.work
        rows = w.batch * w.length
        if w.words:
            inputs = [{"name": "words", "shape": [rows], "dtype": "int32"}]
            x = self.add("x0", "Embedding", ["words"], num_embeddings=w.words, embedding_dim=w.width)
        else:  # of the patches' values
            inputs = [{"name": "patches", "shape": [rows, w.width]}]
            x = self.linear("x0", "patches", w.width, w.width)
        for i in range(w.layers):
            x = self.layer(f"layer{i}", x)
        x = self.add("norm", "LayerNorm", [x], normalized_shape=[w.width])
        logits = self.linear("logits", x, w.width, w.classes, bias=False)
        if training:
            inputs.append({"name": "labels", "shape": [rows], "dtype": "int32"})
            self.add("loss", "SoftmaxWithLoss", [logits, "labels"])
        return {"inputs": inputs, "outputs": ["loss" if training else logits], "operators": self.operators}


def dlprim_ms(
    arguments: argparse.Namespace, net: pathlib.Path, rows: int, precision: str, training: bool
) -> tuple[float, float]:
    """The median of a batch, and the plan's peak in GiB."""
    more = ["--precision", precision]
    record = common.dlprim_result(arguments.command, arguments.device, net, rows, training, 10, 3, more)
    return float(record["ms_per_batch"]["median"]), record["planned_peak_bytes"] / 2**30


def torch_model(name: str, work: Work) -> tuple[Any, Any]:
    """The model, and its input."""
    import torch

    if not work.words:
        import torchvision

        return torchvision.models.vit_b_16(), torch.randn(work.batch, 3, 224, 224)
    import transformers

    words = torch.randint(0, work.words, (work.batch, work.length))
    if work.causal:
        return transformers.GPT2LMHeadModel(
            transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False)
        ), words
    settings = transformers.BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0)
    return transformers.BertForTokenClassification(settings), words


def torch_run(name: str, work: Work, precision: str, training: bool, compiled: bool) -> Callable[[], None]:
    import contextlib

    import torch

    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    half = torch.float16 if precision == "fp16" else torch.bfloat16
    narrow = precision in ("fp16", "bf16")
    model, x = torch_model(name, work)
    model = model.cuda().train(training)
    x = x.cuda()
    if narrow and not training:
        model = model.to(half)
        x = x.to(half) if x.is_floating_point() else x
    forward = torch.compile(model) if compiled else model
    autocast = torch.autocast("cuda", dtype=half) if narrow and training else contextlib.nullcontext()

    def logits() -> Any:
        made = forward(x)
        return getattr(made, "logits", made)

    if not training:

        def infer() -> None:
            with torch.inference_mode():
                logits()

        return infer
    solver = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        solver.zero_grad(set_to_none=True)
        with autocast:
            made = logits()
            made = made.reshape(-1, made.shape[-1])
            loss = torch.nn.functional.cross_entropy(
                made.float(), torch.zeros(made.shape[0], dtype=torch.long, device="cuda")
            )
        loss.backward()
        solver.step()

    return step


def torch_ms(run: Callable[[], None]) -> float:
    import torch

    def batch() -> None:
        run()
        torch.cuda.synchronize()

    torch.cuda.synchronize()
    return float(common.median_ms(batch, 10, 3))


def run_peer(name: str, precision: str, training: bool, compiled: bool) -> None:
    """What a process of `start_peer` does: it prepares PyTorch's network, and measures when a line asks for it."""
    import torch

    run = torch_run(name, WORKS[name], precision, training, compiled)
    if compiled:
        run()
        torch.cuda.empty_cache()
    print("ready", flush=True)
    if not sys.stdin.readline():
        return
    torch.cuda.reset_peak_memory_stats()
    ms = torch_ms(run)
    print(json.dumps({"ms": ms, "gib": torch.cuda.max_memory_allocated() / 2**30}), flush=True)


def start_peer(name: str, precision: str, training: bool, compiled: bool) -> common.Prepared:
    flags = [flag for flag, on in (("--training", training), ("--compiled", compiled)) if on]
    return common.Prepared(
        [sys.executable, str(pathlib.Path(__file__)), "--peer", "--works", name, "--precisions", precision, *flags]
    )


@dataclasses.dataclass
class Measurement:
    """A network in a precision, beside PyTorch's forms of it, which prepare themselves from the start on."""

    name: str
    precision: str
    training: bool
    peers: dict[str, common.Prepared]

    def await_ready(self) -> None:
        for form, peer in list(self.peers.items()):
            label = f"PyTorch {form}, {self.name} {self.precision}"
            if not common.attempt(label, peer.expect_line):
                del self.peers[form]

    def ours(self, arguments: argparse.Namespace) -> tuple[float, float]:
        work = WORKS[self.name]
        with tempfile.TemporaryDirectory() as folder:
            net = pathlib.Path(folder) / f"{self.name}.json"
            net.write_text(json.dumps(Network(work).description(self.training)))
            return dlprim_ms(arguments, net, work.batch * work.length, self.precision, self.training)

    def row(self, arguments: argparse.Namespace) -> str:
        run = f"{self.name} | {'step' if self.training else 'inference'} | {self.precision}"
        theirs = {form: common.attempt(f"PyTorch {form}, {run}", peer.result) for form, peer in self.peers.items()}
        results = {form: result for form, result in theirs.items() if result}
        ours = common.attempt(f"dlprim, {run}", lambda: self.ours(arguments))
        each = "; ".join(f"{results[form]['ms']:.2f}" if form in results else "-" for form in theirs)
        if not ours or not results:
            return f"| {run} | {each} | {ours[0] if ours else '-'} | - | - |"
        best = min(result["ms"] for result in results.values())
        gib = min(result["gib"] for result in results.values())
        return f"| {run} | {each} | {ours[0]:.2f} | {best / ours[0]:.2f} | {gib:.1f}, {ours[1]:.1f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--device", default="gpu")
    parser.add_argument("--command", default="build/tools/dlprim_benchmark")
    parser.add_argument("--works", nargs="+", default=list(WORKS), choices=list(WORKS))
    parser.add_argument("--precisions", nargs="+", default=["fp32"], choices=["fp32", "tf32", "fp16", "bf16"])
    parser.add_argument("--training", action="store_true", help="an Adam step")
    parser.add_argument("--both", action="store_true", help="inference, and then the step")
    parser.add_argument("--compiled", action="store_true", help="also torch.compile")
    parser.add_argument(
        "--peer", action="store_true", help="measure PyTorch alone, when a line on standard input asks for it"
    )
    arguments = parser.parse_args()
    if arguments.peer:
        run_peer(arguments.works[0], arguments.precisions[0], arguments.training, arguments.compiled)
        return 0
    forms = {"eager": False, "compiled": True} if arguments.compiled else {"eager": False}
    measurements = [
        Measurement(name, precision, training, {f: start_peer(name, precision, training, c) for f, c in forms.items()})
        for training in ([False, True] if arguments.both else [arguments.training])
        for precision in arguments.precisions
        for name in arguments.works
    ]
    # The first runs compile kernels, beside the peers.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda m: common.attempt(m.name, lambda: m.ours(arguments)), measurements))
    for measurement in measurements:
        measurement.await_ready()
    print(f"| network | work | precision | PyTorch ({'; '.join(forms)}) | dlprim | ratio | GiB: PyTorch, dlprim |")
    print("|---|---|---|---:|---:|---:|---:|", flush=True)
    for measurement in measurements:
        print(measurement.row(arguments), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
