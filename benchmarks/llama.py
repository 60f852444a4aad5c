#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times dlprim_generate beside llama.cpp (package xllamacpp) on this machine's processor, and compares their greedy tokens.

    benchmarks/llama.py MODEL.gguf [-d opencl] [--precisions fp32 tf32] [--threads 2] [--rounds 3] [--json FILE]
    benchmarks/llama.py MODEL.gguf -d opencl --tokens          # greedy tokens of twenty prompts

A prompt of 504 tokens, or of 24 for each of --sentences, and a text of 128 are timed, in turns, one program after the other, each by its own figures; medians
of the rounds. llama.cpp rounds inputs of products to 8 bits, and keeps its cache as half, so that its tokens differ from
exact ones where the two likeliest are near: with --tokens, the table says for each prompt where the texts part, how much
less likely llama.cpp has what dlprim chose, and how far their log-probabilities of the tokens before that differ.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
from typing import Any

import common

WORDS = "A ship that leaves its harbour in the morning meets the wind behind the last of the islands, and turns to the south. "
PROMPTS = [
    "The capital of France is",
    "Once upon a time, in a small village by the sea,",
    "def fibonacci(n):",
    "Water boils at a temperature of",
    "The three laws of motion are",
    "In 1969, humans first",
    "A recipe for pancakes needs",
    "SELECT name FROM users WHERE",
    "The theory of evolution says that",
    "Question: What is 7 times 8? Answer:",
    "To be, or not to be,",
    "Photosynthesis is the process by which",
    "My favourite season is autumn because",
    "import numpy as np; softmax = lambda x:",
    "The Great Wall of China was built",
    "Dear Sir or Madam,",
    "Die Hauptstadt von Deutschland ist",
    "An atom consists of",
    "The stock market fell today after",
    "List of planets: Mercury, Venus,",
]
PEER = """
import json, sys
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.n_ctx, parameters.n_parallel = sys.argv[1], 2048, 1
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = int(sys.argv[2])
server = xllamacpp.Server(parameters)
for line in sys.stdin:
    answer = server.handle_completions(json.loads(line) | {"temperature": 0, "top_k": 1, "samplers": ["top_k"],
                                                           "n_probs": 2, "cache_prompt": False})
    print(json.dumps(answer if isinstance(answer, dict) else json.loads(answer)), flush=True)
"""


def ask_llama(arguments: argparse.Namespace, prompts: list[str], length: int) -> list[dict[str, Any]]:
    """llama.cpp's answers to prompts, of which the first only warms it up."""
    lines = "".join(json.dumps({"prompt": prompt, "n_predict": length}) + "\n" for prompt in prompts)
    done = common.output_of([sys.executable, "-c", PEER, arguments.model, str(arguments.threads)], given=lines)
    return [json.loads(line) for line in done.splitlines() if line.startswith("{")]


def ask_dlprim(arguments: argparse.Namespace, prompts: list[str], length: int, precision: str) -> list[dict[str, Any]]:
    """dlprim's answers."""
    with tempfile.TemporaryDirectory() as folder:
        lines = pathlib.Path(folder) / "prompts.txt"
        lines.write_text("".join(f"{prompt}\n" for prompt in prompts))
        words = [
            arguments.command,
            "-d",
            arguments.device,
            arguments.model,
            "--prompts",
            str(lines),
            "--length",
            str(length),
        ]
        answers = common.output_of([*words, "--json", "--log-probabilities", "--precision", precision])
    return [json.loads(line) for line in answers.splitlines()]


def rates(arguments: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """Tokens a second of prompt and text, by what made them."""
    prompt = (WORDS * arguments.sentences).strip()
    found: dict[str, list[tuple[float, float]]] = {}
    for _ in range(arguments.rounds):
        for precision in arguments.precisions:
            (answer,) = ask_dlprim(arguments, [prompt], 128, precision)
            found.setdefault(f"dlprim, {precision}", []).append((answer["prompt_tokens_per_s"], answer["tokens_per_s"]))
        times = ask_llama(arguments, [prompt] * 2, 128)[-1]["timings"]
        found.setdefault("llama.cpp", []).append((times["prompt_per_second"], times["predicted_per_second"]))
    return {
        name: (statistics.median(a for a, _ in both), statistics.median(b for _, b in both))
        for name, both in found.items()
    }


def parting(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Where two texts part, as a row of the table."""
    tokens = theirs["choices"][0]["logprobs"]["content"]
    values = ours.get("log_probabilities", [])  # a text without tokens has none
    pairs = list(zip(ours["tokens"], values, tokens, strict=False))
    differs = next((i for i, (token, _, other) in enumerate(pairs) if token != other["id"]), len(pairs))
    far = max((abs(value - other["logprob"]) for _, value, other in pairs[:differs]), default=0.0)
    if differs == len(pairs):
        return f"{'all' if len(ours['tokens']) == len(tokens) else f'{differs}, where one ends'} | | {far:.3f}"
    token, _, other = pairs[differs]
    less = [other["logprob"] - each["logprob"] for each in other["top_logprobs"] if each["id"] == token]
    return f"{differs} | {f'{less[0]:.3f}' if less else 'not its second'} | {far:.3f}"


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("-d", "--device", default="opencl")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "tf32"])
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp")
    parser.add_argument("--sentences", type=int, default=21, help="of the prompt")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", action="store_true", help="compare greedy tokens instead")
    parser.add_argument("--command", default="build/tools/dlprim_generate", help="dlprim_generate")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.tokens:
        print("| prompt | same tokens | llama.cpp has it less likely by | differences before |\n|---|---:|---:|---:|")
        ours = ask_dlprim(arguments, PROMPTS, 64, arguments.precisions[0])
        for prompt, mine, theirs in zip(PROMPTS, ours, ask_llama(arguments, PROMPTS, 64), strict=True):
            print(f"| {json.dumps(prompt)} | {parting(mine, theirs)} |")
        return
    found = rates(arguments)
    peer = found["llama.cpp"]
    print("| tokens a second | prompt | over llama.cpp | text | over llama.cpp |\n|---|---:|---:|---:|---:|")
    for name, (prompt, text) in found.items():
        print(f"| {name} | {prompt:.1f} | {prompt / peer[0]:.2f} | {text:.1f} | {text / peer[1]:.2f} |")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
