# SPDX-License-Identifier: MIT
"""What the tests of rules that the tree keeps share: made-up trees that show that a rule can fail, and how they end."""

import pathlib
import sys
import tempfile


def repository():
    """The folder that the command line names, or the one that holds these tests."""
    return pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()


def shown_to_fail(check, files, others=frozenset()):
    """What is wrong with a check, which gives "FILE:LINE: what is wrong" for a tree. `files` maps names of a made-up
    tree to texts, each with whether it is to be refused; `others` are refused, too."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        for name, (text, _) in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        refused = {problem.split(":")[0] for problem in check(root)}
    expected = {name for name, (_, bad) in files.items() if bad} | others
    wrong = sorted(refused ^ expected)
    return [f"self-test: {name} was {'refused' if name in refused else 'let through'}" for name in wrong]


def told(problems, good):
    """Prints problems, or that all is good; the exit status."""
    print("\n".join(problems) or good)
    return 1 if problems else 0
