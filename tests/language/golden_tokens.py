#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden_tokens.json for tokenizer_test.cpp: a small vocabulary, and what PyPI's `tokenizers` makes of texts
with it, by the ways of several models to split text.

Usage: golden_tokens.py > golden_tokens.json, with tokenizers installed.
"""

import json
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False)
PLAIN = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
SPLITTERS = {
    "gpt-2": BYTES,
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), BYTES]),
    "llama-bpe": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), PLAIN]),
    "qwen2": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"), PLAIN]),
}
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im|>", "<|im_end|>x"]
TEXTS = [
    "",
    " ",
    "  ",
    "\n",
    " \n\n  x",
    "a",
    "Hello, world!",
    "don't DON'T I'll we've he'd it's IT'S 'sa '",
    "x  y   z    \n\tw\r\n\r\n  ",
    "1234567 3.14159 12,345 ½ Ⅷ ٣٤٥ 一二三 x2 2x",
    "The quick brown fox jumps over the lazy dog. " * 3,
    "Füße, naïve, Ærøskøbing, Ångström, e\u0301 und \u00e9",
    "Привет, мир! Как дела?",
    "你好，世界。今天天气怎么样？",
    "こんにちは世界、テスト",
    "안녕하세요 세계",
    "مرحبا بالعالم ١٢٣",
    "שלום עולם",
    "नमस्ते दुनिया १२३",
    "สวัสดีชาวโลก",
    "Γειά σου Κόσμε",
    "👋🏽 👩‍👩‍👧‍👦 🇩🇪🇫🇷 ☺️ 🤖abc",
    "a\u00a0b\u2003c\u200bd\u3000e\ufeff",
    "tabs\t\tand\x0bvertical\x0cfeeds\x85next\x1cfile",
    "def f(x):\n    return {'a': x ** 2}  # ok\n",
    "<|im_start|>user\nHi<|im_end|>\n<|im_end|>x<|im_|im|>|><|im_end|",
    "aaaaaaaaaaaaaaaaaaaa",
    "\u017f'\u017f K\u212a 'ſ",
    "\x00\x01\x7f\u0080\u00ad\ufffd\U0010ffff",
    "https://example.org/a_b?c=d&e=%20f#g",
    "¿Qué? ¡Sí! «oui» „ja“ …—–",
]


def random_texts() -> list[str]:
    draw = random.Random(7)
    alphabet = "  \n\ta'sTdl19é½日я👍\u0301\u200d,._-<|>"
    return ["".join(draw.choice(alphabet) for _ in range(draw.randrange(1, 40))) for _ in range(120)]


def main() -> None:
    texts = TEXTS + random_texts()
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = BYTES
    trained.train_from_iterator(
        texts * 2, trainers.BpeTrainer(vocab_size=620, initial_alphabet=BYTES.alphabet(), show_progress=False)
    )
    model = json.loads(trained.to_str())["model"]
    vocabulary = model["vocab"]
    merges = [tuple(pair) for pair in model["merges"]]
    cases = {}
    for name, splitter in SPLITTERS.items():
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=name == "llama-bpe"))
        tokenizer.pre_tokenizer = splitter
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
        cases[name] = [tokenizer.encode(text).ids for text in texts]
    tokens = sorted(vocabulary, key=vocabulary.__getitem__) + SPECIAL
    lines = [f'"{key}": {json.dumps(value)}' for key, value in (("tokens", tokens), ("special", len(SPECIAL)))]
    lines.append(f'"merges": {json.dumps([" ".join(pair) for pair in merges])}')
    lines.append(f'"texts": {json.dumps(texts)}')
    lines.append('"cases": {' + ",\n".join(f'"{name}": {json.dumps(ids)}' for name, ids in cases.items()) + "}")
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
