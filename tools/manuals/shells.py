# SPDX-License-Identifier: MIT
"""Completions of bash, zsh and fish of a command's table of options.

Options complete to their names. A value completes to what the option's type allows: the words below, nothing for a
number, and files for any other text.
"""

from __future__ import annotations

import shlex
from typing import Any

Table = dict[str, Any]
WORDS = {"DEVICE": "cpu gpu opencl", "PRECISION": "fp32 tf32 fp16 bf16", "WHO": "auto measured named"}
NUMBERS = {"INT", "UINT", "FLOAT"}
NO_FILES = NUMBERS | {"ENGINE", "LIMIT"}
NOTE = "# Made from the options of the command. Do not edit."


def arguments(table: Table) -> list[Table]:
    """The arguments that are no options, in their order."""
    return [option for option in table["options"] if "argument" in option]


def options(table: Table) -> list[Table]:
    """What begins with a hyphen."""
    return [option for option in table["options"] if option["names"]]


def bash_action(kind: str) -> str:
    """What bash does to complete a value of this type."""
    if kind in WORDS:
        return f"COMPREPLY=($(compgen -W '{WORDS[kind]}' -- \"$cur\"))"
    return ":" if kind in NO_FILES else "compopt -o default"


def bash(table: Table) -> str:
    """A file for share/bash-completion/completions. It needs no other one, such as that of bash-completion."""
    function = f"_{table['name']}"
    valued = [option for option in options(table) if option["type"]]
    names = " ".join(name for option in options(table) for name in option["names"])
    lines = [
        NOTE,
        f"{function}() {{",
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} place=0 i",
        "    COMPREPLY=()",
        "    # --option=value comes as three words.",
        "    if [[ $cur == = ]]; then",
        "        cur=",
        "    elif [[ $prev == = ]]; then",
        "        prev=${COMP_WORDS[COMP_CWORD - 2]}",
        "    fi",
        "    case $prev in",
    ]
    for option in valued:
        lines += [
            f"        {'|'.join(option['names'])})",
            f"            {bash_action(option['type'])}",
            "            return",
            "            ;;",
        ]
    lines += [
        "    esac",
        "    if [[ $cur == -* ]]; then",
        f"        COMPREPLY=($(compgen -W '{names}' -- \"$cur\"))",
        "        return",
        "    fi",
    ]
    places = arguments(table)
    if any(option["type"] in WORDS for option in places):
        words = "|".join(name for option in valued for name in option["names"])
        lines += [
            "    # Which argument this is: words before it that are neither options nor their values.",
            "    for ((i = 1; i < COMP_CWORD; ++i)); do",
            "        case ${COMP_WORDS[i]} in",
            f"            {words}) ((++i)) ;;",
            "            -*) ;;",
            "            *) ((++place)) ;;",
            "        esac",
            "    done",
            "    case $place in",
        ]
        for place, option in enumerate(places):
            if option["type"] in WORDS:
                lines.append(f"        {place}) {bash_action(option['type'])} ;;")
        lines += ["        *) compopt -o default ;;", "    esac"]
    elif places:
        lines.append("    compopt -o default")
    lines += ["}", f"complete -F {function} {table['name']}"]
    return "\n".join(lines) + "\n"


def zsh_action(option: Table) -> str:
    """A message and what completes a value: ":DEVICE:(cpu gpu opencl)"."""
    kind = option["type"]
    action = f"({WORDS[kind]})" if kind in WORDS else " " if kind in NO_FILES else "_files"
    return f":{option.get('argument', kind)}:{action}"


def zsh(table: Table) -> str:
    """A file for share/zsh/site-functions."""
    specs = []
    for option in options(table):
        text = option["help"].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
        value = zsh_action(option) if option["type"] else ""
        for name in option["names"]:
            again = "*" if option["repeated"] else "(" + " ".join(option["names"]) + ")"
            # A value may follow at once, and behind long names after "=".
            joint = ("=" if name.startswith("--") else "+") if value else ""
            specs.append(f"{again}{name}{joint}[{text}]{value}")
    for place, option in enumerate(arguments(table), 1):
        specs.append(("*" if option["repeated"] else str(place)) + zsh_action(option))
    quoted = " \\\n    ".join(shlex.quote(spec) for spec in specs)
    return f"#compdef {table['name']}\n{NOTE}\n_arguments -s -S \\\n    {quoted}\n"


def fish_quoted(text: str) -> str:
    """Text in single quotes, in which fish wants a backslash before quotes and backslashes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(table: Table) -> str:
    """A file for share/fish/vendor_completions.d."""
    lines = [NOTE]
    for option in options(table):
        line = f"complete -c {table['name']}"
        for name in option["names"]:
            line += f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
        kind = option["type"]
        if kind in WORDS:
            line += f" -x -a {fish_quoted(WORDS[kind])}"
        elif kind in NO_FILES:
            line += " -x"
        elif kind:
            line += " -r -F"
        lines.append(f"{line} -d {fish_quoted(option['help'])}")
    if arguments(table) and arguments(table)[0]["type"] in WORDS:
        words = WORDS[arguments(table)[0]["type"]]
        lines.append(f"complete -c {table['name']} -n __fish_is_first_arg -x -a {fish_quoted(words)}")
    elif not arguments(table):
        lines.append(f"complete -c {table['name']} -f")
    return "\n".join(lines) + "\n"
