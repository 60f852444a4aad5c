# SPDX-License-Identifier: MIT
"""A tiny language model of random weights as the bytes of a GGUF file. Its tokens are the 256 bytes, an end, and "he"."""
import struct

import numpy as np

SIZES = {"block_count": 2, "embedding_length": 32, "feed_forward_length": 48, "context_length": 4096,
         "attention.head_count": 4, "attention.head_count_kv": 2}
# A template of chats: [role]content<|end|> for each message.
TEMPLATE = ("{% for m in messages %}[{{ m.role }}]{{ m.content }}<|end|>{% endfor %}"
            "{% if add_generation_prompt %}[assistant]{% endif %}")


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def value(item):
    """The type's code and the bytes of a value of the metadata."""
    if isinstance(item, str):
        return 8, text(item)
    if isinstance(item, float):
        return 6, struct.pack("<f", item)
    if isinstance(item, int):
        return 4, struct.pack("<I", item)
    items = [value(one) for one in item]
    return 9, struct.pack("<IQ", items[0][0] if items else 8, len(items)) + b"".join(data for _, data in items)


def gguf(keys, tensors):
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for name, item in keys.items():
        kind, data = value(item)
        head += text(name) + struct.pack("<I", kind) + data
    body = b""
    for name, array in tensors.items():
        head += text(name) + struct.pack(f"<I{array.ndim}QIQ", array.ndim, *reversed(array.shape), 0, len(body))
        body += array.astype("<f4").tobytes()
        body += bytes(-len(body) % 32)
    return head + bytes(-len(head) % 32) + body


def byte_names():
    """GPT-2's names of the 256 bytes."""
    names, following = [], 256
    for byte in range(256):
        printable = 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174
        names.append(chr(byte if printable else following))
        following += not printable
    return names


TOKENS = byte_names() + ["<|end|>", "he"]


def model_tensors(without=()):
    random = np.random.default_rng(5)
    width, hidden = SIZES["embedding_length"], SIZES["feed_forward_length"]
    shapes = {"token_embd": (len(TOKENS), width), "output_norm": (width,)}
    for i in range(SIZES["block_count"]):
        shapes |= {f"blk.{i}.{name}": shape for name, shape in {
            "attn_norm": (width,), "attn_q": (width, width), "attn_k": (width // 2, width),
            "attn_v": (width // 2, width), "attn_output": (width, width), "ffn_norm": (width,),
            "ffn_gate": (hidden, width), "ffn_up": (hidden, width), "ffn_down": (width, hidden)}.items()}
    return {f"{name}.weight": random.normal(0, 1, shape) if len(shape) > 1 else np.ones(shape)
            for name, shape in shapes.items() if name not in without}


def model(keys=None, without=()):
    everything = {"general.architecture": "llama"} | {f"llama.{name}": size for name, size in SIZES.items()} | {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [1] * 256 + [3, 1], "tokenizer.ggml.merges": ["h e"],
        "tokenizer.ggml.eos_token_id": 256} | (keys or {})
    return gguf(everything, model_tensors(without))


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + [f"\u2581{letter}" for letter in "abcdefgh."] + list("abcdefgh")


def encoder(keys=None):
    """An encoder of two layers, as "bert" in GGUF, whose words are of the letters a to h."""
    random = np.random.default_rng(6)
    width, hidden, context = 32, 48, 24
    shapes = {"token_embd.weight": (len(PIECES), width), "position_embd.weight": (context, width),
              "token_types.weight": (2, width), "token_embd_norm.weight": (width,), "token_embd_norm.bias": (width,)}
    for i in range(2):
        for name, rows, columns in (("attn_q", width, width), ("attn_k", width, width), ("attn_v", width, width),
                                    ("attn_output", width, width), ("ffn_up", hidden, width), ("ffn_down", width, hidden)):
            shapes |= {f"blk.{i}.{name}.weight": (rows, columns), f"blk.{i}.{name}.bias": (rows,)}
        for name in ("attn_output_norm", "layer_output_norm"):
            shapes |= {f"blk.{i}.{name}.weight": (width,), f"blk.{i}.{name}.bias": (width,)}
    everything = {"general.architecture": "bert", "bert.block_count": 2, "bert.embedding_length": width,
                  "bert.feed_forward_length": hidden, "bert.context_length": context, "bert.attention.head_count": 4,
                  "bert.attention.layer_norm_epsilon": 1e-12, "bert.pooling_type": 1, "tokenizer.ggml.model": "bert",
                  "tokenizer.ggml.tokens": PIECES, "tokenizer.ggml.token_type": [3] * 4 + [1] * (len(PIECES) - 4),
                  "tokenizer.ggml.unknown_token_id": 1, "tokenizer.ggml.cls_token_id": 2,
                  "tokenizer.ggml.seperator_token_id": 3}
    return gguf(everything | (keys or {}), {name: random.normal(0, 1, shape) for name, shape in shapes.items()})
