#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times a token of a language model by dlprim_generate, beside transformers' generate() on a CUDA device.

    benchmarks/language.py -d gpu --command build/tools/dlprim_generate --bandwidth 4800 --peer
    benchmarks/language.py -d opencl --types q4_0 --layers 2 --width 512      # a small one

The model has the shape of a Llama with random weights (by default of the one with 1.2 billion), which a GGUF file of each
type holds. One prompt of five tokens, then --length greedy ones; the time of a token is that between the first and the
last. With --bandwidth, in GB/s, the table says which part of that bandwidth the weights are read with. --peer runs the same
shape in float16 with a static cache, eagerly and compiled as transformers does by itself, in turns with ours. It needs
PyTorch and transformers. Medians of --rounds.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import struct
import tempfile
import time
from collections.abc import Callable
from typing import Any, BinaryIO

import common
import numpy as np

TYPES = {"f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34)}  # code, weights and bytes of a block
HEAD = 64


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def metadata(arguments: argparse.Namespace) -> list[bytes]:
    """Sizes of the architecture, and a byte-level tokenizer whose other tokens are names."""
    whole = {
        "block_count": arguments.layers,
        "embedding_length": arguments.width,
        "feed_forward_length": arguments.hidden,
        "context_length": 8192,
        "attention.head_count": arguments.heads,
        "attention.head_count_kv": arguments.key_heads,
        "attention.key_length": HEAD,
    }
    signs = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names = {byte: chr(byte) for byte in signs}
    names |= {byte: chr(256 + i) for i, byte in enumerate(b for b in range(256) if b not in signs)}
    tokens = [names[byte] for byte in range(256)] + ["th"] + [f"t{i}" for i in range(arguments.vocabulary - 257)]
    string, floating, unsigned, array = 8, 6, 4, 9
    rows: list[tuple[str, int, bytes]] = [("general.architecture", string, text("llama"))]
    rows += [(f"llama.{name}", unsigned, struct.pack("<I", value)) for name, value in whole.items()]
    rows += [
        ("llama.attention.layer_norm_rms_epsilon", floating, struct.pack("<f", 1e-5)),
        ("llama.rope.freq_base", floating, struct.pack("<f", 500000.0)),
        ("tokenizer.ggml.model", string, text("gpt2")),
        ("tokenizer.ggml.pre", string, text("gpt-2")),
        ("tokenizer.ggml.tokens", array, struct.pack("<IQ", string, len(tokens)) + b"".join(map(text, tokens))),
        ("tokenizer.ggml.merges", array, struct.pack("<IQ", string, 1) + text("t h")),
    ]
    return [text(name) + struct.pack("<I", kind) + data for name, kind, data in rows]


def shapes(arguments: argparse.Namespace) -> dict[str, tuple[int, ...]]:
    width, hidden = arguments.width, arguments.hidden
    queries, keys = HEAD * arguments.heads, HEAD * arguments.key_heads
    result: dict[str, tuple[int, ...]] = {"token_embd.weight": (arguments.vocabulary, width)}
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm": (width,),
        "attn_q": (queries, width),
        "attn_k": (keys, width),
        "attn_v": (keys, width),
        "attn_output": (width, queries),
        "ffn_norm": (width,),
        "ffn_gate": (hidden, width),
        "ffn_up": (hidden, width),
        "ffn_down": (width, hidden),
    }
    for i in range(arguments.layers):
        result |= {f"blk.{i}.{name}.weight": shape for name, shape in layer.items()}
    return result | {"output_norm.weight": (width,)}


def write_weights(file: BinaryIO, kind: str, count: int, random: np.random.Generator) -> None:
    if kind == "f32":
        file.write(np.ones(count, np.float32).tobytes())
    elif kind == "f16":
        file.write((random.standard_normal(count, dtype=np.float32) * 0.02).astype(np.float16).tobytes())
    else:
        _, weights, size = TYPES[kind]
        blocks = random.integers(0, 256, (count // weights, size), dtype=np.uint8)
        scale = np.float16(0.005 if kind == "q4_0" else 0.0003)
        blocks[:, :2] = np.full(len(blocks), scale).view(np.uint8).reshape(-1, 2)
        file.write(blocks.tobytes())


def write_model(path: pathlib.Path, kind: str, arguments: argparse.Namespace) -> int:
    """Returns the bytes of weights that a token reads: the table of words is read as the last product's weight."""
    align = 32
    places: list[tuple[int, str, int]] = []
    infos, at = b"", 0
    for name, shape in shapes(arguments).items():
        own = "f32" if len(shape) == 1 else kind
        code, weights, size = (0, 1, 4) if own == "f32" else TYPES[own]
        count = int(np.prod(shape))
        infos += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", d) for d in reversed(shape))
        infos += struct.pack("<IQ", code, at)
        places.append((at, own, count))
        at += (count // weights * size + align - 1) // align * align
    rows = metadata(arguments)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(places), len(rows)) + b"".join(rows) + infos
    random = np.random.default_rng(1)
    with path.open("wb") as file:
        file.write(head + b"\0" * (-len(head) % align))
        base = file.tell()
        for offset, own, count in places:
            file.seek(base + offset)
            write_weights(file, own, count, random)
    return at


def dlprim_ms(arguments: argparse.Namespace, path: pathlib.Path) -> float:
    command = [
        arguments.command,
        "-d",
        arguments.device,
        "--length",
        str(arguments.length),
        "--json",
        str(path),
        "hello",
    ]
    return 1e3 / float(json.loads(common.output_of(command))["tokens_per_s"])


def peer(arguments: argparse.Namespace, compiled: bool) -> Callable[[], float]:
    import torch
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=arguments.vocabulary,
        hidden_size=arguments.width,
        intermediate_size=arguments.hidden,
        num_hidden_layers=arguments.layers,
        num_attention_heads=arguments.heads,
        num_key_value_heads=arguments.key_heads,
        head_dim=HEAD,
        rope_theta=500000.0,
        tie_word_embeddings=True,
        eos_token_id=None,
        bos_token_id=None,
    )
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(config).to(torch.float16).eval()
    prompt = torch.ones((1, 5), dtype=torch.long, device="cuda")
    options: dict[str, Any] = {
        "do_sample": False,
        "cache_implementation": "static",
        "disable_compile": not compiled,
        "pad_token_id": 0,
    }

    def seconds(length: int) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        model.generate(
            prompt, attention_mask=torch.ones_like(prompt), min_new_tokens=length, max_new_tokens=length, **options
        )
        torch.cuda.synchronize()
        return time.perf_counter() - start

    for _ in range(3):
        seconds(arguments.length)
    return lambda: 1e3 * (seconds(arguments.length) - seconds(1)) / (arguments.length - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--device", default="gpu")
    parser.add_argument("--command", default=str(common.ROOT / "build/tools/dlprim_generate"))
    parser.add_argument("--types", nargs="+", choices=sorted(TYPES), default=["f16", "q4_0"])
    parser.add_argument("--length", type=int, default=128, help="tokens that are made")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bandwidth", type=float, help="of the device's memory, in GB/s")
    parser.add_argument("--peer", action="store_true", help="also time transformers on CUDA")
    parser.add_argument("--folder", help="where the files of models are kept")
    sizes = {"layers": 16, "width": 2048, "hidden": 8192, "heads": 32, "key-heads": 8, "vocabulary": 128256}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments.folder or temporary)
        runs: dict[str, Callable[[], float]] = {}
        weights: dict[str, int] = {}
        for kind in arguments.types:
            path = folder / f"random_{kind}.gguf"
            weights[kind] = write_model(path, kind, arguments)
            runs[kind] = lambda path=path: dlprim_ms(arguments, path)  # type: ignore[misc]
            runs[kind]()  # fills the caches of programs
        if arguments.peer:
            runs["transformers, eager"] = peer(arguments, compiled=False)
            runs["transformers, compiled"] = peer(arguments, compiled=True)
        times: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(arguments.rounds):
            for name, run in runs.items():
                times[name].append(run())
    print(
        "| weights | ms per token | of the bandwidth | eager over ours | compiled over ours |\n|---|---:|---:|---:|---:|"
    )
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, ms in medians.items():
        share = (
            f"{weights[name] / arguments.bandwidth / 1e6 / ms:.2f}" if arguments.bandwidth and name in weights else ""
        )
        ratios = [
            f"{medians[f'transformers, {way}'] / ms:.2f}" if arguments.peer and name in weights else ""
            for way in ("eager", "compiled")
        ]
        print(f"| {name} | {ms:.3f} | {share} | {ratios[0]} | {ratios[1]} |")


if __name__ == "__main__":
    main()
