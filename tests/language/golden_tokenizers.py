#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden_tokenizers.json for tokenizer_json_test.cpp: small tokenizer.json files of the kinds that models have,
and what PyPI's `tokenizers` makes of texts with them; and a model of PyPI's `sentencepiece`, as its own file and as the
tables of a GGUF file, with its tokens of the same texts.

Usage: golden_tokenizers.py > golden_tokenizers.json, with tokenizers and sentencepiece installed.
"""

import base64
import io
import json

import sentencepiece
from golden_tokens import BYTES, LLAMA3, PLAIN, QWEN2, SPECIAL, TEXTS, random_texts
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

STRIPPED = [
    AddedToken("<left>", lstrip=True, normalized=False),
    AddedToken("<right>", rstrip=True, normalized=False),
    AddedToken("<both>", lstrip=True, rstrip=True, special=True, normalized=False),
]
MORE = [
    "a <left> b <right> c <both> d\u2003<both>\u00a0\n e",
    "<right>   x",
    "x   <left>",
    "  two  spaces ",
    "\u2581 mark \u2581\u2581",
    "re\u0301sume\u0301 \u1112\u1161\u11ab \u212b \u0958",
    "<unk> <0x41> </s>",
]


def split(expression: str) -> pre_tokenizers.Sequence:
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"), PLAIN])


def byte_level(texts: list[str]) -> dict[str, Tokenizer]:
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = BYTES
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=BYTES.alphabet(), show_progress=False)
    trained.train_from_iterator(texts * 2, trainer)
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    made = {}

    def add(name: str, splitter: pre_tokenizers.PreTokenizer, whole: bool = False) -> Tokenizer:
        made[name] = Tokenizer(models.BPE(vocab=model["vocab"], merges=merges, ignore_merges=whole))
        made[name].pre_tokenizer = splitter
        made[name].decoder = decoders.ByteLevel()
        made[name].add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
        return made[name]

    add("gpt2", pre_tokenizers.ByteLevel(add_prefix_space=True))
    add("qwen2", split(QWEN2)).normalizer = normalizers.NFC()
    llama3 = add("llama3", split(LLAMA3), True)
    llama3.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", llama3.token_to_id("<|endoftext|>"))]
    )
    add("digits", pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), BYTES])).add_tokens(STRIPPED)
    return made


def sentence_pieces(texts: list[str]) -> dict[str, Tokenizer]:
    trained = Tokenizer(models.BPE())
    marks = [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    trained.normalizer = normalizers.Sequence(marks)
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=620, special_tokens=special, limit_alphabet=100, show_progress=False)
    trained.train_from_iterator(texts * 2, trainer)
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    meta = pre_tokenizers.Metaspace
    splitters = {
        "prepended": None,
        "metaspace_first": meta(prepend_scheme="first", split=False),
        "metaspace_always": meta(prepend_scheme="always", split=True),
        "metaspace_never": meta(prepend_scheme="never", split=False),
    }
    made = {}
    for name, splitter in splitters.items():
        tokenizer = Tokenizer(
            models.BPE(vocab=model["vocab"], merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
        )
        if splitter is None:
            tokenizer.normalizer = normalizers.Sequence(marks)
        else:
            tokenizer.pre_tokenizer = splitter
        tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<unk>", "<s>", "</s>")])
        tokenizer.add_tokens(STRIPPED)
        made[name] = tokenizer
    return made


def scored(texts: list[str]) -> dict:
    """A model with scores. Control tokens are no text for sentencepiece, so texts without them are kept."""
    target = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter([text for text in texts if text.strip()] * 2),
        model_writer=target,
        model_type="bpe",
        vocab_size=600,
        hard_vocab_limit=False,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_digits=True,
        character_coverage=0.98,
        minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_proto=target.getvalue())
    count = pieces.vocab_size()
    kinds = [
        2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 6 if pieces.is_byte(i) else 1
        for i in range(count)
    ]
    kept = [text for text in texts if "<" not in text and "\0" not in text]
    return {
        "model": base64.b64encode(target.getvalue()).decode(),
        "tokens": [pieces.id_to_piece(i) for i in range(count)],
        "scores": [pieces.get_score(i) for i in range(count)],
        "kinds": kinds,
        "texts": kept,
        "cases": [pieces.encode(text) for text in kept],
    }


def main() -> None:
    texts = TEXTS + MORE + random_texts()[:60]
    tokenizers = byte_level(texts) | sentence_pieces(texts)
    lines = [f'"texts": {json.dumps(texts)}']
    for name, tokenizer in tokenizers.items():
        cases = [tokenizer.encode(text).ids for text in texts]
        lines.append(f'"{name}": {{"json": {tokenizer.to_str()},\n"cases": {json.dumps(cases)}}}')
    lines.append(f'"sentencepiece": {json.dumps(scored(texts))}')
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
