# SPDX-License-Identifier: MIT
"""A graph of ATen operators as a network of dlprim: its JSON, and its parameters.

torch.export and torch.compile's backend both come here. FORMS of _forms is the table of the operators that have
layers of their own; all other pointwise operators and reductions are the expressions of rows.yaml, which eager calls
use, too.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from ._builder import Builder, NoForm
from ._rows import row
from ._sizes import hint, is_open

# Of products of 16 bits, and the layers that compute any.
PRECISIONS = {torch.float16: "fp16", torch.bfloat16: "bf16"}
PRODUCTS = (
    "AttentionBackward", "AttentionForward", "Convolution", "GRU", "InnerProduct", "LSTM", "MatMul", "MatMulAdd",
    "TransposedConvolution",
)  # fmt: skip

# What networks compute along a dimension, so that they refuse a tensor that has none.
OF_DIMENSIONS = (
    "softmax", "_softmax", "log_softmax", "_log_softmax", "mean", "var", "var_mean", "flip", "gather", "index_select",
    "topk", "sort", "max", "min", "argmax", "argmin", "cumsum", "cumprod",
)  # fmt: skip


class Network(NamedTuple):
    """A graph as a network: see graph_of."""

    config: dict[str, Any]
    inputs: list[str]
    outputs: list[str]
    parameters: dict[str, torch.Tensor]
    draws: int


def graph_of(
    module: torch.fx.GraphModule,
    examples: Sequence[object] | None = None,
    parameters: Mapping[str, torch.Tensor] | None = None,
    names: Mapping[str, str] | None = None,
    keyed: bool = False,
) -> Network:
    """The network of a functional graph of ATen operators, as torch.export and AOTAutograd give it.

    `module`: its nodes are placeholders, calls of ATen overloads, operator.getitem, get_attr and one output. Nothing is
    changed in it but meta. No operator may write its arguments.

    `examples`: a value for each placeholder in order, from which shapes and types follow. None: the nodes have them
    already, in meta["val"], as both of PyTorch's tracers leave them.

    `parameters`: tensors of the placeholders that are no inputs, by the placeholders' names (`node.name`). Where a
    layer can have such a placeholder as its own parameter it does, else the network has an operator Parameter or, where
    the tensor is not of floats, Constant. All other placeholders of tensors become inputs: a layer then reads its
    weights from tensors of the network, which is what torch.compile wants. Batch norms in training mode keep their
    running statistics where these are parameters, else new ones are outputs of the graph.

    `names`: what placeholders are called in the network, such as "layer1.0.conv1.weight"; others keep `node.name`.

    `keyed`: whether random numbers are those of eager calls. The network then has two more inputs, int64 [1] each: the
    seed, and the step of the first call that draws. False: layers such as Dropout draw their own.

    The result:
    - `config`: the object of docs/json.md, {"inputs", "outputs", "operators"}, which json.dumps takes.
    - `inputs`: a name for each placeholder that is no parameter, in their order. Sizes (SymInt) and None have the name
      "". All others are inputs of the network, used or not.
    - `outputs`: a name for each element of the graph's output, in order. An element that is None has the name "". No
      name comes twice, and none is an input: such outputs are copies.
    - `parameters`: the tensors that config's operators have as parameters, by their names there. Those of the caller
      are passed on as they are, on their device.
    - `draws`: how many eager calls would draw. If there are any, config's last two inputs are the seed and the step.

    Raises NoForm, one sentence that names the operator and where the model uses it, for what has no form in JSON.
    """
    builder = Builder(module, parameters or {}, names or {}, keyed)
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for node, example in zip(placeholders, examples or (), strict=False):
        node.meta.setdefault("val", example)
    if examples is not None and any(
        "val" not in node.meta for node in module.graph.nodes if node.op == "call_function"
    ):
        from torch.fx.passes.fake_tensor_prop import FakeTensorProp

        FakeTensorProp(module).propagate(*examples)
    return build(builder, placeholders)


def build(b: Builder, placeholders: Sequence[torch.fx.Node]) -> Network:
    """The whole network."""
    inputs: list[str] = []
    declared: list[dict[str, Any]] = []
    for node in placeholders:
        if node.name in b.given:
            continue
        b.node = node
        tensor = b.value(node)
        if not isinstance(tensor, torch.Tensor):
            inputs.append("")
            continue
        name = b.unique(b.names.get(node.name, node.name))
        b.values[node] = name
        inputs.append(name)
        declared.append({"name": name, "shape": [hint(size) for size in tensor.shape], "dtype": b.dtype(tensor.dtype)})
        if tensor.dim() and is_open(tensor.shape[0]):
            b.batches.append(node)
    live = living(b.module.graph)
    for node in b.module.graph.nodes:
        if node in live and node.op in ("call_function", "call_method", "call_module", "get_attr"):
            visit(b, node)
    declared += [{"name": name, "shape": [1], "dtype": "int64"} for name in b.keys[:2]]
    outputs = outputs_of(b, {entry["name"] for entry in declared})
    config = {
        "inputs": declared,
        "outputs": [name for name in outputs if name],
        "operators": needed(b.later_steps() + b.operators, outputs),
    }
    return Network(config, inputs, outputs, b.parameters, max(len(b.keys) - 1, 0))


def outputs_of(b: Builder, inputs: set[str]) -> list[str]:
    """The names of the graph's outputs."""
    node = next(node for node in b.module.graph.nodes if node.op == "output")
    b.node = node
    found: list[str] = []
    values = node.args[0] if isinstance(node.args[0], (tuple, list)) else [node.args[0]]
    for value in values:
        if value is None:
            found.append("")
            continue
        if not isinstance(value, torch.fx.Node) or not isinstance(b.value(value), torch.Tensor):
            raise NoForm(f"The graph returns {value}, which is no tensor.", node)
        name = b.tensor(value)
        copied = name in inputs or name in found
        found.append(b.pointwise("y0 = x0", [name], b.value(value).dtype) if copied else name)
    return found


def visit(b: Builder, node: torch.fx.Node) -> None:
    """Adds what a node computes."""
    from ._forms import FORMS

    b.node = node
    if node.target is operator.getitem:
        made = b.values[node.all_input_nodes[0]]
        results = made if isinstance(made, list) else [made, *[None] * 8]
        b.values[node] = results[int(node.args[1])]  # type: ignore[arg-type]
        return
    if node.op == "get_attr" or not isinstance(b.value(node), (torch.Tensor, tuple, list)):
        return
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or not schema.name.startswith("aten::"):
        raise b.no_form()
    name = schema.name.removeprefix("aten::")
    form: Callable[..., Any] | None = FORMS.get(f"{name}.{schema.overload_name or 'default'}", FORMS.get(name))
    made = None
    given = b.arguments(node)
    if any(isinstance(value, complex) for value in given.values()):
        raise b.no_form("has a complex number, which networks of dlprim lack")
    source = given.get("self")
    if name in OF_DIMENSIONS and isinstance(source, torch.fx.Node) and b.rank(source) == 0:
        if any(given.get(key) not in (None, []) for key in ("dim", "dims")):
            raise b.no_form("of a tensor without dimensions has no form in a network of dlprim")
    before = len(b.operators)
    if form is not None:
        for argument in schema.arguments:
            if str(argument.type) in ("number", "float") and name != "arange":
                b.closed(given.get(argument.name))
        made = form(b, **{key: given[key] for key in list(inspect.signature(form).parameters)[1:]})
    if made is None:
        made = row(b)
    if made is None:
        raise b.no_form()
    b.values[node] = made
    if b.keyed:
        set_precision(b, b.operators[before:])


def set_precision(b: Builder, made: Sequence[dict[str, Any]]) -> None:
    """Lets products of the node that is being visited round as eager calls do, where its result has 16 bits."""
    value = b.value(b.node)
    results = value if isinstance(value, (tuple, list)) else [value]
    name = PRECISIONS.get(next((x.dtype for x in results if isinstance(x, torch.Tensor)), torch.float32))
    for entry in made if name else ():
        if entry["type"] in PRODUCTS:
            entry["precision"] = name


def living(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The nodes that the outputs need."""
    found: set[torch.fx.Node] = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or node in found:
            found.update([node, *node.all_input_nodes])
    return found


def needed(operators: Sequence[dict[str, Any]], outputs: Iterable[str]) -> list[dict[str, Any]]:
    """The operators that the outputs need: transposed weights, for one, are often read as they were."""
    wanted, kept = set(outputs), []
    for entry in reversed(operators):
        if wanted.intersection(entry["outputs"]):
            wanted.update(entry["inputs"])
            kept.append(entry)
    return kept[::-1]
