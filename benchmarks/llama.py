#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times dlprim_generate beside llama.cpp (package xllamacpp) on this machine's processor, and compares their greedy tokens.

    benchmarks/llama.py MODEL.gguf [-d opencl] [--precisions fp32 tf32] [--threads 2] [--rounds 3] [--json FILE]
    benchmarks/llama.py MODEL.gguf -d opencl --tokens          # greedy tokens of twenty prompts
    benchmarks/llama.py MODEL.gguf -d opencl --oracle          # logits where these part, beside float64
    benchmarks/llama.py MODEL.gguf -d opencl --perplexity FILE

A prompt of 504 tokens, or of 24 for each of --sentences, and a text of 128 are timed, in turns, one program after the other, each by its own figures; medians
of the rounds. llama.cpp rounds inputs of products to 8 bits, and keeps its cache as half, so that its tokens differ from
exact ones where the two likeliest are near: with --tokens, the table says for each prompt where the texts part, how much
less likely llama.cpp has what dlprim chose, and how far their log-probabilities of the tokens before that differ.

--oracle computes the logits of Llama models in float64 (llama_oracle.py) there: how far apart are its likeliest two, whose
token is its likeliest, and how far are dlprim's and llama.cpp's log-probabilities from its own, as a part of the largest
logit? --perplexity compares that of a text's first tokens. Both import dlprim (PYTHONPATH).
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
import llama_oracle
import numpy as np

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
    answer = server.handle_completions({"temperature": 0, "top_k": 1, "samplers": ["top_k"], "n_probs": 2,
                                        "cache_prompt": False} | json.loads(line))
    print(json.dumps(answer if isinstance(answer, dict) else json.loads(answer)), flush=True)
"""


def ask_llama(
    arguments: argparse.Namespace, prompts: list[str] | list[list[int]], length: int, **more: Any
) -> list[dict[str, Any]]:
    """llama.cpp's answers to prompts, of which the first only warms it up."""
    lines = "".join(json.dumps({"prompt": prompt, "n_predict": length} | more) + "\n" for prompt in prompts)
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


def open_models(arguments: argparse.Namespace) -> tuple[dict[str, Any], Any]:
    """dlprim's model in each precision, and the one in float64."""
    import dlprim
    import dlprim.language

    context = dlprim.Context(arguments.device)
    models = {
        precision: dlprim.language.LanguageModel(context, arguments.model, precision=precision)
        for precision in arguments.precisions
    }
    return models, llama_oracle.Oracle(arguments.model)


def log_probabilities_of(answer: dict[str, Any], vocabulary: int) -> np.ndarray:
    """llama.cpp's log-probabilities of the first token that it made; none where it did not say."""
    result = np.full(vocabulary, np.nan)
    for each in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
        result[each["id"]] = each["logprob"]
    return result


def print_oracle(arguments: argparse.Namespace) -> None:
    """A row for each prompt: logits where the two programs' texts part, beside float64."""
    models, oracle = open_models(arguments)
    first = models[arguments.precisions[0]]
    prompts = [first.encode(prompt) for prompt in PROMPTS]
    theirs = [
        [each["id"] for each in answer["choices"][0]["logprobs"]["content"]]
        for answer in ask_llama(arguments, prompts, 64)
    ]
    texts: list[tuple[str, list[int], int]] = []
    logits: dict[str, list[np.ndarray]] = {name: [] for name in models}
    for name, prompt, made in zip(PROMPTS, prompts, theirs, strict=True):
        first.forget()
        found, same = first.read(prompt), 0
        while same < len(made) and int(found.argmax()) == made[same]:
            found, same = first.read([made[same]]), same + 1
        if same == len(made):
            continue
        texts.append((name, prompt + made[:same], made[same]))
        logits[arguments.precisions[0]].append(found)
        for precision in arguments.precisions[1:]:
            models[precision].forget()
            found = models[precision].read(prompt)
            for token in made[:same]:
                found = models[precision].read([token])
            logits[precision].append(found)
    answers = ask_llama(arguments, [text for _, text, _ in texts], 1, n_probs=first.vocabulary)
    print("| prompt | behind tokens | likeliest two apart | whose is the likeliest |", end="")
    print("".join(f" dlprim, {name}, off by |" for name in models), "llama.cpp off by |")
    print("|---|" + "---:|" * (len(models) + 4))
    all_exact = oracle.logits(np.stack([rows[-1] for rows in oracle.read([text for _, text, _ in texts])]))
    for i, (name, text, token) in enumerate(texts):
        scale, exact = np.abs(all_exact[i]).max(), llama_oracle.log_softmax(all_exact[i])
        second, best = np.argsort(exact)[-2:]
        mine = int(logits[arguments.precisions[0]][i].argmax())
        whose = {mine: "dlprim's", token: "llama.cpp's"}.get(int(best), "neither's")
        off = [np.abs(llama_oracle.log_softmax(found[i].astype(np.float64)) - exact).max() for found in logits.values()]
        off.append(np.nanmax(np.abs(log_probabilities_of(answers[i], len(exact)) - exact)))
        errors = " | ".join(f"{each / scale:.1e}" for each in off)
        print(
            f"| {json.dumps(name)} | {len(text)} | {exact[best] - exact[second]:.4f} | {whose} | {errors} |", flush=True
        )


def print_perplexity(arguments: argparse.Namespace) -> None:
    """The perplexity of a text by each program."""
    models, oracle = open_models(arguments)
    tokens = models[arguments.precisions[0]].encode(arguments.perplexity.read_text())[: arguments.most]
    exact = llama_oracle.log_softmax(oracle.logits(oracle.read([tokens[:-1]])[0]))
    found = {"float64": exact[np.arange(len(tokens) - 1), tokens[1:]]}
    for name, model in models.items():
        found[f"dlprim, {name}"] = model.log_probabilities(tokens)
    prefixes = [tokens[:end] for end in range(1, len(tokens))]
    answers = ask_llama(arguments, prefixes, 1, n_probs=4096, cache_prompt=True)
    theirs = [
        log_probabilities_of(answer, exact.shape[1])[token] for answer, token in zip(answers, tokens[1:], strict=True)
    ]
    rest = np.flatnonzero(np.isnan(theirs))  # tokens that are not among the likeliest
    answers = ask_llama(arguments, [prefixes[at] for at in rest], 1, n_probs=exact.shape[1])
    for at, answer in zip(rest, answers, strict=True):
        theirs[at] = log_probabilities_of(answer, exact.shape[1])[tokens[at + 1]]
    found["llama.cpp"] = np.array(theirs)
    first = np.exp(-found["float64"].mean())
    print(f"| {len(tokens)} tokens | perplexity | beside float64 |\n|---|---:|---:|")
    for name, values in found.items():
        perplexity = np.exp(-values.mean())
        print(f"| {name} | {perplexity:.4f} | {100 * (perplexity / first - 1):+.4f} % |")


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
    parser.add_argument("--oracle", action="store_true", help="compare logits where these part with float64")
    parser.add_argument("--perplexity", type=pathlib.Path, help="compare the perplexity of this text")
    parser.add_argument("--most", type=int, default=256, help="tokens of the text")
    parser.add_argument("--command", default="build/tools/dlprim_generate", help="dlprim_generate")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.oracle or arguments.perplexity:
        return print_oracle(arguments) if arguments.oracle else print_perplexity(arguments)
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
