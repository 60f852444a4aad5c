# SPDX-License-Identifier: MIT
"""dlprim.Function: a graph of operators, planned as a whole and called on tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import _core
from ._source import JsonSource, json_source


class Function(_core.Function):
    """A graph of operators that is planned as a whole and called on tensors of the caller.

    `network` is what Net takes, without losses; an operator with `"gradients": [0, 2]` makes the gradients of these of
    its inputs and parameters. A call takes the network's inputs, then the parameters of operators that are not among
    these, in the order of `input_names`, and returns its outputs as a tuple. Other shapes than declared
    are planned at their first call. What is packed of the inputs named by `constants`, and of parameters, is kept until
    they are written to. The random numbers of Dropout depend on `seed` and `step` of the call.
    """

    def __init__(
        self,
        context: _core.Context,
        network: JsonSource,
        *,
        constants: Sequence[str] = (),
        training: bool = False,
        precision: str = "fp32",
        engines: Mapping[str, str] | None = None,
    ) -> None:
        """Read the network and check it for the shapes that it declares."""
        text, is_path = json_source(network, "network")
        name = "function"
        if is_path:
            name = text
            with open(text, encoding="utf-8") as file:
                text = file.read()
        super().__init__(context, text, name, list(constants), training, precision, list((engines or {}).items()))
