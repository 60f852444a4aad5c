# SPDX-License-Identifier: MIT
"""dlprim_torch.export: a PyTorch model as a network's JSON and its weights in HDF5, for programs without Python."""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ._graph import Network, graph_of
from ._views import expression

LOSSES = {
    "cross_entropy": ("SoftmaxWithLoss", "int"),
    "mse": ("MSELoss", "float"),
}


def export(
    model: torch.nn.Module,
    inputs: torch.Tensor | Sequence[Any],
    net: str | os.PathLike[str],
    weights: str | os.PathLike[str],
    *,
    kwargs: Mapping[str, Any] | None = None,
    loss: str | None = None,
    dynamic_batch: bool = True,
) -> None:
    """Writes a model as a network of dlprim: JSON to `net`, and its parameters and buffers as HDF5 to `weights`.

    `inputs` (a tensor or a sequence) and `kwargs` are the model's arguments, as torch.export takes them. Inputs of the
    network are called as the arguments of forward(), and outputs as the keys of a dict that the model returns, else
    "output", or "output_0", ... A model that is in training mode keeps its Dropout and the statistics of batches in its
    BatchNorm, so that dlprim_train trains it as PyTorch would; one in evaluation mode has running statistics only.

    `loss`: "cross_entropy" or "mse" adds an input "label" and an output "loss" of the model's first output. With
    `dynamic_batch` the first dimension of all inputs that agree in it with the first one is the batch, which programs
    may change; without it sizes are fixed.

    Raises NotImplementedError, in one sentence, for an operator that networks lack, and ValueError for wrong arguments.
    Needs h5py.
    """
    if loss is not None and loss not in LOSSES:
        raise ValueError(f"The loss of an exported network is one of {', '.join(LOSSES)}, not {loss!r}.")
    args = (inputs,) if isinstance(inputs, torch.Tensor) else tuple(inputs)
    network, output = network_of(model, args, dict(kwargs or {}), dynamic_batch)
    write_network(network, output, loss, Path(net), Path(weights))


def write_network(network: Network, output: list[int] | None, loss: str | None, net: Path, weights: Path) -> None:
    """Writes both files, or none. `output`: the sizes of the first output, of which the loss is."""
    try:
        import h5py  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError("dlprim_torch writes weights by h5py, which is not installed: pip install h5py.") from error
    if loss is not None:
        add_loss(network, loss, output)
    parts = [path.with_name(path.name + ".part") for path in (net, weights)]
    try:
        write_json(parts[0], network.config)
        with h5py.File(parts[1], "w") as file:
            for name, tensor in network.parameters.items():
                write_tensor(file, name, tensor.detach().cpu().contiguous())
        for part, path in zip(parts, (net, weights), strict=True):
            part.replace(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def network_of(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_batch: bool
) -> tuple[Network, list[int] | None]:
    """The network of a model called with these arguments, and the sizes of its first output."""
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if not leaves:
        raise ValueError("export() needs at least one tensor among the model's inputs, as an example.")
    batch = leaves[0].shape[0] if leaves[0].dim() else 0

    def has_batch(leaf: Any) -> bool:
        return (
            dynamic_batch and batch > 0 and isinstance(leaf, torch.Tensor) and leaf.dim() > 0 and leaf.shape[0] == batch
        )

    def example(leaf: Any) -> Any:  # PyTorch takes a size of 1 for a constant
        return torch.cat([leaf, leaf]) if has_batch(leaf) and batch == 1 else leaf

    def dims(leaf: Any) -> Any:
        return {0: torch.export.Dim.DYNAMIC} if has_batch(leaf) else None

    tree = torch.utils._pytree
    shapes = tree.tree_map(dims, (args, kwargs))
    called_args, called_kwargs = tree.tree_map(example, (args, kwargs))
    program = traced(model, called_args, called_kwargs, shapes_of(model, shapes) if dynamic_batch else None)
    network = graph_of_program(program)
    for entry, leaf in zip(network.config["inputs"], leaves, strict=False):
        entry["shape"] = list(leaf.shape)
    return network, first_output(program, batch)


def traced(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: Any
) -> torch.export.ExportedProgram:
    """What torch.export makes of a model. Where the model fixes the batch, that is said in one sentence."""
    try:
        return torch.export.export(model, args, kwargs, dynamic_shapes=shapes)
    except (torch._dynamo.exc.UserError, ValueError) as error:
        if shapes is None or not any(word in str(error) for word in ("specialized", "Dim.", "dynamic_shapes")):
            raise
        raise ValueError(
            "The model does not take batches of any size: it fixes the first dimension of its first input, or reads it "
            "as a number; dynamic_batch=False exports it with the sizes of the example."
        ) from error


def shapes_of(model: torch.nn.Module, shapes: tuple[Any, Any]) -> Any:
    """Dynamic shapes as torch.export takes them: by the names of forward()'s arguments."""
    import inspect

    positional, named = shapes
    bound = inspect.signature(model.forward).bind(*positional, **named)
    return dict(bound.arguments)


def graph_of_program(program: torch.export.ExportedProgram) -> Network:
    """The network of an exported program."""
    keep_dropout(program)
    program = program.run_decompositions(decompositions())
    signature = program.graph_signature
    known = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    tensors = {**program.constants, **program.state_dict}
    first: dict[int, str] = {}  # tied parameters have one name
    names = {node: first.setdefault(id(tensors[name]), name) for node, name in known.items()}
    check_changes(signature)
    graph = program.graph_module
    output = next(node for node in graph.graph.nodes if node.op == "output")
    returned = list(output.args[0])[len(signature.buffers_to_mutate) :]
    output.args = (tuple(returned),)
    network = graph_of(graph, None, {node: tensors[name] for node, name in known.items()}, names)
    rename_outputs(network, output_names(program, len(returned)))
    return network


@functools.cache
def decompositions() -> dict[Any, Any]:
    """The decompositions of what has neither a form nor a row. Nobody may change them."""
    from . import _state
    from ._composed import composed
    from ._forms import FORMS

    table = torch.export.default_decompositions()
    rows = set(_state.module().row_overloads())
    bases = {row.partition(".")[0] for row in rows if row.partition(".")[2] in ("", "out", "grad_input")}
    for overload in list(table):
        if not isinstance(overload, torch._ops.OpOverload) or overload.namespace != "aten":
            continue
        name = overload._schema.name.removeprefix("aten::")
        full = f"{name}.{overload._overloadname}"
        if full in FORMS or full in rows or (overload._overloadname == "default" and name in bases):
            del table[overload]
    table.update(composed())  # type: ignore[no-untyped-call]
    return dict(table)


def keep_dropout(program: torch.export.ExportedProgram) -> None:
    """Writes dropout as the operator that draws its own mask, which decompositions leave whole."""
    import operator

    graph = program.graph
    for node in graph.nodes:
        if node.target is not torch.ops.aten.dropout.default or not (len(node.args) > 2 and node.args[2]):
            continue
        with graph.inserting_before(node):
            drawn = graph.call_function(torch.ops.aten.native_dropout.default, (node.args[0], node.args[1], True))
        value = node.meta["val"]
        drawn.meta = {**node.meta, "val": (value, value.new_empty(value.shape, dtype=torch.bool))}
        node.target, node.args, node.kwargs = operator.getitem, (drawn, 0), {}


def check_changes(signature: Any) -> None:
    """Refuses models that change inputs, or buffers other than those of BatchNorm, which the layer changes itself."""
    for name in signature.buffers_to_mutate.values():
        if name.rpartition(".")[2] not in ("running_mean", "running_var", "num_batches_tracked"):
            raise NotImplementedError(
                f"The model changes its buffer {name} in forward(), and networks of dlprim change only BatchNorm's."
            )
    for name in signature.user_inputs_to_mutate.values():
        raise NotImplementedError(f"The model writes its input {name} in forward(), and networks of dlprim only read.")


def output_names(program: torch.export.ExportedProgram, count: int) -> list[str]:
    """What the outputs are called: keys of a dict, or "output"."""
    spec = program.call_spec.out_spec
    if spec is not None:
        paths = torch.utils._pytree.tree_unflatten(range(count), spec)
        found = torch.utils._pytree.tree_flatten_with_path(paths)[0]
        keys = [
            ".".join(str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k)))) for k in path)
            for path, _ in found
        ]
        if len(keys) == count and all(key and not key[0].isdigit() for key in keys):
            return keys
    return ["output"] if count == 1 else [f"output_{i}" for i in range(count)]


def rename_outputs(network: Network, names: Sequence[str]) -> None:
    """Gives outputs these names."""
    wanted = {old: name for old, name in zip(network.outputs, names, strict=True) if old}
    if len(set(wanted.values())) < len(wanted):
        raise ValueError(f"Two outputs of the model would have one name: {', '.join(wanted.values())}.")
    for name in wanted.values():
        if name in network.inputs:
            raise ValueError(f"An input and an output of the model are both called {name}; one needs another name.")
    rename(network, wanted, [])


def rename(network: Network, wanted: Mapping[str, str], reserved: Iterable[str]) -> None:
    """Gives tensors the names that are wanted, and others to all that have one of these or of the reserved names."""
    names = {*wanted.values(), *reserved}
    made = {name for entry in network.config["operators"] for name in entry["outputs"]}
    taken = made | set(network.inputs) | names
    new = {name: free(name + ".inner", taken) for name in made & names} | dict(wanted)
    for entry in network.config["operators"]:
        for key in ("inputs", "outputs"):
            entry[key] = [new.get(name, name) for name in entry[key]]
    network.config["outputs"] = [new.get(name, name) for name in network.config["outputs"]]
    network.outputs[:] = [new.get(name, name) for name in network.outputs]


def free(name: str, taken: Container[str]) -> str:
    """The name, or that with a number, which nothing else has."""
    return next(found for i in itertools.count() if (found := f"{name}.{i}" if i else name) not in taken)


def first_output(program: torch.export.ExportedProgram, batch: int) -> list[int] | None:
    """The sizes of the first output for a batch of this size; None where there is no such tensor."""
    name = next(iter(program.graph_signature.user_outputs), None)
    value = next((node.meta.get("val") for node in program.graph.nodes if node.name == name), None)
    if not isinstance(value, torch.Tensor):
        return None
    found = [expression(size) for size in value.shape]
    return [int(size.subs(dict.fromkeys(size.free_symbols, batch))) for size in found]


def add_loss(network: Network, loss: str, output: Sequence[int] | None) -> None:
    """Adds the loss of the first output, which has the sizes `output` in the example, and an input of labels."""
    kind, dtype = LOSSES[loss]
    config = network.config
    for name in ("label", "loss"):
        if name in network.inputs or name in network.outputs:
            raise ValueError(
                f"loss={loss!r} adds a tensor called {name}, and the model has an input or output so called."
            )
    if output is None or (loss == "cross_entropy" and len(output) < 2):
        raise ValueError(f"loss={loss!r} needs a tensor as first output{', of [N, C, ...]' * (loss != 'mse')}.")
    rename(network, {}, ["label", "loss"])
    shape = [size for dim, size in enumerate(output) if loss == "mse" or dim != 1]
    config["inputs"].append({"name": "label", "shape": shape, "dtype": dtype})
    config["operators"].append(
        {
            "name": free("loss", {entry["name"] for entry in config["operators"]}),
            "type": kind,
            "inputs": [network.outputs[0], "label"],
            "outputs": ["loss"],
        }
    )
    config["outputs"].append("loss")


def write_json(path: Path, config: dict[str, Any]) -> None:
    """Writes a network, one operator a line."""

    def lines(items: Sequence[Any]) -> str:
        return ",\n".join("    " + json.dumps(item) for item in items)

    path.write_text(
        '{\n  "inputs": [\n'
        + lines(config["inputs"])
        + '\n  ],\n  "outputs": '
        + json.dumps(config["outputs"])
        + ',\n  "operators": [\n'
        + lines(config["operators"])
        + "\n  ]\n}\n"
    )


def write_tensor(file: Any, name: str, tensor: torch.Tensor) -> None:
    """A dataset of a parameter. HDF5 has no bfloat16: its bits are a uint16 with an attribute."""
    if tensor.dtype == torch.bfloat16:
        file[name] = tensor.view(torch.uint16).numpy()
        file[name].attrs["dtype"] = "bfloat16"
    else:
        file[name] = tensor.numpy()
