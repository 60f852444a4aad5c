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

TYPES = ("promote", "floating", "quotient", "real", "whole", "boolean", "same", "sum")
FIELDS = {"overloads", "types", "meet", "code", "defaults", "empty", "loss"}
# What stands in expressions for numbers that follow from a call: the elements of the result, and the largest and the
# lowest number of the type in which operands meet.
SPECIALS = ("[numel]", "[largest]", "[lowest]")


class RowError(Exception):
    """A row that makes no sense."""


def schema_of(overload: str) -> Any:
    """The schema of an overload such as add.out, or None where this torch lacks it."""
    import torch

    name, _, variant = overload.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    found = getattr(packet, variant or "default", None)
    return found and found._schema


def siblings_of(overload: str) -> list[str]:
    """An overload with those of the same arguments: in place, and with out=."""
    import torch

    schema = schema_of(overload)
    if schema is None:
        return []
    base = overload.partition(".")[0].removesuffix("_")

    def arguments(of: Any) -> list[tuple[str, str]]:
        return [(argument.name, str(argument.type)) for argument in of.arguments if not argument.is_out]

    found = []
    for name in (base, base + "_"):
        for other in torch._C._jit_get_schemas_for_operator("aten::" + name):
            if arguments(other) == arguments(schema):
                found.append(name + (f".{other.overload_name}" if other.overload_name else ""))
    return [name for name in found if not is_composite(name)]


def is_composite(overload: str) -> bool:
    """Whether PyTorch makes the operator of others, with their gradients, which a kernel of ours would take from it."""
    import torch

    def has(key: str) -> bool:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + overload, key))

    return has("CompositeImplicitAutograd") and not has("Autograd")


def overloads_of(text: str) -> dict[str, Any]:
    """The schemas of the overloads that a row names, where this torch has them. `*` stands for all siblings."""
    names: list[str] = []
    for name in text.split():
        names += siblings_of(name[:-1]) if name.endswith("*") else [name]
    for name in names:
        if schema_of(name) is not None and is_composite(name):
            raise RowError(f"PyTorch makes {name} of other operators; give these rows")
    return {name: schema for name in dict.fromkeys(names) if (schema := schema_of(name)) is not None}


def pieces_of(code: str, arguments: list[str]) -> list[tuple[str, str | None]]:
    """Cuts an expression into texts and the arguments behind them. What is called is a function, not an argument."""
    names = "|".join(sorted(map(re.escape, arguments), key=len, reverse=True))
    special = "|".join(map(re.escape, ("[dim]", *SPECIALS)))
    pattern = re.compile(rf"{special}|\b(?:{names})\b(?!\s*[(\[])")
    pieces: list[tuple[str, str | None]] = []
    at = 0
    for found in pattern.finditer(code):
        pieces.append((code[at : found.start()], found.group()))
        at = found.end()
    pieces.append((code[at:], None))
    return pieces


def read_variant(variant: dict[str, Any], arguments: list[str]) -> dict[str, Any]:
    """A variant with its expressions cut into pieces."""
    code, after = str(variant["code"]), str(variant.get("then", ""))
    if not re.search(r"\by0\s*=[^=]", code):
        code = "y0 = " + code
    conditions = {name: str(value).lower() for name, value in variant.get("when", {}).items()}
    for name in conditions:
        if name != "common" and name not in arguments:
            raise RowError(f"a condition names {name!r}; the arguments are {arguments}")
    return {
        "conditions": conditions,
        "code": code,
        "pieces": pieces_of(code, arguments),
        "then": after,
        "after": pieces_of("y0 = " + after, [*arguments, "result"]) if after else [],
    }


def losses_of(variants: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A loss for each element, and what its argument `reduction` makes of it: 1 is the mean, 2 the sum."""
    made = []
    for variant in variants:
        for reduction, function in enumerate(("", "mean[dim]", "sum[dim]")):
            code = f"{function}({variant['code']})" if function else variant["code"]
            made.append({"when": {**variant.get("when", {}), "reduction": reduction}, "code": code})
    return made


def read_row(row: dict[str, Any]) -> dict[str, Any] | None:
    """A row with its expressions cut into pieces. None where torch has none of its overloads."""
    unknown = set(row) - FIELDS
    if unknown:
        raise RowError(f"unknown fields {sorted(unknown)}; there are {sorted(FIELDS)}")
    schemas = overloads_of(row["overloads"])
    if not schemas:
        return None
    arguments = list(dict.fromkeys(a.name for schema in schemas.values() for a in schema.arguments))
    types = row.get("types", "promote")
    if types not in TYPES:
        raise RowError(f"types is one of {TYPES}, not {types!r}")
    meet = row.get("meet", "").split()
    defaults = {name: str(value) for name, value in row.get("defaults", {}).items()}
    for name in [*meet, *defaults]:
        if name not in arguments:
            raise RowError(f"{name!r} is no argument; these are {arguments}")
    variants = row["code"] if isinstance(row["code"], list) else [{"code": row["code"]}]
    loss = bool(row.get("loss", False))
    read = [read_variant(variant, arguments) for variant in (losses_of(variants) if loss else variants)]
    return {
        "overloads": list(schemas),
        "types": types,
        "meet": meet,
        "defaults": defaults,
        "shown": [read_variant(variant, arguments) for variant in variants],
        "variants": read,
        "kind": "loss" if loss else "reduction" if any("[dim]" in v["code"] for v in read) else "elementwise",
        "empty": float(row["empty"]) if "empty" in row else None,
    }


def text(value: str | None) -> str:
    """A C++ literal."""
    return "nullptr" if value is None else json.dumps(value)


def array(kind: str, name: str, values: list[str]) -> str:
    """A constant array; empty ones are left out, since C++ has none."""
    return f"constexpr {kind} {name}[] = {{{', '.join(values)}}};\n" if values else ""


def pieces_text(pieces: list[tuple[str, str | None]]) -> list[str]:
    """Pieces as C++ values."""
    return [f"{{{text(before)}, {text(argument)}}}" for before, argument in pieces]


def number(value: float | None) -> str:
    """A C++ double, or none."""
    if value is None:
        return "std::nullopt"
    return "NAN" if math.isnan(value) else repr(value).replace("inf", "INFINITY")


def table_of(rows: list[dict[str, Any]]) -> str:
    """The text of rows.inc."""
    out = ["// Made by generate.py from rows.yaml. Do not edit.\n"]
    entries = []
    for i, row in enumerate(rows):

        def named(kind: str, name: str, values: list[str]) -> str:
            out.append(array(kind, name, values))
            return name if values else "{}"

        variants = []
        for k, variant in enumerate(row["variants"]):
            pairs = [f"{{{text(name)}, {text(value)}}}" for name, value in variant["conditions"].items()]
            conditions = named("Condition", f"conditions_{i}_{k}", pairs)
            pieces = named("Piece", f"pieces_{i}_{k}", pieces_text(variant["pieces"]))
            after = named("Piece", f"after_{i}_{k}", pieces_text(variant["after"]))
            variants.append(f"{{{conditions}, {pieces}, {after}}}")
        fields = [
            named("const char*", f"overloads_{i}", [text(name) for name in row["overloads"]]),
            f"Types::{row['types']}",
            f"Kind::{row['kind']}",
            number(row["empty"]),
            named("Variant", f"variants_{i}", variants),
            named("const char*", f"meet_{i}", [text(name) for name in row["meet"]]),
            named("Default", f"defaults_{i}", [f"{{{text(n)}, {text(v)}}}" for n, v in row["defaults"].items()]),
        ]
        entries.append(f"    {{{', '.join(fields)}}},\n")
    return "".join(out) + "constexpr Row rows[] = {\n" + "".join(entries) + "};\n"


def by_hand(sources: Path) -> dict[str, list[str]]:
    """The overloads that files of C++ register, by file."""
    found = {}
    for source in sorted(sources.glob("*.cpp")):
        names = re.findall(r'\bimpl(?:_unchecked)?\("([\w.]+)"', source.read_text())
        if names:
            found[source.name] = names
    return found


HEAD = """# Operators of PyTorch on the device "ocl"

`torch/generate.py` makes this page from `torch/rows.yaml` and from the registrations in `torch/csrc/ops`. What is not
here PyTorch makes of these, or it runs on the CPU and `torch.ocl.fallbacks()` counts it. Where an operator stands here
with `.out` alone, PyTorch serves the functional and the in-place overload by it. `torch/tests/opinfos.txt` says which
of PyTorch's own samples of operators pass.

## Operators as expressions

Each overload is one generated kernel. The operands in an expression are the operator's arguments by name, and
[pointwise.md](pointwise.md) has the language. `[dim]` are the dimensions over which a call reduces, `[numel]` is the
number of elements of the result, `[largest]` and `[lowest]` are limits of its type, and `result` is what was computed
before. A *loss* is reduced as the argument `reduction` says.

| types | meaning |
|---|---|
| promote | PyTorch's promotion of the operands |
| floating | the same, and integers become the default float type |
| quotient | as *floating* where `rounding_mode` is None, else as *promote* |
| real | as *floating*; integers are refused |
| whole | as *promote*; floats are refused |
| boolean | the operands are promoted, and the result is bool |
| same | nothing is promoted; the result has the type of the first operand |
| sum | of reductions: the argument `dtype`, else int64 for integers |

| overloads | types | expression |
|---|---|---|
"""


def page_of(rows: list[dict[str, Any]], sources: Path) -> str:
    """The text of docs/torch_operators.md."""
    lines = []
    for row in rows:
        codes = []
        for variant in row["shown"]:
            when = ", ".join(f"{name}: {value}" for name, value in variant["conditions"].items())
            code = variant["code"].removeprefix("y0 = ") + (f"; {variant['then']}" if variant["then"] else "")
            codes.append(f"`{code}`".replace("|", "\\|") + (f" ({when})" if when else ""))
        types = row["types"] + (", loss" if row["kind"] == "loss" else "")
        lines.append(f"| {', '.join(row['overloads'])} | {types} | {'<br>'.join(codes)} |\n")
    lines.append("\n## Operators by hand\n\n| file of torch/csrc/ops | overloads |\n|---|---|\n")
    lines += [f"| {file} | {', '.join(names)} |\n" for file, names in by_hand(sources).items()]
    return HEAD + "".join(lines)


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
        options.page.write_text(page_of(rows, options.rows.parent / "csrc" / "ops"))


if __name__ == "__main__":
    main()
