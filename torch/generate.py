#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the C++ table of rows.yaml, and docs/torch_operators.md.

generate.py rows.yaml --table rows.inc [--page ../docs/torch_operators.md]

The schemas of torch say which names of an expression are arguments, so this runs with the torch that is built for.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from pathlib import Path
from typing import Any

import yaml

TYPES = ("promote", "floating", "boolean", "same", "sum")
FIELDS = {"overloads", "types", "code", "empty"}


class RowError(Exception):
    """A row that makes no sense."""


def schema_of(overload: str) -> Any:
    """The schema of an overload such as add.out, or None where this torch lacks it."""
    import torch

    name, _, variant = overload.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    found = getattr(packet, variant or "default", None)
    return found and found._schema


def pieces_of(code: str, arguments: list[str]) -> list[tuple[str, str | None]]:
    """Cuts an expression into texts and the arguments behind them. What is called is a function, not an argument."""
    names = "|".join(sorted(map(re.escape, arguments), key=len, reverse=True))
    pattern = re.compile(rf"\[dim\]|\b(?:{names})\b(?!\s*[(\[])")
    pieces: list[tuple[str, str | None]] = []
    at = 0
    for found in pattern.finditer(code):
        pieces.append((code[at : found.start()], found.group()))
        at = found.end()
    pieces.append((code[at:], None))
    return pieces


def read_row(row: dict[str, Any]) -> dict[str, Any] | None:
    """A row with its expressions cut into pieces. None where torch has none of its overloads."""
    unknown = set(row) - FIELDS
    if unknown:
        raise RowError(f"unknown fields {sorted(unknown)}; there are {sorted(FIELDS)}")
    schemas = {name: schema_of(name) for name in row["overloads"].split()}
    present = {name: schema for name, schema in schemas.items() if schema is not None}
    if not present:
        return None
    first = next(iter(present.values()))
    arguments = [argument.name for argument in first.arguments]
    types = row.get("types", "promote")
    if types not in TYPES:
        raise RowError(f"types is one of {TYPES}, not {types!r}")
    variants = row["code"] if isinstance(row["code"], list) else [{"code": row["code"]}]
    read = []
    for variant in variants:
        code = str(variant["code"])
        if not re.search(r"\by0\s*=[^=]", code):
            code = "y0 = " + code
        conditions = {name: str(value).lower() for name, value in variant.get("when", {}).items()}
        for name in conditions:
            if name != "common" and name not in arguments:
                raise RowError(f"a condition names {name!r}; the arguments are {arguments}")
        read.append({"conditions": conditions, "pieces": pieces_of(code, arguments), "code": code})
    return {
        "overloads": list(present),
        "types": types,
        "variants": read,
        "reduces": any("[dim]" in variant["code"] for variant in read),
        "empty": float(row.get("empty", 0)),
    }


def text(value: str | None) -> str:
    """A C++ literal."""
    return "nullptr" if value is None else json.dumps(value)


def array(kind: str, name: str, values: list[str]) -> str:
    """A constant array; empty ones are left out, since C++ has none."""
    return f"constexpr {kind} {name}[] = {{{', '.join(values)}}};\n" if values else ""


def table_of(rows: list[dict[str, Any]]) -> str:
    """The text of rows.inc."""
    out = ["// Made by generate.py from rows.yaml. Do not edit.\n"]
    entries = []
    for i, row in enumerate(rows):
        variants = []
        for k, variant in enumerate(row["variants"]):
            conditions = [f"{{{text(name)}, {text(value)}}}" for name, value in variant["conditions"].items()]
            out.append(array("Condition", f"conditions_{i}_{k}", conditions))
            pieces = [f"{{{text(before)}, {text(argument)}}}" for before, argument in variant["pieces"]]
            out.append(array("Piece", f"pieces_{i}_{k}", pieces))
            which = f"conditions_{i}_{k}" if conditions else "{}"
            variants.append(f"{{{which}, pieces_{i}_{k}}}")
        out.append(array("Variant", f"variants_{i}", variants))
        out.append(array("const char*", f"overloads_{i}", [text(name) for name in row["overloads"]]))
        empty = "NAN" if math.isnan(row["empty"]) else f"{row['empty']!r}"
        empty = empty.replace("-inf", "-INFINITY").replace("inf", "INFINITY")
        reduces = "true" if row["reduces"] else "false"
        entries.append(f"    {{overloads_{i}, Types::{row['types']}, {reduces}, {empty}, variants_{i}}},\n")
    return "".join(out) + "constexpr Row rows[] = {\n" + "".join(entries) + "};\n"


def page_of(rows: list[dict[str, Any]]) -> str:
    """The text of docs/torch_operators.md."""
    lines = [
        "# Operators of PyTorch as expressions",
        "",
        "`torch/generate.py` makes this page from `torch/rows.yaml`. Each overload is one generated kernel; the operands in an",
        "expression are the operator's arguments by name, and [pointwise.md](pointwise.md) has the language. Types: *promote*",
        "is PyTorch's promotion, *floating* makes integers float, the result of *boolean* is bool, *same* keeps the first",
        "operand's type, and *sum* gives int64 for integers.",
        "",
        "| overloads | types | expression |",
        "|---|---|---|",
    ]
    for row in rows:
        codes = []
        for variant in row["variants"]:
            when = ", ".join(f"{name}: {value}" for name, value in variant["conditions"].items())
            code = variant["code"].removeprefix("y0 = ").replace("|", "\\|")
            codes.append(f"`{code}`" + (f" ({when})" if when else ""))
        lines.append(f"| {', '.join(row['overloads'])} | {row['types']} | {'<br>'.join(codes)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Reads the rows and writes what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    rows = []
    taken: dict[str, int] = {}
    for number, row in enumerate(yaml.safe_load(options.rows.read_text()), 1):
        try:
            read = read_row(row)
            for overload in read["overloads"] if read else ():
                if overload in taken:
                    raise RowError(f"{overload} stands in row {taken[overload]}, too")
                taken[overload] = number
        except (RowError, KeyError) as error:
            raise SystemExit(f"{options.rows}: row {number} ({row.get('overloads')}): {error}") from error
        if read:
            rows.append(read)
    if options.table:
        options.table.write_text(table_of(rows))
    if options.page:
        options.page.write_text(page_of(rows))


if __name__ == "__main__":
    main()
