# SPDX-License-Identifier: MIT
"""Source text of the functions and layers in table.py, from what operators declare.

The same text, with other bodies, is the stubs from which mypy and editors know them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .table import Row

#: Arguments that are tensors.
TENSORS = frozenset(
    {"input", "other", "addend", "target", "grid", "index", "src", "query", "key", "value", "attn_mask", "cos", "sin"}
    | {"positions"}
)
#: Arguments that are parameters of networks, where a row derives options of their shapes.
PARAMS = frozenset({"weight", "bias", "running_mean", "running_var"})
#: Keywords of every eager call, with their types and defaults. Those of symbols are LayerOptions.
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
    "output_padding": "output_pad",
    "dilation": "dilate",
    "output_size": "output",
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
#: Arguments that Python gives other types than network JSON, and what makes the option of them.
CONVERTED = {
    "dtype": ("DTypeLike", "dtype_name(dtype)"),
    "output_size": ("OutputSize", "kept_sizes(output_size)"),
}
NOTHING = object()
LONGEST = 112


class Argument(NamedTuple):
    """An argument of a function. `option` is its name in network JSON, empty of tensors and common keywords.

    An optional tensor may have an option, too, which says whether it is given.
    """

    name: str
    option: str
    type: str
    default: Any
    value: str  # the expression that a call passes on
    meaning: str
    usual: Any = None  # the option's default in network JSON

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, or None."""
        return self.type.startswith("Tensor")

    def text(self) -> str:
        """The argument in a signature."""
        return f"{self.name}: {self.type}" + ("" if self.default is NOTHING else f" = {self.default!r}")


class Signature(NamedTuple):
    """A row's arguments. Those from `keywords` on are given by name only."""

    name: str
    arguments: Sequence[Argument]
    keywords: int
    several: bool  # whether the function returns all results
    params: Sequence[Argument] = ()  # the arguments that are parameters

    @property
    def tensors(self) -> list[Argument]:
        """The tensors that are inputs of the operator."""
        return [each for each in self.arguments if each.is_tensor and each not in self.params and each.name != "out"]

    @property
    def settings(self) -> list[Argument]:
        """What a Call is made of: options, and keywords that are fixed when a Call is made."""
        return [each for each in self.arguments if each.option or each.name in ("training", "precision", "engine")]

    @property
    def options(self) -> list[Argument]:
        """The arguments that are options of network JSON."""
        return [each for each in self.arguments if each.option and not each.is_tensor]

    def of_symbols(self) -> Signature:
        """The signature without what only eager calls take."""
        left = [each for each in self.arguments if each.option or each in self.tensors]
        keywords = sum(each in left for each in self.arguments[: self.keywords])
        return self._replace(arguments=left, keywords=keywords)


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


def parameter_of(text: str) -> Argument:
    """A parameter of the operator, which may be left out where its default is None."""
    name, optional, _ = text.partition("=")
    kind, default = ("Tensor | None", None) if optional else ("Tensor", NOTHING)
    return Argument(
        name, "", kind, default, f"None if {name} is None else {name}.shape" if optional else f"{name}.shape", ""
    )


def argument_of(text: str, names: Sequence[str], operator: Mapping[str, Any]) -> Argument:
    """An argument as table.py describes it. `names` are those of the arguments before it."""
    left, _, given = text.partition("=")
    left, _, more = left.partition("|")
    name, _, other = left.partition(": ")
    if name in TENSORS and not other and all(option["name"] != name for option in operator["options"]):
        return Argument(name, "", "Tensor | None" if given else "Tensor", None if given else NOTHING, name, "")
    if name == "bias" and given == "None":  # an input, and an option that says whether there is one
        return Argument(name, name, "Tensor | None", None, "bias is not None", "", False)
    if name in COMMON and not other:
        kind, default = COMMON[name]
        return Argument(name, "", kind, {"": default, "True": True, "False": False}[given], name, "")
    option = declared(operator, other or name)
    kind, value = CONVERTED.get(name, (TYPES[option["kind"]], name))
    usual = default = declared_default(option)
    if given == "required":
        default = NOTHING
    elif given in names:
        default, value = None, f"{given} if {name} is None else {name}"
    elif given:
        default = literal(given)
    if name in CONVERTED and default is None:
        value = f"None if {name} is None else {value}"
    kind += (f" | {more}" if more else "") + (" | None" if default is None else "")
    return Argument(name, option["name"], kind, default, value, meaning_of(option), None if usual is NOTHING else usual)


def literal(text: str) -> Any:
    """A default of table.py."""
    words = {"None": None, "True": True, "False": False}
    return words[text] if text in words else float(text) if "." in text else int(text)


def signature_of(row: Row, operator: Mapping[str, Any]) -> Signature:
    """The signature of a row, whose operator declares this."""
    head, _, results = row.signature.partition(" -> ")
    name, _, inside = head.partition("(")
    arguments: list[Argument] = []
    params: list[Argument] = []
    keywords = -1
    for text in filter(None, inside.rstrip(")").split(", ")):
        if text == "*":
            keywords = len(arguments)
            continue
        if row.derive and text.partition("=")[0] in PARAMS:
            params.append(parameter_of(text))
            arguments.append(params[-1])
            continue
        try:
            arguments.append(argument_of(text, [each.name for each in arguments], operator))
        except LookupError as error:
            raise LookupError(f"{name}() of {row.operator}: {error}") from None
    kind = "Sequence[Tensor | None] | None" if results else "Tensor | None"
    # `out` comes before how a call is run, as in all functions.
    last = len(arguments)
    while last and arguments[last - 1].name in ("precision", "engine"):
        last -= 1
    arguments.insert(last, Argument("out", "", kind, None, "out", ""))
    return Signature(name, arguments, last if keywords < 0 else keywords, bool(results), params)


def documentation(text: str, arguments: Sequence[Argument]) -> str:
    """The docstring: the row's text, then what the operator says about arguments that the row does not explain."""
    text = re.sub(r"\n +", "\n", text).strip()
    explained = {name for names in re.findall(r"^([\w, ]+): ", text, re.MULTILINE) for name in names.split(", ")}
    lines = [
        textwrap.fill(f"{each.name}: {each.meaning}", LONGEST, break_long_words=False)
        for each in arguments
        if each.option and not each.is_tensor and each.name not in explained
    ]
    if lines:
        text += ("\n" if "\n\n" in text else "\n\n") + "\n".join(lines)
    if "Raises" not in text:
        text += "\n\nRaises InvalidArgumentError (a ValueError) if shapes, dtypes or options do not fit."
    return text


def function(head: str, text: str, body: str, stub: bool) -> str:
    """A function's source: `head` without its colon, a docstring, and a body, in place of which a stub has dots."""
    said = textwrap.indent(text, "    ").strip()
    return f'{head}:\n    """{said}\n    """\n    {"..." if stub else body}\n'


def given(tensors: Sequence[Argument], names: Mapping[str, str] | None = None) -> str:
    """The tuple of the tensors that are given, as source. They may have other names there."""
    called = names or {each.name: each.name for each in tensors}
    needed = "".join(f"{called[each.name]}, " for each in tensors if each.default is NOTHING)
    optional = [called[each.name] for each in tensors if each.default is None]
    if not optional:
        return f"({needed})"
    absent = " and ".join(f"{name} is None" for name in optional)
    both = f"({needed}{', '.join(optional)},)"
    return f"({needed}) if {absent} else {'' if len(optional) == 1 else 'present'}{both}"


def eager_function(row: Row, operator: Mapping[str, Any], stub: bool = False) -> str:
    """The function of dlprim.ops, or its stub."""
    signature = signature_of(row, operator)
    parts = [each.text() for each in signature.arguments]
    parts.insert(signature.keywords, "*")
    result = "tuple[Tensor, ...]" if signature.several else "Tensor"
    settings = ", ".join(each.value for each in [*signature.params, *signature.settings])
    call = f"{signature.name}_call" + (f"({settings})" if settings else "")
    run = "all" if signature.several else "one"
    random = ", seed, step" if any(each.name == "seed" for each in signature.arguments) else ""
    inputs, params = given(signature.tensors), given(signature.params)
    body = f"return {call}.{run}({inputs}, {params}, out{random})"
    text = documentation(row.text + "\n" + row.eager, signature.arguments)
    return function(f"def {signature.name}({', '.join(parts)}) -> {result}", text, body, stub)


def symbol_names(tensors: Sequence[str]) -> dict[str, str]:
    """What functions of symbols call their tensors: x, or a and b of two of a kind."""
    names = {"input": "a", "other": "b"} if "other" in tensors else {"input": "x", "attn_mask": "mask"}
    return {name: names.get(name, name) for name in tensors}


def with_names(text: str, names: Mapping[str, str]) -> str:
    """A text that calls tensors by these names."""
    for name, ours in names.items():
        if name != ours:
            text = re.sub(rf"\b(?:[Tt]he )?{name}\b", ours, text)
    return text


def option_entries(row: Row, signature: Signature) -> str:
    """The options of a network's operator as source of a dictionary. Values that are the default are left out."""
    entries = [f"{name!r}: {value!r}" for name, value in row.fixed.items()]
    for each in signature.settings:
        value = each.value if each.usual is None else f"unless({each.value}, {each.usual!r})"
        entries.append(f"{each.option!r}: {value}")
    return f"{{{', '.join(entries)}}}"


def symbolic_function(row: Row, operator: Mapping[str, Any], stub: bool = False) -> str:
    """The function of dlprim.nn, or its stub."""
    signature = signature_of(row, operator).of_symbols()
    names = symbol_names([each.name for each in signature.tensors])
    parts = [
        each._replace(name=names.get(each.name, each.name), type=each.type.replace("Tensor", "Symbol")).text()
        for each in signature.arguments
    ]
    if signature.keywords < len(parts):
        parts.insert(signature.keywords, "*")
    parts.append("**common: Unpack[LayerOptions]")
    result = "tuple[Symbol, ...]" if signature.several else "Symbol"
    outputs, index = (", 2", "") if signature.several else ("", "[0]")
    made = f"Generic({row.operator!r}, {signature.name!r}, {option_entries(row, signature)}, common{outputs})"
    text = with_names(documentation(row.text, signature.arguments), names)
    inputs = ", ".join(names.values())
    if any(each.default is None for each in signature.tensors):
        inputs = f"*({given(signature.tensors, names)})"
    body = f"return {made}.apply({inputs}){index}"
    return function(f"def {signature.name}({', '.join(parts)}) -> {result}", text, body, stub)


def layer(name: str, row: Row, operator: Mapping[str, Any], stub: bool = False) -> str:
    """The layer of dlprim.nn that is the row's function without its tensors, or its stub."""
    signature = signature_of(row, operator).of_symbols()
    own = signature.options
    parts = [each.text() for each in own]
    keywords = sum(each in own for each in signature.arguments[: signature.keywords])
    if row.order:
        parts.insert(keywords, "*more: Any")
    elif keywords < len(own):
        parts.insert(keywords, "*")
    text = with_names(
        documentation(row.text, signature.arguments), symbol_names([each.name for each in signature.tensors])
    )
    head = f"def __init__({', '.join(['self', *parts, '**common: Unpack[LayerOptions]'])}) -> None:"
    body = "..." if stub else f"super().__init__({option_entries(row, signature)}, common)"
    prefix = row.prefix or ("" if signature.name == name else signature.name)
    lines = [f"type = {row.operator!r}", *([f"prefix = {prefix!r}"] if prefix else [])]
    lines += [f"@torch_order{row.order!r}"] if row.order and not stub else []
    lines += [head, f"    {body}"]
    said = textwrap.indent(text, "    ").strip()
    return f'class {name}({row.base}):\n    """{said}\n    """\n\n' + textwrap.indent("\n".join(lines) + "\n", "    ")


def listed(names: Sequence[str]) -> str:
    """The stub's __all__."""
    return "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n\n"


def name_of(row: Row) -> str:
    """The function's or layer's name."""
    return row.signature.partition("(")[0]


def eager_stub(functions: Sequence[Row], declarations: Mapping[str, Any]) -> str:
    """The stub of dlprim/ops/_declared.py."""
    head = (
        "from collections.abc import Sequence\n\nfrom numpy.typing import DTypeLike\n\n"
        "from .._arguments import Ints, OutputSize, Scale\nfrom .._core import Tensor\n\n"
    )
    made = [eager_function(row, declarations[row.operator], stub=True) for row in functions]
    return head + listed([name_of(row) for row in functions]) + "\n".join(made)


def symbolic(
    functions: Sequence[Row], layers: Sequence[tuple[str, Row]], declarations: Mapping[str, Any], stub: bool = False
) -> Iterator[str]:
    """The functions and layers of dlprim.nn, or their stubs."""
    for row in functions:
        yield symbolic_function(row, declarations[row.operator], stub)
    for name, row in layers:
        yield layer(name, row, declarations[row.operator], stub)


def symbolic_stub(functions: Sequence[Row], layers: Sequence[tuple[str, Row]], declarations: Mapping[str, Any]) -> str:
    """The stub of dlprim/nn/_declared.py."""
    bases = sorted({row.base for _, row in layers})
    head = (
        "from typing import Any\n\nfrom numpy.typing import DTypeLike\n\n"
        "from .._arguments import Ints, OutputSize, Scale\n"
        f"from ._bases import {', '.join(bases)}\n"
        "from ._graph import LayerOptions, Symbol\nfrom ._unpack import Unpack\n\n"
    )
    names = [*map(name_of, functions), *(name for name, _ in layers)]
    return head + listed(names) + "\n".join(symbolic(functions, layers, declarations, stub=True))
