# SPDX-License-Identifier: MIT
"""Writes a program of torch.export as a network of dlprim.

    python -m dlprim_torch.convert MODEL.pt2 NET.json WEIGHTS.h5

The command dlprim_convert calls this for files that end in .pt2. Such a file is an archive of a graph, before PyTorch's
decompositions, and of tensors. torch.export.load() reads it, and runs what a hostile file says: pickles, expressions
and names of functions. So the archive is checked first, and what PyTorch reads is a copy without pickles.
"""

from __future__ import annotations

import argparse
import ast
import json
import logging
import pathlib
import re
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ._export import LOSSES, first_output, graph_of_program, write_network

# What sizes are computed by, and what only says how operators in a part of the graph are to run.
ON_SIZES = re.compile(
    r"_operator\.(getitem|add|sub|mul|floordiv|truediv|mod|neg|pos|eq|ne|lt|le|gt|ge|and_|or_|not_)|"
    r"math\.(ceil|floor|trunc|sqrt)|torch\.sym_\w+|torch\.ops\.higher_order\.wrap_with_(set_grad_enabled|autocast)"
)
ATEN = re.compile(r"torch\.ops\.aten\.(\w+)\.(\w+)")
FILES = ("from_file",)  # operators of files
# Names of tensors become names in Python's text.
NAME = re.compile(r"[A-Za-z_]\w{0,400}")
# What expressions of sizes may name. PyTorch evaluates their text as Python.
SIZE = re.compile(
    r"[suz]\d+|Symbol|Integer|Float|Add|Mul|Pow|Max|Min|Mod|PythonMod|FloorDiv|CeilDiv|CleanDiv|ModularIndexing|"
    r"IntTrueDiv|FloatTrueDiv|ToFloat|TruncToInt|CeilToInt|FloorToInt|Where|Eq|Ne|Equality|Unequality|StrictLessThan|"
    r"LessThan|StrictGreaterThan|GreaterThan|And|Or|Not|true|false|int_oo|oo"
)
PARTS = (
    ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.keyword, ast.UnaryOp, ast.USub, ast.BinOp, ast.Add,
    ast.Sub, ast.Mult, ast.FloorDiv, ast.Div, ast.Mod, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip
PAYLOAD = re.compile(r"(weight|tensor)_\d+")
MOST_MEMBERS = 200_000
MOST_TEXT = 1 << 30  # bytes of the graph's text


class Refused(Exception):
    """A sentence on why the file is not taken."""


def parts_of(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by their names behind the archive's folder. PyTorch stores members as they are."""
    members = archive.infolist()
    if len(members) > MOST_MEMBERS:
        raise Refused(f"it has {len(members)} members")
    folders = {member.filename.partition("/")[0] for member in members}
    found = {member.filename.partition("/")[2]: member for member in members}
    if len(folders) != 1 or len(found) < len(members):
        raise Refused("its members are not those of one folder")
    for name, member in found.items():
        if member.compress_type != zipfile.ZIP_STORED or ".." in name.split("/") or member.flag_bits & 1:
            raise Refused(f"its member {name!r} is not stored as PyTorch stores it")
    return found


def document(archive: zipfile.ZipFile, member: zipfile.ZipInfo | None, name: str) -> Any:
    """A JSON document of the archive."""
    if member is None:
        raise Refused(f"it has no {name}")
    if member.file_size > MOST_TEXT:
        raise Refused(f"its {name} has {member.file_size} bytes")
    return json.loads(archive.read(member))


def nested(value: Any) -> Iterator[tuple[str, Any]]:
    """All keys with their values, at any depth."""
    waiting = [value]
    while waiting:
        at = waiting.pop()
        if isinstance(at, dict):
            yield from at.items()
        waiting += at.values() if isinstance(at, dict) else at if isinstance(at, list) else []


def check_expression(text: Any) -> None:
    """Refuses what is no expression of sizes, and powers that may never end."""
    sentence = f"it has a size {str(text)[:80]!r}, which is no expression of sizes"
    if not isinstance(text, str) or len(text) > 2000 or text.count("Pow") > 3:
        raise Refused(sentence)
    try:
        parts = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, ValueError) as error:
        raise Refused(sentence) from error
    for part in parts:
        name = part.id if isinstance(part, ast.Name) else part.value if isinstance(part, ast.Constant) else ""
        named = isinstance(name, (int, float)) or not name or SIZE.fullmatch(str(name))
        if not isinstance(part, PARTS) or not named:
            raise Refused(sentence)


def is_operator(target: str) -> bool:
    """Whether a graph may call it: an overload of ATen, or what sizes are computed by."""
    found = ATEN.fullmatch(target)
    if found is None:
        return ON_SIZES.fullmatch(target) is not None
    overload = getattr(getattr(torch.ops.aten, found[1], None), found[2], None)
    return isinstance(overload, torch._ops.OpOverload) and found[1] not in FILES


def check_program(program: Any) -> None:
    """Refuses a graph that names other functions than operators, or sizes or names that are code."""
    for key, value in nested(program):
        if key in ("target", "as_operator") and not (isinstance(value, str) and is_operator(value)):
            raise Refused(f"its graph calls {str(value)[:80]!r}, which is no operator of PyTorch's own")
        if key in ("as_custom_obj", "custom_obj"):
            raise Refused("it has an object of a class of its own")
        if key in ("name", "as_name") and not (isinstance(value, str) and NAME.fullmatch(value)):
            raise Refused(f"it has a tensor {str(value)[:80]!r}, which is no name")
        if key == "expr_str":
            check_expression(value)
        if key in ("range_constraints", "symbol_values"):
            for name in value:
                check_expression(name)


def check_payloads(payloads: Any, parts: dict[str, zipfile.ZipInfo], folder: str) -> set[str]:
    """The members that a list of tensors names."""
    named = set()
    for name, payload in payloads["config"].items():
        path = payload["path_name"]
        if payload["use_pickle"] or not PAYLOAD.fullmatch(path):
            raise Refused(f"its tensor {name[:80]!r} is a pickle, which may run any program")
        if folder + path not in parts:
            raise Refused(f"it lacks the elements of its tensor {name[:80]!r}")
        named.add(folder + path)
    return named


def checked_copy(source: pathlib.Path, copy: pathlib.Path) -> None:
    """Writes what is safe to read of an archive: its graph and its tensors, and no example of inputs."""
    with zipfile.ZipFile(source) as archive, zipfile.ZipFile(copy, "w") as checked:
        parts = parts_of(archive)
        graphs = [name for name in parts if name.startswith("models/")]
        if graphs != ["models/model.json"]:
            raise Refused("it has not one graph, as torch.export.save() writes it")
        check_program(document(archive, parts["models/model.json"], "graph"))
        taken = {"models/model.json", "archive_format", "archive_version", ".data/version", "byteorder"}
        for kind in ("weights", "constants"):
            folder = f"data/{kind}/"
            name = f"{folder}model_{kind}_config.json"
            taken |= check_payloads(document(archive, parts.get(name), f"list of {kind}"), parts, folder) | {name}
        for name in sorted(taken & parts.keys()):
            checked.writestr("model/" + name, archive.read(parts[name]))
        checked.writestr("model/data/sample_inputs/model.pt", b"")


def load(model: pathlib.Path) -> torch.export.ExportedProgram:
    """The program in a file. Raises Refused, or whatever PyTorch raises for a file that is not right."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "model.pt2"
        checked_copy(model, copy)
        return torch.export.load(copy)


def convert(model: pathlib.Path, net: pathlib.Path, weights: pathlib.Path, loss: str | None = None) -> None:
    """Writes both files, or none. Raises Refused, NotImplementedError, ValueError or OSError, in one sentence."""
    if net.absolute() == weights.absolute():
        raise ValueError(f"NET and WEIGHTS name the same file {str(net)!r}.")
    try:
        program = load(model)
    except (OSError, Refused):
        raise
    except Exception as error:  # whatever is wrong with the file
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise Refused(f"it is no program that torch.export.save() of this PyTorch wrote ({first[:200]})") from error
    network = graph_of_program(program)
    first = network.config["inputs"][0]["shape"] if network.config["inputs"] else []
    write_network(network, first_output(program, first[0] if first else 0), loss, net, weights)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns 1 after a sentence on what is wrong."""
    parser = argparse.ArgumentParser("dlprim_torch.convert", description=str(__doc__).partition("\n")[0])
    parser.add_argument("model", metavar="MODEL.pt2", type=pathlib.Path)
    parser.add_argument("net", metavar="NET.json", type=pathlib.Path)
    parser.add_argument("weights", metavar="WEIGHTS.h5", type=pathlib.Path)
    parser.add_argument("--loss", choices=list(LOSSES), help="adds an input of labels and the loss of the first output")
    given = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # what PyTorch says of a file beside its exception
    warnings.simplefilter("ignore")
    try:
        convert(given.model, given.net, given.weights, given.loss)
    except Refused as error:
        print(f"{given.model}: {error}.", file=sys.stderr)
    except OSError as error:
        print(f"{error.filename or given.model}: {error.strerror or error}.", file=sys.stderr)
    except (NotImplementedError, ValueError, ImportError) as error:
        print(f"{given.model}: {error}", file=sys.stderr)
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
