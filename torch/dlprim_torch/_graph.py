# SPDX-License-Identifier: MIT
"""A graph of ATen operators as a network of dlprim: its JSON, and its parameters.

torch.export and torch.compile's backend both come here. ROWS is the table of the operators that have layers of their own;
pointwise operators are the expressions of rows.yaml, which eager calls use, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch


class Network(NamedTuple):
    """A graph as a network: see graph_of."""

    config: dict[str, Any]
    inputs: list[str]
    outputs: list[str]
    parameters: dict[str, torch.Tensor]


class NoForm(NotImplementedError):
    """An operator, or a use of one, that networks of dlprim lack. `node` is the node of the graph."""

    def __init__(self, message: str, node: torch.fx.Node) -> None:
        super().__init__(message)
        self.node = node


def graph_of(
    module: torch.fx.GraphModule,
    examples: Sequence[object] | None = None,
    parameters: Mapping[str, torch.Tensor] | None = None,
    names: Mapping[str, str] | None = None,
) -> Network:
    """The network of a functional graph of ATen operators, as torch.export's run_decompositions and AOTAutograd give it.

    `module`: its nodes are placeholders, calls of ATen overloads, operator.getitem, get_attr and one output. Nothing is
    changed in it. DECOMPOSED names what must have been decomposed; no operator may write its arguments.

    `examples`: a value for each placeholder in order, tensors real, fake or on "meta", from which shapes and types
    follow. None: the nodes have them already, in meta["val"], as both of PyTorch's tracers leave them.

    `parameters`: tensors of the placeholders that are no inputs, by the placeholders' names (`node.name`). Where a layer
    can have such a placeholder as its own parameter it does, else the network has an operator Parameter or, where the
    tensor is not of floats, Constant. All other placeholders become inputs: a layer then reads its weights from
    tensors of the network, which is what torch.compile wants. Batch norms in training mode keep their running statistics
    where these are parameters, else new ones are outputs of the graph.

    `names`: what placeholders are called in the network, such as "layer1.0.conv1.weight"; others keep `node.name`.

    The result:
    - `config`: the object of docs/json.md, {"inputs", "outputs", "operators"}, which json.dumps takes.
    - `inputs`: names of the network's inputs, in the order of the placeholders that are no parameters. All of these are
      there, used or not.
    - `outputs`: a name for each element of the graph's output, in order. An element that is None has the name "". No name comes
      twice, and none is an input: such outputs are copies.
    - `parameters`: the tensors that config's operators have as parameters, by their names there. Those of the caller are
      passed on as they are, on their device.

    Raises NoForm, one sentence that names the operator and where the model uses it, for what has no form in JSON.
    """
    raise NotImplementedError
