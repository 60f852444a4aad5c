#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails on a relative link of a Markdown file that leads nowhere, be it to a file, a folder or a heading, where code names
a document that is not there, and where a page names a source file or folder that is not there. First shows on made-up
files that it can fail. Usage: links_test.py [REPOSITORY]."""
import pathlib
import re
import sys
import tempfile

from documents import ROOT, anchors, files_of, links

SOURCE = re.compile(r"(?<![\w/.])(?:src|kernels|tests|python|scripts|cmake|tools|benchmarks|databases)/[\w./-]*\w(?![\w*<{/-])")
DOCUMENT = re.compile(r"\b(?:docs|databases|tests)/[\w./-]*\.(?:md|svg)\b|\b(?:README|CONTRIBUTING|CHANGELOG)\.md\b")


def broken_links(root):
    for path in files_of(root, {".md"}):
        for line, target in links(path.read_text()):
            if re.match(r"[a-z]+:", target):
                continue  # elsewhere
            name, _, anchor = target.partition("#")
            place = (path.parent / name).resolve() if name else path
            where = f"{path.relative_to(root)}:{line}: "
            if not place.exists():
                yield where + f"the link to {target} leads nowhere"
            elif root.resolve() not in place.parents and place != root.resolve():
                yield where + f"the link to {target} leads out of the repository"
            elif anchor and place.suffix == ".md" and anchor not in anchors(place.read_text()):
                yield where + f"{name or 'this page'} has no heading for #{anchor}"


def documents_that_are_not_there(root):
    """Text names a document by its path from the root or, in a document, by one beside it."""
    suffixes = {".cpp", ".hpp", ".cl", ".clh", ".py", ".sh", ".cmake", ".txt", ".toml", ".md"}
    for path in files_of(root, suffixes):
        if path == root / "tests/docs/links_test.py":
            continue  # holds made-up ones
        for number, text in enumerate(path.read_text(errors="replace").split("\n"), 1):
            for name in DOCUMENT.findall(text):
                if not (root / name).exists() and not (path.parent / name).exists():
                    yield f"{path.relative_to(root)}:{number}: there is no {name}"


def sources_that_are_not_there(root):
    """Pages on what is, such as the guides, name files by their paths from the root; OP and the like stand for any name."""
    for path in files_of(root, {".md"}):
        if path.name == "CHANGELOG.md" or "results" in path.parts:
            continue  # on what was
        for number, text in enumerate(path.read_text().split("\n"), 1):
            for name in SOURCE.findall(text):
                if not (root / name).exists() and not any(part.split(".")[0].isupper() for part in name.split("/")):
                    yield f"{path.relative_to(root)}:{number}: there is no {name}"


def check(root):
    return [*broken_links(root), *documents_that_are_not_there(root), *sources_that_are_not_there(root)]


def try_on_made_up_files():
    """Each of these has one fault, or none where the last word is None."""
    page = "# A page\n\n## What `it` does: twice, or not\n\n```\n# no heading\n[no](link.md)\n```\n"
    for text, fault in [("[a](page.md) [b](page.md#what-it-does-twice-or-not) [c](#here)\n# Here\n", None),
                        ("`[a](nowhere.md)` [away](https://example.org/nowhere)", None),
                        ("Code:\n\n    [a](nowhere.md)\n", None),
                        ("[a](nowhere.md)", "leads nowhere"),
                        ("![a](nowhere.svg)", "leads nowhere"),
                        ('<img src="nowhere.svg">', "leads nowhere"),
                        ("[a]: nowhere.md", "leads nowhere"),
                        ("[a](page.md#no-heading)", "no heading"),
                        ("[a](#nowhere)", "no heading"),
                        ("[a](../../../../..)", "out of the repository"),
                        ("as docs/nowhere.md says", "there is no docs/nowhere.md"),
                        ("src/ops/OP and kernels/OP", None),
                        ("see src/ops/nowhere.cpp", "there is no src/ops/nowhere.cpp")]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "page.md").write_text(page)
            (root / "text.md").write_text(text)
            found = check(root)
            assert len(found) == (fault is not None) and all(fault in line for line in found), (text, found)


try_on_made_up_files()
problems = check(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)
print("\n".join(problems))
sys.exit(1 if problems else 0)
