#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden_models.json for hugging_face_test.cpp: configurations of tiny models, the shapes of their tensors, and
the logits that Hugging Face's `transformers` computes in double. The values of tensors follow from a seed, here and in
the test, so that no weights are kept.

Usage: golden_models.py [--save FOLDER] > golden_models.json, with torch and transformers installed. --save also writes
each model as a folder.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

SHARED = {"vocab_size": 96, "bos_token_id": None, "eos_token_id": 5, "pad_token_id": None}
SIZES = SHARED | {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}
MODELS = {
    "llama": ("LlamaForCausalLM", SIZES | {"rope_parameters": LLAMA3, "attention_bias": True}),
    "llama_tied": (
        "LlamaForCausalLM",
        SIZES | {"tie_word_embeddings": True, "head_dim": 12, "rope_parameters": LINEAR},
    ),
    "mistral": ("MistralForCausalLM", SIZES | {"sliding_window": 7, "head_dim": 8}),
    "qwen2": ("Qwen2ForCausalLM", SIZES),
    "qwen3": ("Qwen3ForCausalLM", SIZES | {"head_dim": 16}),
    "gpt2": (
        "GPT2LMHeadModel",
        SHARED | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    ),
    "phi3": ("Phi3ForCausalLM", SIZES | {"sliding_window": 9}),
    "gemma2": (
        "Gemma2ForCausalLM",
        SIZES
        | {
            "num_hidden_layers": 3,
            "head_dim": 12,
            "query_pre_attn_scalar": 10,
            "sliding_window": 6,
            "attn_logit_softcapping": 2.0,
            "final_logit_softcapping": 3.0,
        },
    ),
    "gemma3": (
        "Gemma3ForCausalLM",
        SIZES
        | {
            "num_hidden_layers": 7,
            "head_dim": 8,
            "query_pre_attn_scalar": 8,
            "sliding_window": 6,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
            },
        },
    ),
}
TOKENS = [(i * i * 7 + i * 13 + 3) % 96 for i in range(40)]
ENDS = [1, 8, 13, 40]  # after how many tokens logits are kept


def values(seed: int, shape: tuple[int, ...], mean: float, scale: float) -> torch.Tensor:
    """Uniform numbers by a linear congruential generator."""
    made = np.empty(int(np.prod(shape)))
    for i in range(len(made)):
        seed = (seed * 1664525 + 1013904223) % 2**32
        made[i] = mean + scale * ((seed >> 8) / 2**24 - 0.5)
    return torch.from_numpy(made.astype(np.float32)).reshape(shape)


def make(name: str, save: Path | None) -> dict:
    kind, sizes = MODELS[name]
    config = getattr(transformers, kind).config_class(**sizes, attn_implementation="eager")
    model = getattr(transformers, kind)(config).eval()
    tied = set(model.all_tied_weights_keys) if config.tie_word_embeddings else set()
    state = {key: value for key, value in model.state_dict().items() if key not in tied}
    tensors = {}
    for seed, key in enumerate(sorted(state), 1):
        shape = tuple(state[key].shape)
        norm = "norm" in key or "ln_" in key
        gemma = "gemma" in name
        mean = 1.0 if norm and key.endswith("weight") and not gemma else 0.0
        scale = 0.5 if len(shape) == 1 else 2.0 if "embed" in key or "wte" in key else 1.2
        state[key].copy_(values(seed, shape, mean, scale))
        tensors[key] = [list(shape), mean, scale]
    config.architectures = [kind]
    if save:
        model.save_pretrained(save / name)
    logits = model.double()(torch.tensor([TOKENS])).logits[0].detach()
    kept = [[float(f"{value:.7g}") for value in logits[end - 1].tolist()] for end in ENDS]
    text = json.loads(config.to_json_string(use_diff=True))
    text.pop("transformers_version", None)
    return {"config": text, "tensors": tensors, "logits": kept}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", type=Path)
    save = parser.parse_args().save
    lines = [f'"tokens": {json.dumps(TOKENS)}, "ends": {json.dumps(ENDS)}']
    models = ",\n".join(f'"{name}": {json.dumps(make(name, save))}' for name in MODELS)
    lines.append('"models": {' + models + "}")
    sys.stdout.write("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
