#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a message of the library names a call of C++ (NetOptions::precision) or an option of a command
(--precision), and first shows on made-up lines that it can fail. Usage: messages_test.py [REPOSITORY].

The library is used by programs in C++ and Python and by the commands, and a message reaches all of them. So it names
an option by the word that all of them have: "the option precision"."""

import re
import sys

from rules import repository, told

TEXT = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
REFUSED = [
    (re.compile(r"\b[A-Z]\w*::\w"), "a call of C++"),
    (re.compile(r"(?:^|[ (])--[a-z]"), "an option of a command"),
]


def complaints(line: str, commands: bool = False) -> list[str]:
    """What the texts of a line name."""
    if line.lstrip().startswith("//"):
        return []
    refused = REFUSED[:1] if commands else REFUSED
    return [what for text in TEXT.findall(line) for pattern, what in refused if pattern.search(text)]


def show_that_it_can_fail() -> None:
    for line, count in [('fail("give NetOptions::batch");', 1), ('fail("with --out FOLDER");', 1), ('"(--replace)"', 1),
                        ('fail("the option batch");', 0), ("// NetOptions::batch", 0), ('"a -- b"', 0)]:
        assert len(complaints(line)) == count, line
    assert not complaints('"--out"', commands=True)


def main() -> int:
    show_that_it_can_fail()
    root = repository()
    found = []
    for folder in ("src", "python/src", "tools"):
        for path in sorted([*root.glob(f"{folder}/**/*.cpp"), *root.glob(f"{folder}/**/*.hpp")]):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                found += [f"{path.relative_to(root)}:{number}: a message names {what}: {line.strip()}"
                          for what in complaints(line, commands=folder == "tools")]
    return told(found, "no message names a call of C++ or an option of a command")


if __name__ == "__main__":
    sys.exit(main())
