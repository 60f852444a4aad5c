#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes golden_blocks.inc: hashes of the values that PyPI's `gguf` package makes of random blocks, for gguf_test.cpp.
Usage: golden_blocks.py > golden_blocks.inc, with numpy and gguf installed."""

import gguf
import numpy as np

BLOCKS = 4000
TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"]


def noise(seed: int, count: int) -> bytes:
    made = bytearray()
    for _ in range(count):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        made.append(seed >> 24)
    return bytes(made)


def hash_of(values: np.ndarray) -> int:
    bits = values.astype(np.float32).reshape(-1).view(np.uint32).copy()
    bits[np.isnan(values.reshape(-1))] = 0x7FC00000
    result = 0xCBF29CE484222325
    for byte in bits.tobytes():
        result = ((result ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return result


def main() -> None:
    for name in TYPES:
        kind = gguf.GGMLQuantizationType[name]
        size = gguf.GGML_QUANT_SIZES[kind][1]
        data = np.frombuffer(noise(int(kind), BLOCKS * size), dtype=np.uint8)
        with np.errstate(all="ignore"):
            values = gguf.quants.dequantize(data.view(np.float32) if name == "F32" else data, kind)
        print(f'{{"{name}", 0x{hash_of(values):016x}u}},')


if __name__ == "__main__":
    main()
