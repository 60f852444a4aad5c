# SPDX-License-Identifier: MIT
"""The code of the documents about Python runs, and prints what they say it does.

A block of text behind a block of Python is what that prints, "..." standing for anything. Functions in the tutorial are
those of examples/python, and command lines have options that there are.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import pathlib
import re
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

import example_programs as programs
import pytest

FENCED = re.compile(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
FASHION_MNIST = "/usr/share/datasets/fashion-mnist"


class Block(NamedTuple):
    """Code in a document, the line on which it begins, and what it is to print."""

    code: str
    line: int
    printed: str | None


def blocks(text: str) -> list[Block]:
    return [Block(m[1], text.count("\n", 0, m.start(1)), m[2]) for m in FENCED.finditer(text)]


def programs_in(text: str) -> Iterator[list[Block]]:
    """The blocks of each part of a page that stands for itself: one begins where dlprim is imported."""
    current: list[Block] = []
    for block in blocks(text):
        if re.search("^import dlprim$", block.code, re.MULTILINE) and current:
            yield current
            current = []
        current.append(block)
    if current:
        yield current


def run(page: str, part: list[Block], replacements: dict[str, str]) -> None:
    """Runs blocks one behind the other with the same names, and compares what each prints."""
    names: dict[str, Any] = {"__name__": page}
    for block in part:
        code = block.code
        for old, new in replacements.items():
            code = code.replace(old, new)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * block.line + code, page, "exec", dont_inherit=True), names)
        if block.printed is not None:
            same = doctest.OutputChecker().check_output(block.printed, printed.getvalue(), doctest.ELLIPSIS)
            assert same, f"{page}:{block.line + 1} prints\n{printed.getvalue()}\nand not\n{block.printed}"


@pytest.fixture
def folder(device: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """An empty working folder, where a context without a name is that of the device under test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DLPRIM_DEVICE", device)
    return tmp_path


def read(page: str) -> str:
    return (programs.ROOT / page).read_text()


@pytest.fixture
def files(folder: pathlib.Path) -> pathlib.Path:
    """The folder with the files that the tutorial's reader has: a picture, and pictures to train with."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (scripts/install_deps.sh python)")
    image.new("RGB", (150, 120), (200, 90, 40)).save("picture.jpg")
    return programs.write_pictures(folder, train=400, test=200)


def run_page(page: str, replacements: dict[str, str]) -> None:
    parts = list(programs_in(read(page)))
    assert parts, f"{page} has no code of Python"
    for part in parts:
        run(page, part, replacements)


def test_code_of_the_readme_runs(folder: pathlib.Path) -> None:
    run_page("README.md", {})


def test_code_of_the_guide_runs_and_prints_what_it_says(folder: pathlib.Path, torch: Any) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed (scripts/install_deps.sh python)")
    run_page("docs/python.md", {})


def test_code_of_the_tutorial_runs_and_prints_what_it_says(files: pathlib.Path, torch: Any, torchvision: Any) -> None:
    for module in ("tqdm", "matplotlib"):
        pytest.importorskip(module, reason=f"{module} is not installed (scripts/install_deps.sh python)")
    torch.save(torchvision.models.get_model("resnet18", weights=None).state_dict(), "resnet18.pth")
    run_page("docs/python_tutorial.md", {FASHION_MNIST: str(files)})


def functions(code: str) -> list[str]:
    """Functions and classes at the outermost level, each with its body."""
    return [m.strip() for m in re.findall(r"^(?:def|class) .*\n(?:(?:[ )].*)?\n)*", code, re.MULTILINE)]


def test_functions_of_the_tutorial_are_those_of_the_examples(host: Any) -> None:
    sources = "\n".join(path.read_text() for path in programs.EXAMPLES.glob("*.py"))
    shown = [function for block in blocks(read("docs/python_tutorial.md")) for function in functions(block.code)]
    assert len(shown) > 5
    for function in shown:
        assert function in sources, f"the tutorial's function is in no example:\n{function}"


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/python_tutorial.md"])
def test_command_lines_name_scripts_and_options(host: Any, page: str, tmp_path: pathlib.Path) -> None:
    for line in re.findall(r"^    (examples/python/\S+\.py .*)$", read(page), re.MULTILINE):
        script, *arguments = shlex.split(line, comments=True)
        help_text = programs.run(pathlib.Path(script).stem, "--help", folder=tmp_path)
        for option in (argument for argument in arguments if argument.startswith("-")):
            assert re.search(rf"(?<!\S){option}\b", help_text), f"{page}: {script} has no option {option}"


@pytest.mark.parametrize("page", ["docs/python.md", "docs/python_tutorial.md"])
def test_links_lead_somewhere(host: Any, page: str) -> None:
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", read(page), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(([^)#:]+)\)", prose)
    assert targets
    for target in targets:
        assert (programs.ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}"


def test_blocks_that_fail_are_noticed(host: Any, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run("page", blocks("```python\n1 / 0\n```\n"), {})
    with pytest.raises(AssertionError, match="page:2 prints"):
        run("page", blocks("```python\nprint(1 + 2)\n```\n```text\n4\n```\n"), {})
    run("page", blocks("```python\nprint(1 + 2, 5)\n```\n```text\n3 ...\n```\n"), {})
