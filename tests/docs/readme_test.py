#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The README's first program is examples/first_program/main.cpp, which runs; its network is the same in both places;
links lead somewhere.

    readme_test.py FIRST_PROGRAM
"""
import json
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
readme = (root / "README.md").read_text()


def block(language):
    found = re.search(rf"```{language}\n(.*?)```", readme, re.DOTALL)
    assert found, f"README.md has no block of {language}"
    return found.group(1)


assert block("cpp") == (root / "examples/first_program/main.cpp").read_text(), \
    "README.md's program is not examples/first_program/main.cpp"

network = json.loads(block("json"))
program = json.loads(re.search(r'R"\((.*?)\)"', block("cpp"), re.DOTALL).group(1))
assert network["operators"] == program["operators"][:-1], "README.md's two networks differ"

for name in re.findall(r"\]\(([^)]+)\)", readme):
    assert (root / name).exists(), f"README.md links to {name}, which is not there"

done = subprocess.run([sys.argv[1], "cpu"], capture_output=True, text=True, timeout=120)
print(done.stdout, done.stderr)
assert done.returncode == 0, f"the first program ended with {done.returncode}"
assert "of 64 right" in done.stdout
