#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the documentation's site: README.md and docs/ as pages, the reference of include/dlprim by Doxygen and that of the
Python package by mkdocstrings. A warning of any of them is an error.

    scripts/install_deps.sh docs
    .cache/docs/bin/python scripts/site/build.py [--python FOLDER] OUT

FOLDER holds the package with the stub of its compiled part, such as build/python; by default it is python in the sources,
without that part. OUT gets `site`, which a browser opens from a disk (searching wants a server, such as python3 -m http.server), and what it was made of.
"""
import argparse
import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Documents outside of docs/, and their names in the site.
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md",
           "torch/README.md": "torch_development.md"}
MODULES = {"nn": "Networks: dlprim.nn", "ops": "Operators: dlprim.ops", "schedules": "Schedules: dlprim.schedules",
           "weights": "Weights: dlprim.weights", "summary": "Summaries: dlprim.summary", "plot": "Pictures: dlprim.plot",
           "language": "Language models: dlprim.language"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)


def place_of(source):
    """Where a file of the repository is in the site, by their paths from the root."""
    if source in OUTSIDE:
        return OUTSIDE[source]
    if source.startswith("docs/"):
        return source[len("docs/"):]
    return f"files/{source}"


class Pages:
    """The folder of pages for mkdocs."""

    def __init__(self, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)

    def copy(self, source):
        target = self.folder / place_of(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, target)

    def link(self, page, match):
        """A link of a page with its target in the site. Other files of the repository come along; folders have no page."""
        image, text, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        name, hash_, anchor = target.partition("#")
        path = (ROOT / page).parent.joinpath(name).resolve()
        source = str(path.relative_to(ROOT))
        if path.is_dir():
            if not (path / "README.md").exists():
                return text
            source += "/README.md"
        place = place_of(source)
        if place.startswith("files/"):
            self.copy(source)
        here = pathlib.PurePosixPath(place_of(page)).parent
        return f"{image}[{text}]({os.path.relpath(place, here)}{hash_}{anchor})"

    def add(self, page):
        """A page, with its links rewritten outside of blocks of code."""
        text, done, made = (ROOT / page).read_text(), 0, []
        for fence in [*FENCE.finditer(text), None]:
            end = fence.start() if fence else len(text)
            made.append(nested(LINK.sub(lambda match: self.link(page, match), text[done:end])))
            made.append(fence[0] if fence else "")
            done = fence.end() if fence else end
        self.write(place_of(page), "".join(made))

    def write(self, place, text):
        target = self.folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def nested(text):
    """Markdown with what belongs to an item of a list indented by four, as Python-Markdown wants it: GitHub takes the width
    of the item's mark, two or three."""
    lines, width, apart = [], 0, False  # apart: an empty line came after the last item
    for line in text.split("\n"):
        item = re.match(r"(?:-|\d+\.) +", line)
        if item:
            # Behind a paragraph of the item before, which is no line of that item any more.
            if width and lines[-1].startswith("    ") and apart:
                lines.append("")
            width, apart = len(item[0]), False
        elif line and not line.startswith(" "):
            width = 0
        elif width and line.startswith(" " * width) and not line.startswith("    "):
            inner = line[width:]
            if re.match(r"(?:-|\d+\.) ", inner) and lines and not re.match(r"\s+(?:-|\d+\.) ", lines[-1]):
                lines.append("")
            line = "    " + inner
        apart = apart or not line
        lines.append(line)
    return "\n".join(lines)


def doxygen(out):
    """The reference of C++, as HTML in the folder."""
    version = re.search(r'DLPRIM_VERSION "([^"]+)"', (ROOT / "include/dlprim/version.hpp").read_text())[1]
    out.mkdir(parents=True)
    settings = (HERE / "Doxyfile").read_text() + f"\nOUTPUT_DIRECTORY = {out}\nPROJECT_NUMBER = {version}\n"
    done = subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"Doxygen: {done.stdout}")


def public_names(package):
    """What the package's __all__ lists."""
    for node in ast.parse((package / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    sys.exit(f"{package}/__init__.py has no __all__")


def reference_pages(pages, python):
    """The pages of api/."""
    pages.write("api/cpp.md", "# The library in C++\n\nThe headers of include/dlprim are the contract of the library. Doxygen makes\n"
                "[their reference](cpp/index.html): [by header](cpp/files.html), [by class](cpp/annotated.html), "
                "[by name](cpp/namespacedlprim.html).\n`#include <dlprim/dlprim.hpp>` brings all of it, and `dp` is short for the "
                "namespace `dlprim`.\n\n[A first program](../first_program.md) shows how the parts work together, and "
                "[part 3 of the tutorial](../tutorial/3_from_cpp_and_python.md) builds one.\n")
    names = [name for name in public_names(python / "dlprim") if name not in MODULES and name != "__version__"]
    text = "# The package dlprim\n\n[A guide](../python.md) goes through all of its parts.\n\n"
    pages.write("api/python.md", text + "".join(f"::: dlprim.{name}\n\n" for name in names))
    for module, title in MODULES.items():
        pages.write(f"api/python_{module}.md", f"# {title}\n\n::: dlprim.{module}\n    options:\n      show_root_heading: false\n")


def package_in_words(python, copy):
    """A copy of the package in which functions that are made at import are those of their stub."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(python / "dlprim", copy / "dlprim", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    for stub in copy.rglob("_declared.pyi"):
        stub.replace(stub.with_suffix(".py"))
    return copy


def title_of(page):
    return re.search(r"^# (.*)$", (ROOT / page).read_text(), re.MULTILINE)[1].replace("`", "")


def listed(text, name, rows):
    """The text with rows in the place of @NAME@, indented as it is."""
    indent = re.search(rf"^( *)@{name}@$", text, re.MULTILINE)
    return text.replace(indent[0], "\n".join(indent[1] + row for row in rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / "python")
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    pages = Pages(out / "pages")
    documents = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*") if path.is_file())
    for document in [*OUTSIDE, *documents]:
        if document.endswith(".md"):
            pages.add(document)
        else:
            pages.copy(document)
    doxygen(pages.folder / "api/cpp")
    reference_pages(pages, arguments.python)
    shutil.copyfile(HERE / "site.css", pages.folder / "site.css")
    settings = (HERE / "mkdocs.yml").read_text()
    engines = [name for name in documents if re.fullmatch(r"docs/engines/[a-z0-9_]+\.md", name)]
    settings = listed(settings, "ENGINES", [f"- {json.dumps(title_of(name))}: {place_of(name)}" for name in engines])
    settings = listed(settings, "MODULES", [f"- {json.dumps(title)}: api/python_{name}.md" for name, title in MODULES.items()])
    (out / "mkdocs.yml").write_text(settings)
    environment = os.environ | {"SITE_PAGES": str(pages.folder), "SITE_OUT": str(out / "site"), "NO_MKDOCS_2_WARNING": "1",
                                "SITE_PYTHON": str(package_in_words(arguments.python, out / "package"))}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "-f", str(out / "mkdocs.yml")]
    sys.exit(subprocess.run(command, env=environment).returncode)


main()
