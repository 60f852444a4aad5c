# SPDX-License-Identifier: MIT
"""Writes small valid files from which scripts/fuzz.sh starts: networks, configurations, tables, arrays and pictures.

    python3 scripts/fuzz_seeds.py FOLDER
"""

import base64
import io
import json
import pathlib
import struct
import sys
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
LARGEST = 4096


def npy(descr: str, shape: str, data: bytes, version: int = 1) -> bytes:
    """An array in numpy's format."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + data


def npz(compression: int) -> bytes:
    """An archive of one array, x."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("x.npy", npy("<f4", "(3, 2)", bytes(24)))
    return file.getvalue()


def png(depth: int, colour: int, row: bytes) -> bytes:
    """A picture of two equal rows of 8 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 8, 2, depth, colour, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(range(48))) if colour == 3 else b""
    pixels = zlib.compress(b"".join(b"\0" + row for _ in range(2)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def jpeg(components: int, progressive: bool, exif: bytes = b"") -> bytes:
    """A grey picture of 16 x 9 pixels: all coefficients are 0, and a block takes a bit or two."""

    def segment(marker: int, data: bytes) -> bytes:
        return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data

    numbers = range(1, components + 1)
    frame = struct.pack(">BHHB", 8, 9, 16, components) + b"".join(bytes((i, 0x11, 0)) for i in numbers)
    scan = bytes([components]) + b"".join(bytes((i, 0)) for i in numbers) + (b"\0\0\0" if progressive else b"\0\x3f\0")
    one_code = bytes([1]) + bytes(15) + b"\0"  # of one bit, for 0 or the block's end
    bits = "0" * (4 * components * (1 if progressive else 2))
    pixels = bytes(int(bits[i : i + 8].ljust(8, "1"), 2) for i in range(0, len(bits), 8))
    return b"".join(
        (
            b"\xff\xd8",
            segment(0xE1, b"Exif\0\0" + exif) if exif else b"",
            segment(0xEE, b"Adobe\0\x64\0\0\0\0\0") if components == 4 else b"",
            segment(0xDB, bytes(1) + bytes([1] * 64)),
            segment(0xC2 if progressive else 0xC0, frame),
            segment(0xC4, b"\0" + one_code + b"\x10" + one_code),
            segment(0xDA, scan),
            pixels,
            b"\xff\xd9",
        )
    )


def exif(order: str, orientation: int, before: int = 0) -> bytes:
    """Exif data with an orientation, and `before` other entries ahead of it; order is > or <."""
    entries = [struct.pack(order + "HHIHH", 0x0100 + i, 3, 1, 16, 0) for i in range(before)]
    entries.append(struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0))
    head = (b"MM" if order == ">" else b"II") + struct.pack(order + "HI", 42, 8)
    return head + struct.pack(order + "H", len(entries)) + b"".join(entries) + bytes(4)


def jpegs() -> dict[str, bytes]:
    """Pictures of all kinds of pixels and all orientations."""
    files = {f"{n}{'p' if p else ''}.jpg": jpeg(n, p) for n in (1, 3, 4) for p in (False, True)}
    for number in range(1, 9):
        order = "<>"[number % 2]
        files[f"turned{number}.jpg"] = jpeg((1, 3, 4)[number % 3], number % 4 < 2, exif(order, number, number % 3))
    return files


def seeds() -> dict[str, dict[str, bytes]]:
    """The files of each program, by name."""
    nets = sorted(ROOT.glob("tests/data/**/*.json")) + sorted(ROOT.glob("examples/**/*.json"))
    texts = {path.name: path.read_bytes()[:LARGEST] for path in nets}
    return {
        "json": texts | {"small.json": b'{"inputs": [{"name": "x", "shape": [1, 2]}], "outputs": ["x"], "operators": []}'},
        "config": {name: text for name, text in texts.items() if b'"epochs"' in text},
        "csv": {"a.csv": b'x,"y ""z""",label\r\n1,2,a\n-1e3,nan,"b\nc"\n'},
        "idx": {
            f"{kind:x}.idx": struct.pack(">BBBBII", 0, 0, kind, 2, 2, 3) + bytes(6 * size)
            for kind, size in ((8, 1), (9, 1), (11, 2), (12, 4), (13, 4), (14, 8))
        },
        "npy": {
            "f4.npy": npy("<f4", "(3, 2)", bytes(24)),
            "i8.npy": npy("<i8", "(4,)", bytes(32), 2),
            "u1.npy": npy("|u1", "(2, 2, 2)", bytes(8)),
            "stored.npz": npz(zipfile.ZIP_STORED),
            "packed.npz": npz(zipfile.ZIP_DEFLATED),
        },
        "gguf": {"small.gguf": gguf()},
        "safetensors": {"small.safetensors": safetensors()},
        "tokenizer": {
            "bytes.json": tokenizer("Ġ", "ByteLevel"),
            "pieces.json": tokenizer("▁", "Metaspace"),
            "words.json": word_pieces(),
            "unigram.json": unigram(),
            "vocab.txt": "v{}\n[UNK]\n[CLS]\n[SEP]\na\n##b\ne\n一\n".encode(),
        },
        "image": {
            "grey.png": png(8, 0, bytes(8)),
            "rgb.png": png(8, 2, bytes(24)),
            "palette.png": png(4, 3, bytes(4)),
            "deep.png": png(16, 6, bytes(64)),
            "grey.pgm": b"P5\n# a comment\n3 2\n255\n" + bytes(6),
            "rgb.ppm": b"P6 3 2 65535\n" + bytes(36),
            **jpegs(),
        },
    }


def gguf() -> bytes:
    """A model with keys of several kinds and a tensor of floats."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    keys = text("a") + struct.pack("<II", 4, 7) + text("b") + struct.pack("<I", 8) + text("llama")
    keys += text("c") + struct.pack("<IIQ", 9, 8, 2) + text("x") + text("")
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 3) + keys + text("w") + struct.pack("<IQQIQ", 2, 32, 1, 2, 0)
    return head + bytes(-len(head) % 32) + bytes(18)


def safetensors() -> bytes:
    """A tensor of each type that is read."""
    head = b'{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},'
    head += b'"c":{"dtype":"F16","shape":[1],"data_offsets":[10,12]},"__metadata__":{"format":"pt"}}'
    return struct.pack("<Q", len(head)) + head + bytes(12)


def tokenizer(space: str, splitter: str) -> bytes:
    """BPE of a few tokens."""
    words = ["a", "b", space, "ab", space + "a", "<0x0A>"]
    digits = {"type": "Split", "pattern": {"Regex": "[0-9]"}, "behavior": "Isolated", "invert": False}
    model = {"type": "BPE", "unk_token": "<unk>", "byte_fallback": splitter == "Metaspace", "ignore_merges": True}
    model |= {"vocab": {word: i for i, word in enumerate(words)}, "merges": [["a", "b"], f"{space} a"]}
    how = {"type": splitter, "replacement": space, "prepend_scheme": "first", "split": False}
    text = {
        "added_tokens": [{"id": 9, "content": "<s>", "special": True, "lstrip": True, "rstrip": True}],
        "normalizer": None if splitter == "Metaspace" else {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [how, digits]},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}],
                           "special_tokens": {"<s>": {"ids": [9]}}},
        "model": model,
    }
    return json.dumps(text, ensure_ascii=False).encode()


def word_pieces() -> bytes:
    """WordPiece of a few tokens."""
    words = ["[UNK]", "[CLS]", "[SEP]", "a", "##b", "e", "一", "1"]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9}
    text = {
        "added_tokens": [{"id": 2, "content": "[SEP]", "special": True}],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]},
        "model": model | {"vocab": {word: i for i, word in enumerate(words)}},
    }
    return json.dumps(text, ensure_ascii=False).encode()


def unigram() -> bytes:
    """Unigram of a few tokens, and a table of characters in which É is e: a trie of its two bytes, and the replacement."""
    trie = [0] * 0xC3
    trie[0] = 1 << 10
    trie[0xC2] = 1 << 10 | 0xC3
    trie[0x4A] = 1 << 10 | 1 << 8 | 0x89
    trie[0x4B] = 1 << 31
    table = struct.pack(f"<I{len(trie)}I", 4 * len(trie), *trie) + b"e\0"
    words = [["<s>", 0], ["▁", -2.5], ["a", -1], ["b", -1.5], ["▁ab", -3], ["e", -2], ["<0x0A>", -9]]
    text = {
        "added_tokens": [{"id": 0, "content": "<s>", "special": True}],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(table).decode()},
            {"type": "Strip"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}]},
        "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True, "vocab": words},
    }
    return json.dumps(text, ensure_ascii=False).encode()


def main() -> None:
    """Writes them."""
    for program, files in seeds().items():
        folder = pathlib.Path(sys.argv[1]) / program
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
