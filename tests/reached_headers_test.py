#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a file of src/ calls a function of base/text.hpp and does not reach that header through its includes, and first
shows on made-up files that it can fail. Such a file compiles in the tests' build, which joins sources and parses common headers
beforehand, and not in a user's.
Usage: reached_headers_test.py [REPOSITORY]."""

import functools
import re
import sys

from rules import repository, shown_to_fail, told

HEADER = "base/text.hpp"
CALL = re.compile(r"(?<![\w.>:~])(?:dlprim::)?(fail|require|cat|did_you_mean)\(")
OWN = re.compile(r"\b(?:void|auto|int|bool|std::string)&? +(fail|require|cat|did_you_mean)(?:\(| = )")  # a file's own of that name
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|R"\((?:.*?)\)"', re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def check(root):
    source = root / "src"

    @functools.cache
    def included(path):
        names = INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace"))
        found = [near if (near := path.parent / name).exists() else source / name for name in names]
        return [one.resolve() for one in found if one.exists()]

    def reaches(path):
        seen, left = set(), [path.resolve()]
        while left:
            one = left.pop()
            if one == (source / HEADER).resolve():
                return True
            if one not in seen:
                seen.add(one)
                left += included(one)
        return False

    problems = []
    for path in sorted(p for p in source.rglob("*") if p.suffix in (".cpp", ".hpp")):
        text = COMMENT.sub("", path.read_text(encoding="utf-8", errors="replace"))
        called = {match.group(1) for match in CALL.finditer(text)} - {match.group(1) for match in OWN.finditer(text)}
        if called and not reaches(path):
            problems.append(f"{path.relative_to(root)}: calls {', '.join(sorted(called))} and does not include {HEADER}")
    return problems


SELF_TEST = {
    "src/base/text.hpp": ("void fail(int);\n", False),
    "src/base/more.hpp": ('#include "base/text.hpp"\n', False),
    "src/plan/a.cpp": ("void f() { fail(1); }\n", True),
    "src/plan/b.cpp": ('#include "base/more.hpp"\nvoid f() { fail(1); }\n', False),
    "src/plan/c.cpp": ("// fail(1) is what it does not do\nvoid f() { it.fail(1); }\n", False),
    "src/plan/d.cpp": ("void fail(int) {}\nvoid f() { fail(1); }\n", False),
}

if __name__ == "__main__":
    sys.exit(told(shown_to_fail(check, SELF_TEST) + check(repository()), "Every file reaches what it calls."))
