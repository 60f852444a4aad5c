#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden_encoders.json for encoder_test.cpp and wordpiece_test.cpp: configurations of tiny encoders, the shapes of
their tensors, and the features that Hugging Face's `transformers` computes in double, pooled; and WordPiece tokenizers with
what `tokenizers` makes of texts. Values of tensors follow from a seed, as in golden_models.py.

Usage: golden_encoders.py > golden_encoders.json, with torch, transformers and tokenizers installed.
"""

import json
import sys

import torch
import transformers
from golden_models import values
from golden_tokens import TEXTS, random_texts
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

SIZES = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 40,
}
DISTIL = {"vocab_size": 96, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 40}
MODELS = {
    "bert": ("BertModel", SIZES | {"layer_norm_eps": 1e-12}),
    "bert_prefixed": ("BertForMaskedLM", SIZES | {"num_hidden_layers": 1, "type_vocab_size": 3}),
    "distilbert": ("DistilBertModel", DISTIL),
    "distilbert_prefixed": ("DistilBertForMaskedLM", DISTIL | {"n_layers": 1}),
    "roberta": ("XLMRobertaModel", SIZES | {"max_position_embeddings": 42, "type_vocab_size": 1, "pad_token_id": 1}),
}
# Texts of several lengths, the longest as long as the models read. RoBERTa's padding, 1, is no token of a text.
LENGTHS = [5, 1, 40, 2, 17, 3, 33]
TOKENS = [[(i * i * 7 + i * 13 + 3 * n + 5) % 94 + 2 for i in range(length)] for n, length in enumerate(LENGTHS)]
HARD = [
    "[CLS] a [SEP] b[MASK]c [UNK] [cls] [unused1] ##ing",
    "\u0130stanbul \u1e9e \u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3 \u01c5 \ufb01 \u212b",
    "re\u0301sume\u0301 \u1112\u1161\u11ab \u0958 a\u0328\u0301 \u00e9\u0327",
    "\u4e00\u9fff\u3400\u4dbf\U00020000\u30fc\uf900 \u4e2dabc\u6587",
    "a\u2028b\u2029c\u1680d\u180ee\u202ff\u205fg\u2060h",
    "x" * 100 + " " + "x" * 101 + " " + "\u00e9" * 100 + " " + "\u4e00" * 120,
    "can't co-op e.g. $5+3=8^2 `x` ~y |z <w> \u2014 \u00bf\u00a1 \u3001\u3002 \u2030 \u20ac \u00a7",
    "\u0301 \u0301a \u200d\u200c \ue000 \U000e0001",
]


def make_model(name: str) -> dict:
    kind, sizes = MODELS[name]
    config = getattr(transformers, kind).config_class(**sizes, attn_implementation="eager")
    model = getattr(transformers, kind)(config).eval()
    tied = set(model.all_tied_weights_keys)
    state = {key: value for key, value in model.state_dict().items() if key not in tied}
    tensors = {}
    for seed, key in enumerate(sorted(state), 1):
        shape = tuple(state[key].shape)
        mean = 1.0 if "norm" in key.lower() and key.endswith("weight") else 0.0
        scale = 0.5 if len(shape) == 1 else 2.0 if "embeddings" in key else 1.2
        state[key].copy_(values(seed, shape, mean, scale))
        tensors[key] = [list(shape), mean, scale]
    base = getattr(model, model.base_model_prefix, model).double()
    pooled: dict[str, list] = {"mean": [], "first": [], "last": []}
    for tokens in TOKENS:
        features = base(torch.tensor([tokens])).last_hidden_state[0].detach()
        for way, row in (("mean", features.mean(0)), ("first", features[0]), ("last", features[-1])):
            pooled[way].append([float(f"{value:.7g}") for value in row.tolist()])
    config.architectures = [kind]
    text = json.loads(config.to_json_string(use_diff=True))
    text.pop("transformers_version", None)
    return {"config": text, "tensors": tensors, **pooled}


def make_tokenizers(texts: list[str]) -> dict[str, Tokenizer]:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]
    made = {}
    options = {"uncased": {}, "cased": {"lowercase": False}, "lowered": {"strip_accents": False}}
    options["plain"] = {"clean_text": False, "handle_chinese_chars": False, "lowercase": False}
    for name, how in options.items():
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
        tokenizer.normalizer = normalizers.BertNormalizer(**how)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(
            vocab_size=320, special_tokens=special, limit_alphabet=110, show_progress=False
        )
        tokenizer.train_from_iterator(texts * 2, trainer)
        tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special[:5]])
        ends = [("[CLS]", tokenizer.token_to_id("[CLS]")), ("[SEP]", tokenizer.token_to_id("[SEP]"))]
        if name == "cased":
            tokenizer.post_processor = processors.BertProcessing(ends[1], ends[0])
        else:
            tokenizer.post_processor = processors.TemplateProcessing(
                single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
            )
        made[name] = tokenizer
    return made


def main() -> None:
    texts = TEXTS + HARD + random_texts()[:60]
    lines = [f'"tokens": {json.dumps(TOKENS)}']
    encoders = ",\n".join(f'"{name}": {json.dumps(make_model(name))}' for name in MODELS)
    lines.append('"models": {' + encoders + "}")
    lines.append(f'"texts": {json.dumps(texts)}')
    made = []
    for name, tokenizer in make_tokenizers(texts).items():
        cases = [tokenizer.encode(text).ids for text in texts]
        made.append(f'"{name}": {{"json": {tokenizer.to_str()},\n"cases": {json.dumps(cases)}}}')
    lines.append('"tokenizers": {' + ",\n".join(made) + "}")
    sys.stdout.write("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
