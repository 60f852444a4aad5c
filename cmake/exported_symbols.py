#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a linker version script that exports what the public headers declare, and hides everything else.

    exported_symbols.py NODE OUTPUT HEADER...

NODE is the version node, DLPRIM_0. The headers are read by a small parser that knows namespaces, classes and where a
parenthesis follows a name. It takes a few names too many, of things that are no functions, which match no symbol. The
test `exported_symbols` compares what the library exports with what Clang finds declared in the headers.
"""

from __future__ import annotations

import pathlib
import re
import sys

TOKEN = re.compile(
    r"""R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)" | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
        | [A-Za-z_]\w* | \d[\w.']* | :: | \S""",
    re.VERBOSE | re.DOTALL,
)
CLOSING = {"(": ")", "{": "}"}


def tokens_of(text: str) -> list[str]:
    """The header's tokens without comments and preprocessor's lines."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.MULTILINE)
    return [found.group() for found in TOKEN.finditer(text)]


def skip(tokens: list[str], at: int) -> int:
    """The place behind the bracket that closes the one at `at`."""
    opening, closing, depth = tokens[at], CLOSING[tokens[at]], 0
    while at < len(tokens):
        depth += (tokens[at] == opening) - (tokens[at] == closing)
        at += 1
        if depth == 0:
            return at
    raise SystemExit(f"a header has a '{opening}' that nothing closes")


def called(declaration: list[str]) -> str:
    """The name that stands before a parenthesis: a function's, or an operator's with its sign."""
    if "operator" in declaration[-4:]:
        at = len(declaration) - 1 - declaration[::-1].index("operator")
        return "operator" + "".join(declaration[at + 1 :])
    if not declaration or not re.match(r"[A-Za-z_]", declaration[-1]):
        return ""
    return ("~" if declaration[-2:-1] == ["~"] else "") + declaration[-1]


def scope_of(declaration: list[str]) -> list[str] | None:
    """The names that a declaration puts before what its braces hold; None where these hold no declarations."""
    if "namespace" in declaration:
        return [word for word in declaration[declaration.index("namespace") + 1 :] if word != "::"]
    kinds = [word for word in declaration if word in ("class", "struct", "enum", "(")]
    if not kinds or "enum" in kinds or "(" in kinds:
        return None
    rest = [word for word in declaration[declaration.index(kinds[-1]) + 1 :] if re.match(r"[A-Za-z_]", word)]
    return rest[:1] or None


class Declared:
    """The qualified names of functions, function templates and classes in headers."""

    def __init__(self) -> None:
        self.functions: set[str] = set()
        self.templates: set[str] = set()
        self.classes: set[str] = set()

    def read(self, tokens: list[str], at: int = 0, scope: tuple[str, ...] = ()) -> int:
        """Reads up to the brace that closes `scope`."""
        declaration: list[str] = []
        while at < len(tokens):
            token = tokens[at]
            if token == "}":
                return at + 1
            if token == "(":
                name = called(declaration)
                if name and scope:
                    kind = self.templates if declaration[0] == "template" else self.functions
                    kind.add("::".join((*scope, name)))
                declaration.append(token)
                at = skip(tokens, at)
            elif token == "{":
                inner = scope_of(declaration)
                if inner is None:
                    at = skip(tokens, at)
                else:
                    if "namespace" not in declaration:
                        self.classes.add("::".join((*scope, *inner)))
                    at = self.read(tokens, at + 1, (*scope, *inner))
                declaration = []
            else:
                declaration = [] if token == ";" else [*declaration, token]
                at += 1
        return at


def version_script(node: str, declared: Declared) -> str:
    """Patterns over demangled names.

    The linker takes names in quotes to the letter. In a pattern it knows letters, ::, ? (any sign) and [!...] (any but
    these), but no parenthesis: behind a function's name stands no letter, digit or colon. What a template makes, such as
    ops::call() for each operator, begins with the type that it returns.
    """
    patterns = [re.sub(r"[^\w:]", "?", name) + "[!a-zA-Z0-9_::]*;" for name in sorted(declared.functions)]
    patterns += [f"*?{re.sub(r'[^a-zA-Z0-9_:]', '?', name)}?dlprim::*;" for name in sorted(declared.templates)]
    for name in sorted(declared.classes):
        patterns += [f'"{kind} for {name}";' for kind in ("typeinfo", "typeinfo name", "vtable")]
    lines = "".join(f"        {pattern}\n" for pattern in patterns)
    return f'{node} {{\n  global:\n    extern "C++" {{\n{lines}    }};\n  local:\n    *;\n}};\n'


def main() -> int:
    """Writes the script anew only where it changes, so that the library is not linked again for nothing."""
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    node, output = sys.argv[1], pathlib.Path(sys.argv[2])
    declared = Declared()
    for header in sys.argv[3:]:
        declared.read(tokens_of(pathlib.Path(header).read_text(encoding="utf-8")))
    if not declared.functions:
        raise SystemExit("the headers declare no function")
    text = version_script(node, declared)
    if not output.exists() or output.read_text(encoding="utf-8") != text:
        output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
