# SPDX-License-Identifier: MIT
"""Source text of the functions in _table.py, from what operators declare.

The same text, with other bodies, is the stub from which mypy and editors know the functions.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ._table import Row

#: Arguments that are tensors.
TENSORS = frozenset({"input", "other", "addend", "target", "grid", "index", "src"})
#: Keywords of every operator's call, with their types and defaults.
COMMON = {
    "training": ("bool", False),
    "precision": ("str", "fp32"),
    "engine": ("str | None", None),
    "seed": ("int", 1),
    "step": ("int", 0),
}
#: PyTorch's names of options, and those of network JSON.
NAMES = {
    "kernel_size": "kernel",
    "padding": "pad",
    "dilation": "dilate",
    "keepdim": "keep_dim",
    "reduction": "reduce",
    "dim": "axis",
}
#: Types of options by their kinds.
TYPES = {
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "text": "str",
    "integers": "Ints",
    "numbers": "Scale",
}
NOTHING = object()


class Argument(NamedTuple):
    """An argument of a function. `option` is its name in network JSON, empty of tensors and common keywords."""

    name: str
    option: str
    type: str
    default: Any
    value: str  # the expression that a call passes on
    meaning: str

    def text(self) -> str:
        """The argument in a signature."""
        return f"{self.name}: {self.type}" + ("" if self.default is NOTHING else f" = {self.default!r}")


class Signature(NamedTuple):
    """A row's arguments. Those from `keywords` on are given by name only."""

    name: str
    arguments: Sequence[Argument]
    keywords: int
    several: bool  # whether the function returns all results

    @property
    def tensors(self) -> list[str]:
        """Names of the tensors."""
        return [each.name for each in self.arguments if each.name in TENSORS]

    @property
    def settings(self) -> list[Argument]:
        """What a Call is made of: options, and keywords that are fixed when a Call is made."""
        return [each for each in self.arguments if each.option or each.name in ("training", "precision", "engine")]


def declared(operator: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The option that has this name, in network JSON or in NAMES."""
    for wanted in (name, NAMES.get(name)):
        for option in operator["options"]:
            if option["name"] == wanted:
                found: Mapping[str, Any] = option
                return found
    raise LookupError(f"no option {name}")


def declared_default(option: Mapping[str, Any]) -> Any:
    """An option's default. A list of one number is this number, and an empty list is None."""
    if option["required"]:
        return NOTHING
    default = option.get("default")
    if isinstance(default, list):
        return default[0] if default else None
    return default


def meaning_of(option: Mapping[str, Any]) -> str:
    """What an option means, as a phrase of plain text."""
    said = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", option["meaning"])
    choices = ", ".join(f'"{choice}"' for choice in option.get("choices", ()))
    return f"{said}. One of {choices}." if choices else f"{said}."


def argument_of(text: str, names: Sequence[str], operator: Mapping[str, Any]) -> Argument:
    """An argument as _table.py describes it. `names` are those of the arguments before it."""
    left, _, given = text.partition("=")
    name, _, other = left.partition(": ")
    if name in TENSORS:
        return Argument(name, "", "Tensor", NOTHING, name, "")
    if name in COMMON and not other:
        kind, default = COMMON[name]
        return Argument(name, "", kind, {"": default, "True": True, "False": False}[given], name, "")
    option = declared(operator, other or name)
    kind = "DTypeLike" if name == "dtype" else TYPES[option["kind"]]
    default, value = declared_default(option), name
    if given == "required":
        default = NOTHING
    elif given in names:
        default, value = None, f"{given} if {name} is None else {name}"
    elif given:
        default = literal(given)
    if name == "dtype":
        value = "dtype_name(dtype)" if default is NOTHING else "None if dtype is None else dtype_name(dtype)"
    kind += " | None" if default is None else ""
    return Argument(name, option["name"], kind, default, value, meaning_of(option))


def literal(text: str) -> Any:
    """A default of _table.py."""
    words = {"None": None, "True": True, "False": False}
    return words[text] if text in words else float(text) if "." in text else int(text)


def signature_of(row: Row, operator: Mapping[str, Any]) -> Signature:
    """The signature of a row, whose operator declares this."""
    head, _, results = row.signature.partition(" -> ")
    name, _, inside = head.partition("(")
    arguments: list[Argument] = []
    keywords = -1
    for text in inside.rstrip(")").split(", "):
        if text == "*":
            keywords = len(arguments)
            continue
        try:
            arguments.append(argument_of(text, [each.name for each in arguments], operator))
        except LookupError as error:
            raise LookupError(f"{name}() of {row.operator}: {error}") from None
    kind = "Sequence[Tensor | None] | None" if results else "Tensor | None"
    # `out` comes before how a call is run, as in all functions.
    last = len(arguments)
    while arguments[last - 1].name in ("precision", "engine"):
        last -= 1
    arguments.insert(last, Argument("out", "", kind, None, "out", ""))
    return Signature(name, arguments, last if keywords < 0 else keywords, bool(results))


def documentation(row: Row, signature: Signature) -> str:
    """The docstring: the row's text, then what the operator says about arguments that the row does not explain."""
    text = re.sub(r"\n +", "\n", row.text).strip()
    explained = {name for names in re.findall(r"^([\w, ]+): ", text, re.MULTILINE) for name in names.split(", ")}
    lines = [
        textwrap.fill(f"{each.name}: {each.meaning}", 112, break_long_words=False)
        for each in signature.arguments
        if each.option and each.name not in explained
    ]
    if lines:
        text += ("\n" if "\n\n" in text else "\n\n") + "\n".join(lines)
    if "Raises" not in text:
        text += "\n\nRaises InvalidArgumentError (a ValueError) if shapes, dtypes or options do not fit."
    return text


def definition(row: Row, operator: Mapping[str, Any], stub: bool = False) -> str:
    """The function's source, or its stub."""
    signature = signature_of(row, operator)
    parts = [each.text() for each in signature.arguments]
    parts.insert(signature.keywords, "*")
    result = "tuple[Tensor, ...]" if signature.several else "Tensor"
    text = textwrap.indent(documentation(row, signature), "    ").strip()
    if stub:
        body = "..."
    else:
        settings = ", ".join(each.value for each in signature.settings)
        call = f"{signature.name}_call" + (f"({settings})" if settings else "")
        run = "all" if signature.several else "one"
        random = ", seed, step" if any(each.name == "seed" for each in signature.arguments) else ""
        body = f"return {call}.{run}(({', '.join(signature.tensors)},), (), out{random})"
    return f'def {signature.name}({", ".join(parts)}) -> {result}:\n    """{text}\n    """\n    {body}\n'


def stub_module(table: Sequence[Row], declarations: Mapping[str, Any]) -> str:
    """The stub of _declared.py."""
    names = sorted(row.signature.partition("(")[0] for row in table)
    head = (
        "from collections.abc import Sequence\n\nfrom numpy.typing import DTypeLike\n\n"
        "from .._core import Tensor\nfrom ._machinery import Ints, Scale\n\n"
    )
    listed = "".join(f'    "{name}",\n' for name in names)
    functions = [definition(row, declarations[row.operator], stub=True) for row in table]
    return f"{head}__all__ = [\n{listed}]\n\n" + "\n".join(functions)
