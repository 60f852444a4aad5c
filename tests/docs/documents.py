# SPDX-License-Identifier: MIT
"""What the tests of documents share: the Markdown files of the tree, their links and their anchors."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEFT_OUT = re.compile(r"^(\.|build)")  # caches and builds


def files_of(root, suffixes, folders=(".",)):
    """The files of these folders, without caches, builds and virtual environments."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root).parts
            if path.suffix in suffixes and path.is_file() and not any(LEFT_OUT.match(part) for part in inside[:-1]):
                yield path


def without_code(text):
    """Markdown with blocks and spans of code taken out, lines kept."""
    def blanked(match):
        return "\n" * match.group().count("\n")
    text = re.sub(r"^(```|~~~).*?^\1[ \t]*$", blanked, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(?<=\n\n)(?:    .*\n|\n)+", blanked, text)  # blocks that are indented
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """The anchors that GitHub gives the headings of a document."""
    found = {}
    without_blocks = re.sub(r"^(```|~~~).*?^\1[ \t]*$", "", text, flags=re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#{1,6}[ \t]+(.*?)[ \t#]*$", without_blocks, re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        times = found.get(anchor, 0)
        found[anchor] = times + 1
        if times:
            found[f"{anchor}-{times}"] = 1
    return set(found)


def links(text):
    """(line, target) of every inline and reference link."""
    code_free = without_code(text)
    for pattern in (r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)", r"^\[[^\]]+\]:\s*(\S+)", r"(?:src|href)=\"([^\"]+)\""):
        for match in re.finditer(pattern, code_free, re.MULTILINE):
            yield code_free.count("\n", 0, match.start()) + 1, match.group(1)
