# SPDX-License-Identifier: MIT
"""A manual page, in the macros of man(7), of a command's table of options."""

from __future__ import annotations

import re
from typing import Any

Table = dict[str, Any]
NAMES = {"cpu", "gpu", "opencl"}  # stay as they are typed
VARIABLES = {
    "DLPRIM_DEVICE": "The device that is used where none is chosen.",
    "DLPRIM_CACHE_DIR": "The folder of compiled kernels and of measurements, in place of $XDG_CACHE_HOME/dlprim.",
}


def roff(text: str) -> str:
    """Text as troff prints it: hyphens stay what is typed in a shell, and no line becomes a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def sentence(text: str) -> str:
    """Help as a sentence: it begins with a capital unless its first word is a name, and ends with a full stop."""
    first = re.match(r"[a-z-]+(?=[ ,:;.]|$)", text)
    begins = text[0].upper() if first and first[0] not in NAMES else text[:1]
    return begins + text[1:] + ("" if text.endswith(".") else ".")


def placeholder(option: Table) -> str:
    """What stands for the option's value: TEXT, INT, DEVICE; empty for a flag."""
    return str(option["type"])


def shown(option: Table) -> str:
    """The option as the list of options shows it: bold names, and its value in italics."""
    if "argument" in option:
        return f"\\fI{roff(option['argument'])}\\fR" + (" ..." if option["repeated"] else "")
    value = f" \\fI{roff(placeholder(option))}\\fR" if option["type"] else ""
    return ", ".join(f"\\fB{roff(name)}\\fR" for name in option["names"]) + value


def synopsis(table: Table) -> str:
    """Required options by name, then [options], then the arguments."""
    parts = []
    for option in table["options"]:
        if option["names"] and option["required"]:
            parts.append(f"\\fB{roff(option['names'][0])}\\fR \\fI{roff(placeholder(option))}\\fR")
    parts.append("[\\fIoptions\\fR]")
    for option in table["options"]:
        if "argument" in option:
            parts.append(shown(option) if option["required"] else f"[{shown(option)}]")
    return " ".join(parts)


def explained(option: Table) -> str:
    """The help, the range of the value, and whether the option must or may be given again."""
    text = sentence(option["help"])
    bounds = re.search(r"in \[(\S+) - (\S+)\]", option["range"])
    if bounds:
        text += f" From {bounds[1]} to {bounds[2]}."
    elif option["range"] == "POSITIVE":
        text += " Above 0."
    if option["names"] and option["required"]:
        text += " Must be given."
    if option["names"] and option["type"] and option["repeated"] and "given again" not in text:
        text += " Takes several values."
    return roff(text)


def exit_codes(footer: str) -> list[str]:
    """The codes in a footer such as "exit code: 0 success; 1 failure, with ...; 2 wrong usage"."""
    codes = re.findall(r"(\d+) ([^;]+)", footer.partition("exit code:")[2])
    lines = []
    for code, meaning in codes:
        lines += [".TP", f"\\fB{code}\\fR", roff(sentence(meaning.strip()))]
    return lines


def manual(table: Table, version: str, others: list[str]) -> str:
    """The page; `others` are the commands of its SEE ALSO."""
    name = table["name"]
    first, _, rest = table["description"].partition(". ")
    summary = first.rstrip(".")
    lines = [
        '.\\" Made from the options of the command. Do not edit.',
        f'.TH {name.upper()} 1 "" "{version}" "DLPrimitives"',
        ".SH NAME",
        f"{roff(name)} \\- {roff(summary[0].lower() + summary[1:])}",
        ".SH SYNOPSIS",
        f"\\fB{roff(name)}\\fR {synopsis(table)}",
        ".SH DESCRIPTION",
        roff(table["description"]),
    ]
    for title, options in (
        ("ARGUMENTS", [option for option in table["options"] if "argument" in option]),
        ("OPTIONS", [option for option in table["options"] if option["names"]]),
    ):
        if options:
            lines.append(f".SH {title}")
        for option in options:
            lines += [".TP", shown(option), explained(option)]
    lines += [".SH EXIT STATUS", *exit_codes(table["footer"]), ".SH ENVIRONMENT"]
    for variable, meaning in VARIABLES.items():
        lines += [".TP", f"\\fB{variable}\\fR", roff(meaning)]
    lines += [".SH SEE ALSO", ",\n".join(f".BR {roff(other)} (1)" for other in others).replace(" (1),", " (1),")]
    return "\n".join(line for line in lines if line) + "\n"
