#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a command's manual page and the completions of bash, zsh and fish from its own table of options.

    make.py COMMAND NAME OUT [OTHER...]

COMMAND is the program, which prints the table when called with --help-json (tools/option_table.hpp). The files
are OUT/man/NAME.1, OUT/bash/NAME, OUT/zsh/_NAME and OUT/fish/NAME.fish. OTHER are names of commands for the page's
SEE ALSO.
"""

import json
import pathlib
import subprocess
import sys

import pages
import shells


def main() -> None:
    command, name, out, *others = sys.argv[1:]
    done = subprocess.run([command, "--help-json"], stdout=subprocess.PIPE, check=True)
    shown = subprocess.run([command, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    version = shown.split(" (")[0].strip()
    table = json.loads(done.stdout)
    if table["name"] != name:
        sys.exit(f"{command} calls itself '{table['name']}', not '{name}'")
    for path, text in {
        f"man/{name}.1": pages.manual(table, version, [other for other in others if other != name]),
        f"bash/{name}": shells.bash(table),
        f"zsh/_{name}": shells.zsh(table),
        f"fish/{name}.fish": shells.fish(table),
    }.items():
        file = pathlib.Path(out, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


main()
