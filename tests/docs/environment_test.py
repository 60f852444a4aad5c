#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when an environment variable is read that docs/environment.md does not list, or when the page lists one that
nothing reads. First shows on made-up text that it can fail. Usage: environment_test.py [REPOSITORY]."""
import pathlib
import re
import sys

from documents import ROOT, files_of

FOLDERS = ("src", "plugins", "include", "tools", "python", "examples", "tests", "scripts", "benchmarks")
READS = {
    # The last two: the table of what starters of processes set.
    (".cpp", ".hpp"): [r'\b(?:env|env_flag|getenv|number_in)\("(\w+)"\)', r'\bneeded\("(\w+)"',
                       r'"((?:OMPI_COMM_WORLD|PMI|MPI_LOCAL)_?\w+)"', r'"((?:LOCAL_)?(?:RANK|WORLD_SIZE))"'],
    (".py",): [r'environ\.get\(\s*"(\w+)"', r'environ\[\s*"(\w+)"\s*\](?!\s*=[^=])', r'\bgetenv\(\s*"(\w+)"'],
    (".sh",): [r"\$\{(\w+):[-+?=]", r"\$\{((?:DLPRIM|POCL|OCL)_\w+)\}", r"\$((?:DLPRIM|POCL|OCL)_\w+)"],
}
# Of the system and of continuous integration.
NO_VARIABLES = {"CI", "LD_PRELOAD", "PATH"}
# Read by others than us: PoCL reads it, benchmarks/cpu.py sets it.
READ_BY_OTHERS = {"POCL_MAX_PTHREAD_COUNT"}


def read_in(text, suffix):
    found = set()
    for suffixes, patterns in READS.items():
        if suffix in suffixes:
            for pattern in patterns:
                found |= set(re.findall(pattern, text))
    # In a script a name in lower case, or a number, is the script's own.
    return {name for name in found if name.isupper()} - NO_VARIABLES


def listed_in(page):
    rows = re.findall(r"^\| ((?:`[A-Z][A-Z0-9_]*`(?:, )?)+) \|", page, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


assert read_in('env("ONE") env(name) env_flag("TWO") std::getenv("THREE")', ".cpp") == {"ONE", "TWO", "THREE"}
assert read_in('os.environ.get("ONE", "") os.environ["TWO"] os.environ["SET"] = "1"', ".py") == {"ONE", "TWO"}
assert read_in("${DLPRIM_ONE:-} ${here:-1} ${1:-x} $DLPRIM_TWO", ".sh") == {"DLPRIM_ONE", "DLPRIM_TWO"}
assert listed_in("| `ONE`, `TWO` | x |\n| `lower` | y |\n") == {"ONE", "TWO"}

root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
read = {}
for path in files_of(root, {suffix for suffixes in READS for suffix in suffixes}, FOLDERS):
    if path.name != "environment_test.py":
        for name in read_in(path.read_text(errors="replace"), path.suffix):
            read.setdefault(name, path.relative_to(root))
listed = listed_in((root / "docs/environment.md").read_text())
problems = [f"{read[name]} reads {name}, which docs/environment.md does not list" for name in sorted(set(read) - listed)]
problems += [f"docs/environment.md lists {name}, which nothing reads"
             for name in sorted(listed - set(read) - READ_BY_OTHERS)]
print("\n".join(problems))
sys.exit(1 if problems else 0)
