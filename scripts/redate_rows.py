#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Gives rows of databases/ today's date where a change of kernels left their programs as they were.

    engine_row_programs > before.json      in a build of the commit before the change
    engine_row_programs > after.json       in a build of the change
    scripts/redate_rows.py before.json after.json [--compile CLANG] [--write]

A row is dated by the hash of all tokens of its engine's kernel files (src/engine/database.hpp), so that renaming a macro,
or a change for other problems, makes it stale. This compares what the row's own engine compiles for the row's problem,
layout, and tuning: both programs go through the C preprocessor with the options of their build, and their tokens are
compared. With --compile, programs whose tokens differ are compiled by Clang for NVPTX at -O2, and count as the same if
each basic block of the PTX has the same instructions, in any order: that shows the same for one compiler, and makes it likely
for the device's own, which is built on the same passes.

Every row is listed under one of three verdicts. --write gives the new hash to proven rows. The exit status is 1 if a row is
not proven; such rows must be measured again, or dropped with all others of the same problem.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKEN = re.compile(
    r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.])*|<<=|>>=|[-+*/%&|^<>=!]=|&&|\|\||<<|>>|\+\+|--|->|\S'
)
# What drivers define and kernels may ask for.
PREDEFINED = ["-D__OPENCL_VERSION__=300", "-D__OPENCL_C_VERSION__=300", "-Dcl_khr_fp64=1", "-DFP_FAST_FMAF=1"]
Program = dict[str, str]


def options_of(program: Program) -> list[str]:
    return program["options"].split()


def tokens_of(program: Program) -> list[str]:
    """What the preprocessor leaves of a program, without pragmas' line breaks and blanks."""
    defines = [option for option in options_of(program) if option.startswith("-D")]
    command = ["cpp", "-P", "-undef", "-nostdinc", "-w", "-x", "c", *PREDEFINED, *defines, "-"]
    text = subprocess.run(command, input=program["source"], capture_output=True, text=True, check=True).stdout
    return TOKEN.findall(text)


def without_unused(ptx: str) -> str:
    """The text without functions that nothing calls, since all calls of them were inlined."""
    parts = re.split(r"^(?=\.visible )", ptx, flags=re.M)
    names = [re.search(r"\.func\s+(?:\([^)]*\)\s+)?(\w+)", part.split("{")[0]) for part in parts]
    return "".join(part for part, name in zip(parts, names) if name is None or ptx.count(name[1] + ",") > 0)


def with_offsets(ptx: str) -> str:
    """The text with parameters by their bytes after the first one, by which the driver passes them.

    So it does not matter whether they are single or members of a struct.
    """
    sizes = {"8": 1, "16": 2, "32": 4, "64": 8}

    def of_entry(entry: str) -> str:
        head, _, body = entry.partition(")")
        at: dict[str, int] = {}
        end = 0
        for align, bits, name, count in re.findall(
            r"\.param (?:\.align (\d+) )?\.\w(\d+)[^,\n]*?(\w+_param_\d+)(?:\[(\d+)\])?", head
        ):
            size = sizes[bits]
            alignment = int(align or size)
            at[name] = (end + alignment - 1) // alignment * alignment
            end = at[name] + size * int(count or 1)
        # A struct's address may be in a register, or in a copy of that.
        for moved in (r"\tmov\.b64 \t(%\w+), (\w+_param_\d+);\n", r"\tmov\.u64 \t(%\w+), (\w+_param_\d+);\n"):
            for register, name in re.findall(moved, body):
                body = re.sub(rf"{register}\b(?=[+\];])", name, re.sub(moved.replace(r"(%\w+)", register), "", body))
        address = r"\[(\w+_param_\d+)(?:\+(\d+))?\]"
        return re.sub(address, lambda found: f"[{at[found[1]] + int(found[2] or 0)}]", body)

    first, *entries = re.split(r"\.visible \.entry (?=\w)", ptx)
    return first + "".join(entry.partition("(")[0] + of_entry(entry) for entry in entries)


def code_of(program: Program, clang: str) -> list[list[str]]:
    """What Clang makes of the program: for each basic block of its PTX, sorted instructions and their constants.

    The order within a block and the numbers of registers do not count, since the driver chooses both anew. Nor do the names of
    parameters.
    """
    target = ["-cl-std=CL3.0", "-target", "nvptx64", "-Xclang", "-target-cpu", "-Xclang", "sm_80", "-Dasm=__asm__"]
    builtins = ["-Xclang", "-finclude-default-header", "-Xclang", "-cl-ext=+all"]
    command = [clang, "-x", "cl", *target, *builtins, "-O2", "-w", *options_of(program), "-S", "-o", "-", "-"]
    run = subprocess.run(command, input=program["source"], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{clang} does not compile '{program['name']}' with {program['options']}:\n{run.stderr[:2000]}")
    text = re.sub(r"//.*|\.extern \.func[^;]*;|\.reg .*", "", run.stdout)
    text = re.sub(r"LBB\d+_", "LBB_", text)  # numbered by function
    text = without_unused(text)
    for number, kernel in enumerate(re.findall(r"\.entry (\w+)", text)):
        text = re.sub(rf"\b{kernel}(?=\b|_)", f"kernel{number}", text)
    text = with_offsets(text)
    # The driver joins multiplications and additions of integers anew.
    text = re.sub(r"mad\.lo(\.\w+) \t(%\w+, [^,]+, [^,]+), [^;]+;", r"mul.lo\1 \t\2;\nadd\1 %, %, %;", text)
    blocks = re.split(r"^(?=\w+:)|(?<=;)(?=\s*@?\S*\s*bra)", text, flags=re.M)
    lines = [[" ".join(re.sub(r"%\w+", "%", line).split()) for line in block.splitlines()] for block in blocks]
    # Parameters are constants, which the driver reads where it wants.
    read = sorted(line for block in lines for line in block if line.startswith("ld.param"))
    return [read] + [sorted(line for line in block if line and line not in read) for block in lines]


class Proofs:
    """Compares programs, each pair once."""

    def __init__(self, before: list[Program], after: list[Program], clang: str | None) -> None:
        self.before, self.after, self.clang = before, after, clang
        self.known: dict[tuple[int, int], str] = {}

    def make(self, rows: list[tuple[list[int], list[int]]]) -> None:
        """Compares all pairs of the rows' programs, on all processors."""
        pairs = list({pair for old, new in rows for pair in zip(old, new)})
        with concurrent.futures.ThreadPoolExecutor() as pool:
            compared = pool.map(lambda pair: self.compare(self.before[pair[0]], self.after[pair[1]]), pairs)
            self.known = dict(zip(pairs, compared))

    def compare(self, old: Program, new: Program) -> str:
        flags = [[option for option in options_of(one) if not option.startswith("-D")] for one in (old, new)]
        if flags[0] == flags[1] and tokens_of(old) == tokens_of(new):
            return "same tokens"
        if flags[0] == flags[1] and self.clang and code_of(old, self.clang) == code_of(new, self.clang):
            return "same code"
        return "not proven"

    def of_row(self, old: list[int], new: list[int]) -> str:
        if len(old) != len(new):
            return "not proven"
        verdicts = {self.known[pair] for pair in zip(old, new)}
        return next((one for one in ("not proven", "same code") if one in verdicts), "same tokens")


def judge(row: dict[str, Any], number: int, before: dict[str, Any], after: dict[str, Any], proofs: Proofs) -> str:
    """The verdict on a row. One that was stale before the change stays it."""
    engine = row["engine"]
    if row["source"] != before["sources"].get(engine) or engine not in after["sources"]:
        return "not proven"
    return proofs.of_row(before["rows"][number], after["rows"][number])


def databases(folder: pathlib.Path) -> list[tuple[pathlib.Path, dict[str, Any]]]:
    """In the order in which the library embeds them."""
    return [(path, json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--compile", metavar="CLANG", help="compare compiled code where tokens differ")
    parser.add_argument("--databases", type=pathlib.Path, default=ROOT / "databases")
    parser.add_argument("--write", action="store_true", help="give the new hash to the rows that are proven")
    arguments = parser.parse_args()
    before, after = (json.loads(path.read_text()) for path in (arguments.before, arguments.after))
    found = databases(arguments.databases)
    number = sum(len(database["rows"]) for _, database in found)
    if not number == len(before["rows"]) == len(after["rows"]):
        sys.exit(
            f"{arguments.databases} has {number} rows, and the programs are of {len(before['rows'])} and "
            f"{len(after['rows'])}: embed the same rows in both builds"
        )
    proofs = Proofs(before["programs"], after["programs"], arguments.compile)
    proofs.make(list(zip(before["rows"], after["rows"])))
    verdicts: collections.Counter[tuple[str, str]] = collections.Counter()
    number = 0
    for path, database in found:
        text = path.read_text()
        lines = text.split("\n")
        for line, row in enumerate(database["rows"], start=1):  # a row is a line, after the database's first
            verdict = judge(row, number, before, after, proofs)
            verdicts[verdict, row["engine"]] += 1
            number += 1
            if verdict != "not proven":
                lines[line] = lines[line].replace(row["source"], after["sources"][row["engine"]])
        if arguments.write:
            path.write_text("\n".join(lines))
    for (verdict, engine), count in sorted(verdicts.items()):
        print(f"{verdict:12} {count:5} rows of {engine}")
    return 1 if any(verdict == "not proven" for verdict, _ in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
