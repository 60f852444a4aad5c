# SPDX-License-Identifier: MIT
"""Safetensors files: what the package safetensors cannot do, which is bfloat16 for numpy, and safe writing."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Union

import numpy as np
import numpy.typing as npt

from ._dtypes import widened
from .errors import DlprimError, FileError, InvalidArgumentError, MissingFileError

Array = npt.NDArray[Any]
Path = Union[str, "os.PathLike[str]"]

# Names of types in files.
KINDS = {
    "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64", "I8": "int8", "I16": "int16",
    "I32": "int32", "I64": "int64", "U8": "uint8", "U16": "uint16", "U32": "uint32", "BOOL": "bool",
}  # fmt: skip


def package() -> Any:
    try:
        import safetensors
    except ImportError as error:
        raise DlprimError("safetensors files need the package safetensors: pip install safetensors") from error
    return safetensors


def check_regular(path: str) -> None:
    """Refuses FIFOs, sockets, devices and directories, because reading them might never end."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError as error:
        raise MissingFileError(f"'{path}' is not there") from error
    except OSError as error:
        raise FileError(f"'{path}' cannot be read: {error.strerror or error}") from error
    if not stat.S_ISREG(mode):
        raise FileError(f"'{path}' is no regular file")


def read_bfloat16(path: str, names: Sequence[str]) -> Iterator[tuple[str, Array]]:
    """Reads tensors of bfloat16, which numpy lacks. The package safetensors has checked the header before."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        for name in names:
            begin, end = header[name]["data_offsets"]
            file.seek(8 + length + begin)
            bits = np.frombuffer(file.read(end - begin), dtype="<u2")
            yield name, widened(bits).reshape(header[name]["shape"])


def entry(kind: str, shape: Sequence[int], bits: Array) -> tuple[str, list[int], Array]:
    return kind, list(shape), np.ascontiguousarray(bits, dtype=bits.dtype.newbyteorder("<"))


def write(path: Path, entries: Mapping[str, tuple[str, list[int], Array]], metadata: Mapping[str, str] | None) -> None:
    """Writes a file: a length, a header in JSON, and the elements. The widest types come first, for alignment."""
    kinds = {ours: theirs for theirs, ours in KINDS.items()}
    header: dict[str, Any] = {}
    if metadata is not None:
        for key, value in metadata.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError(f"metadata holds {key!r}: {value!r}; safetensors files hold strings by strings")
        header["__metadata__"] = dict(metadata)
    begin = 0
    ordered = sorted(entries.items(), key=lambda item: (-item[1][2].itemsize, item[0]))
    for name, (kind, shape, bits) in ordered:
        if name == "__metadata__":
            raise InvalidArgumentError("safetensors files keep the name '__metadata__' for themselves")
        header[name] = {"dtype": kinds[kind], "shape": shape, "data_offsets": [begin, begin + bits.nbytes]}
        begin += bits.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    padded = text + b" " * (-len(text) % 8)
    with _replacing(os.fspath(path)) as file:
        file.write(len(padded).to_bytes(8, "little") + padded)
        for _, (_, _, bits) in ordered:
            file.write(bits.reshape(-1).view(np.uint8).data)


@contextmanager
def _replacing(path: str) -> Iterator[BinaryIO]:
    """A temporary file in the folder of `path`, which replaces `path` when it is complete."""
    temporary = f"{path}.{secrets.token_hex(4)}"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise FileError(f"'{path}' cannot be written: {error.strerror or error}") from error
