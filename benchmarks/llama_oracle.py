# SPDX-License-Identifier: MIT
"""A Llama model of a GGUF file in float64, by numpy: what the logits of programs that round are compared with.

The file's weights are unpacked as they are stored (F32, F16, Q4_0, Q4_1 and Q8_0), and nothing is rounded behind that.
Texts are read as a whole, all at a time, since most of the time is that of unpacking, and no cache is kept:

    x = table[tokens of all texts]
    for each layer:   x += attention(norm(x)),   x += (silu(norm(x) gate) * (norm(x) up)) down
    logits = norm(x) table^T
"""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT, ARRAY = 8, 9
BLOCK = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 8: (32, 34)}  # weights and bytes, by GGUF's code of the type


def read_value(file: BinaryIO, kind: int) -> Any:
    """A value of GGUF's metadata."""
    if kind in SCALARS:
        layout = "<" + SCALARS[kind]
        return struct.unpack(layout, file.read(struct.calcsize(layout)))[0]
    if kind == TEXT:
        return file.read(read_value(file, 10)).decode(errors="replace")
    if kind != ARRAY:
        raise ValueError(f"GGUF has no metadata of type {kind}")
    element = read_value(file, 4)
    return [read_value(file, element) for _ in range(read_value(file, 10))]


def unpack(kind: int, data: np.ndarray) -> np.ndarray:
    """The weights of bytes."""
    if kind in (0, 1):
        return data.view(np.float32 if kind == 0 else np.float16).astype(np.float64)
    blocks = data.reshape(-1, BLOCK[kind][1])
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float64)
    if kind == 8:
        return (scale * blocks[:, 2:].view(np.int8)).reshape(-1)
    packed = blocks[:, 2:] if kind == 2 else blocks[:, 4:]
    numbers = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float64)
    offset = -8 * scale if kind == 2 else blocks[:, 2:4].copy().view(np.float16).astype(np.float64)
    return (scale * numbers + offset).reshape(-1)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities, along the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


class Oracle:
    """The model of a file."""

    def __init__(self, path: str) -> None:
        """Raise ValueError for another architecture, and for types of weights that it does not unpack."""
        with open(path, "rb") as file:
            _, _, tensors, facts = struct.unpack("<4sIQQ", file.read(24))
            self.facts: dict[str, Any] = {}
            for _ in range(facts):
                name = read_value(file, TEXT)
                self.facts[name] = read_value(file, read_value(file, 4))
            places = {}
            for _ in range(tensors):
                name = read_value(file, TEXT)
                shape = [read_value(file, 10) for _ in range(read_value(file, 4))][::-1]
                places[name] = (shape, read_value(file, 4), read_value(file, 10))
            step = self.facts.get("general.alignment", 32)
            start = (file.tell() + step - 1) // step * step
        if self.facts["general.architecture"] != "llama":
            raise ValueError(f"'{path}' is no Llama model")
        data = np.memmap(path, np.uint8, "r")
        self.stored: dict[str, tuple[list[int], int, np.ndarray]] = {}
        for name, (shape, kind, offset) in places.items():
            if kind not in BLOCK:
                raise ValueError(f"'{name}' of '{path}' has weights of type {kind}, which are not unpacked here")
            size = int(np.prod(shape)) // BLOCK[kind][0] * BLOCK[kind][1]
            self.stored[name] = (shape, kind, data[start + offset : start + offset + size])

    def weight(self, name: str) -> np.ndarray:
        """A tensor in float64."""
        shape, kind, data = self.stored[name]
        return unpack(kind, np.array(data)).reshape(shape)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        """RMSNorm of rows."""
        eps = self.facts["llama.attention.layer_norm_rms_epsilon"]
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * self.weight(name)

    def turn(self, x: np.ndarray) -> np.ndarray:
        """Rotary embedding of [tokens, heads, features], whose pairs are neighbours."""
        features = self.facts.get("llama.rope.dimension_count", x.shape[2])
        base = self.facts.get("llama.rope.freq_base", 10000.0)
        angles = np.arange(len(x))[:, None] / base ** (np.arange(0, features, 2) / features)
        pairs = x[..., :features].reshape(*x.shape[:2], -1, 2)
        turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)[:, None]
        result = x.copy()
        result[..., :features] = np.stack([turned.real, turned.imag], axis=-1).reshape(*x.shape[:2], -1)
        return result

    def attend(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Causal attention among the tokens of a text, whose heads of keys serve several of queries."""
        count, heads = len(q), self.facts["llama.attention.head_count"]
        q = self.turn(q.reshape(count, heads, -1))
        k = self.turn(k.reshape(count, -1, q.shape[2]))
        group = heads // k.shape[1]
        scores = np.einsum("qhd,khd->hqk", q, k.repeat(group, axis=1)) / np.sqrt(q.shape[2])
        scores[:, np.triu(np.ones((count, count), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        v = v.reshape(count, k.shape[1], -1).repeat(group, axis=1)
        return np.einsum("hqk,khd->qhd", weights, v).reshape(count, -1)

    def read(self, texts: list[list[int]]) -> list[np.ndarray]:
        """What logits() takes behind each token of each text, [tokens, features]."""
        ends = np.cumsum([len(text) for text in texts])[:-1]
        x = self.weight("token_embd.weight")[np.concatenate(texts)]
        for i in range(self.facts["llama.block_count"]):
            layer = f"blk.{i}."
            h = self.norm(x, layer + "attn_norm.weight")
            parts = [np.split(h @ self.weight(f"{layer}attn_{name}.weight").T, ends) for name in "qkv"]
            y = np.concatenate([self.attend(q, k, v) for q, k, v in zip(*parts, strict=True)])
            x = x + y @ self.weight(layer + "attn_output.weight").T
            h = self.norm(x, layer + "ffn_norm.weight")
            gate, up = (h @ self.weight(f"{layer}ffn_{name}.weight").T for name in ("gate", "up"))
            x = x + (gate / (1 + np.exp(-gate)) * up) @ self.weight(layer + "ffn_down.weight").T
        return np.split(self.norm(x, "output_norm.weight"), ends)

    def logits(self, rows: np.ndarray) -> np.ndarray:
        """Logits of the next token, [rows, vocabulary]."""
        return rows @ self.weight("output.weight" if "output.weight" in self.stored else "token_embd.weight").T
