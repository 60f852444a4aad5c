#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of operators in docs/json.md from what the structs of include/dlprim/op_options.hpp declare.

    PYTHONPATH=build/python scripts/option_tables.py             # writes docs/json.md
    PYTHONPATH=build/python scripts/option_tables.py --check     # fails where the page says something else

A table begins with the line HEAD and ends with an empty line. The first one has the operators of networks, the second those
of the group "eager", and the third the other names of operators. Operators that declare the same share a row.
"""

import json
import pathlib
import re
import sys
from typing import Any

from dlprim import _core

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/json.md"
HEAD = "| type | options (default) | inputs -> outputs; parameters |\n|---|---|---|\n"


def number(value: Any) -> str:
    """As one would write it in JSON: 1, 0.25, true, a text without its quotes, and a list of one as that one."""
    if isinstance(value, list):
        return number(value[0]) if len(value) == 1 else ", ".join(map(number, value))
    if isinstance(value, float):
        return f"{value:g}".replace("e-0", "e-")
    return value if isinstance(value, str) else json.dumps(value)


def option_text(option: dict[str, Any]) -> str:
    """`mode` max/avg (max): what an output is of its window."""
    names = " or ".join(f"`{name}`" for name in (option["name"], option.get("also")) if name)
    choices = " " + "/".join(option["choices"]) if "choices" in option else ""
    default = number(option.get("default", []))
    given = " (required)" if option["required"] else f" ({default})" if default else ""
    return f"{names}{choices}{given}: {option['meaning']}"


def rows(declarations: dict[str, dict[str, Any]]) -> str:
    """The rows of a table."""
    types: dict[str, list[str]] = {}
    for name, one in declarations.items():
        types.setdefault(f"{'<br>'.join(map(option_text, one['options']))} | {one['takes']} |", []).append(name)
    return "".join(f"| {', '.join(names)} | {said}\n".replace("|  |", "| |") for said, names in types.items())


def main() -> int:
    declared = json.loads(_core.operator_declarations())
    aliases = {name: one for name, one in declared.items() if "alias_of" in one}
    eager = {name: one for name, one in declared.items() if one["group"] == "eager" and name not in aliases}
    others = {name: one for name, one in declared.items() if name not in aliases | eager}
    for name, one in declared.items():
        aliases |= {other: {"options": [], "takes": f"as {name}"} for other in one.get("other_names", [])}
    tables = [rows(others), rows(eager), rows(aliases)]
    page = PAGE.read_text()
    written = re.sub(re.escape(HEAD) + r"(?:\|.*\n)*", lambda _: HEAD + tables.pop(0), page, count=len(tables))
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(written)
    elif tables or written != page:
        print(
            "docs/json.md is not what include/dlprim/op_options.hpp declares. To write it, build and run "
            "PYTHONPATH=<build folder>/python scripts/option_tables.py"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
