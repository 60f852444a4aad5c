# SPDX-License-Identifier: MIT
"""Types of arguments; arguments by other names and in other orders, as PyTorch's and Keras's users type them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, Union

from . import _core

#: A size for all dimensions of images, or one for each.
Ints = Union[int, Sequence[int]]
#: A factor for all dimensions of images, or one for each.
Scale = Union[float, Sequence[float]]
#: One size of a result, or a list of them. None keeps the input's size.
OutputSize = Union[int, Sequence[Union[int, None]]]
F = TypeVar("F", bound=Callable[..., Any])


def kept_sizes(size: OutputSize) -> tuple[int, ...]:
    """Sizes of a result as network JSON has them: -1 keeps the input's."""
    return tuple([-1 if each is None else each for each in (size if isinstance(size, Sequence) else (size,))])


def unknown_argument(owner: str, given: str, known: Iterable[str], kind: str = "argument") -> str:
    """A sentence that offers the argument that was meant, or lists all. The library has the table of synonyms."""
    names = list(known)
    hint = _core.name_hint(given, names) or f"; it has {', '.join(names)}"
    return f"{owner} has no {kind} '{given}'{hint}"


def offers_names(function: F) -> F:
    """Makes a keyword that the function does not have an error that offers the one that was meant."""
    parameters = inspect.signature(function).parameters
    named = [name for name, each in parameters.items() if name != "self" and each.kind is not each.VAR_KEYWORD]
    owner = function.__qualname__.replace(".__init__", "")

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        for given in keywords:
            if given not in parameters:
                raise TypeError(unknown_argument(f"{owner}()", given, named))
        return function(*arguments, **keywords)

    return call  # type: ignore[return-value]


def torch_order(*names: str) -> Callable[[F], F]:
    """Lets a layer's `__init__` also take its arguments in PyTorch's order, which is `names`.

    That order counts where there are more positional arguments than the layer's own order has, or where one of those is
    given by keyword too: Conv2d(3, 16, 3) and Conv2d(3, 16, kernel_size=3).
    """

    def decorate(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        own = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD][1:]

        @functools.wraps(function)
        def call(self: Any, *arguments: Any, **keywords: Any) -> None:
            if len(arguments) > len(own) or any(name in keywords for name in own[: len(arguments)]):
                layer = type(self).__name__
                if len(arguments) > len(names):
                    raise TypeError(
                        f"{layer} takes {', '.join(own)}, or in PyTorch's order {', '.join(names)}; {len(arguments)} "
                        "arguments were given"
                    )
                given = dict(zip(names, arguments))
                for name in given.keys() & keywords.keys():
                    raise TypeError(f"{layer}: {name} is given twice, in PyTorch's order and by name")
                arguments, keywords = (), {**given, **keywords}
            function(self, *arguments, **keywords)

        return call  # type: ignore[return-value]

    return decorate
