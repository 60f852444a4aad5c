#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden_unigram.json for unigram_test.cpp: a model of PyPI's `sentencepiece` of the kind Unigram with a small
table of characters, as its own file, and tokenizer.json files of its tokens, of the kinds that models have; each with
the tokens that `sentencepiece` or `tokenizers` makes of texts.

Usage: golden_unigram.py > golden_unigram.json, with tokenizers and sentencepiece installed.
"""

import base64
import contextlib
import io
import json
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import sentencepiece
from golden_tokenizers import MORE
from golden_tokens import TEXTS, random_texts
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

WIDE = [
    "Ｆｕｌｌ ｗｉｄｔｈ １２３ ﬁne ﬂuﬀ ™ ① ㍿",
    "e\u0301\u0323 a\u0308 o\u0302\u0301 \u1100\u1161\u11a8 \uff76\uff9e",
    "\u00a0 lead\u2003 mid  trail \t\r\n",
    "soft\u00adhyphen zero\u200bwidth \ufeffmark",
    "<mask>  after <s>x</s> <pad>y",
    "x   <mask>",
]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
MARK = "\u2581"


def rules(texts: list[str]) -> Iterator[str]:
    """What becomes what, as sentencepiece reads it: white space, marks without width, and the form NFKC."""
    sources = {c for text in texts for c in text}
    sources |= {a + b for text in texts for a, b in zip(text, text[1:], strict=False)}
    for source in sorted(sources):
        made = unicodedata.normalize("NFKC", source)
        if source in "\t\n\r\v\f\u0085\u2028":
            made = " "
        elif source in "\u200b\ufeff\u00ad\u0001\u007f":
            made = ""
        if made != source and (len(source) == 1 or len(made) == 1):
            yield " ".join(f"{ord(c):X}" for c in source) + "\t" + " ".join(f"{ord(c):X}" for c in made)


def trained(texts: list[str]) -> bytes:
    target = io.BytesIO()
    # The model remembers the table's path.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("rules.tsv").write_text("\n".join(rules(texts)) + "\n")
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter([text for text in texts if text.strip()] * 2),
            model_writer=target,
            model_type="unigram",
            vocab_size=420,
            hard_vocab_limit=False,
            normalization_rule_tsv="rules.tsv",
            character_coverage=0.98,
            pad_id=1,
            bos_id=0,
            eos_id=2,
            unk_id=3,
            minloglevel=2,
        )
    return target.getvalue()


def characters_of(model: bytes) -> bytes:
    """The table of characters in a model: field 2 of field 3."""

    def field(data: bytes, wanted: int) -> bytes:
        at = 0

        def number() -> int:
            nonlocal at
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    return value

        while at < len(data):
            tag = number()
            if tag & 7 == 0:
                number()
                continue
            size = {1: 8, 5: 4}.get(tag & 7) or number()
            if tag >> 3 == wanted:
                return data[at : at + size]
            at += size
        raise KeyError(wanted)

    return field(field(model, 3), 2)


def tokenizers(vocabulary: list[tuple[str, float]], characters: bytes) -> dict[str, Tokenizer]:
    plain = normalizers.Precompiled(characters)
    joined = normalizers.Replace(Regex(" {2,}"), MARK)
    marked = pre_tokenizers.Metaspace(prepend_scheme="always")
    words = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), marked])
    kinds = {
        "words": (plain, words),  # T5 and the first XLM-RoBERTa
        "joined": (
            normalizers.Sequence([plain, normalizers.Strip(left=False, right=True), joined]),
            marked,
        ),
        "first": (None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False)),
        "stripped": (normalizers.Sequence([normalizers.Strip()]), pre_tokenizers.Metaspace(prepend_scheme="never")),
        "bytes": (plain, pre_tokenizers.Metaspace()),
    }
    made = {}
    for name, (normalizer, splitter) in kinds.items():
        own = vocabulary + [(f"<0x{byte:02X}>", -20.0) for byte in range(256)] if name == "bytes" else vocabulary
        tokenizer = Tokenizer(models.Unigram(own, unk_id=3, byte_fallback=name == "bytes"))
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = splitter
        tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
        tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True, normalized=False)])
        if name == "joined":
            tokenizer.post_processor = processors.TemplateProcessing(
                single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
            )
        made[name] = tokenizer
    return made


def main() -> None:
    texts = TEXTS + MORE + WIDE + random_texts()[:50]
    model = trained(texts)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocabulary = [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(pieces.vocab_size())]
    # Its own tokens for control are no text to sentencepiece.
    kept = [text for text in texts if "<" not in text and "\0" not in text]
    lines = [f'"texts": {json.dumps(texts)}']
    for name, tokenizer in tokenizers(vocabulary, characters_of(model)).items():
        cases = [tokenizer.encode(text).ids for text in texts]
        lines.append(f'"{name}": {{"json": {tokenizer.to_str()},\n"cases": {json.dumps(cases)}}}')
    own = {"model": base64.b64encode(model).decode(), "texts": kept, "cases": [pieces.encode(text) for text in kept]}
    lines.append(f'"sentencepiece": {json.dumps(own)}')
    print("{" + ",\n".join(lines) + "}")


if __name__ == "__main__":
    main()
