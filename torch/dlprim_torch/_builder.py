# SPDX-License-Identifier: MIT
"""The network of a graph while it grows, layer by layer."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from ._sizes import Sizes, is_open, same_size
from ._views import View, expression, view_of
from ._written import written

# Names of element types in networks.
DTYPES = {
    torch.float32: "float",
    torch.float16: "half",
    torch.bfloat16: "bfloat16",
    torch.float64: "double",
    torch.int8: "int8",
    torch.int16: "int16",
    torch.int32: "int",
    torch.int64: "int64",
    torch.uint8: "uint8",
    torch.uint16: "uint16",
    torch.uint32: "uint32",
    torch.bool: "bool",
}


class NoForm(NotImplementedError):
    """An operator, or a use of one, that networks of dlprim lack. `node` is the node of the graph."""

    def __init__(self, message: str, node: torch.fx.Node) -> None:
        super().__init__(message)
        self.node = node


def place_of(node: torch.fx.Node) -> str:
    """Where the model uses a node: "layer1.0.conv1 (Conv2d), model.py line 7: y = conv(x)"."""
    modules = list(node.meta.get("nn_module_stack", {}).values())
    found = []
    if modules:
        path, kind = modules[-1][:2]
        kind = kind if isinstance(kind, str) else kind.__qualname__
        found.append(f"{path or 'the model'} ({kind.rpartition('.')[2]})")
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").strip().splitlines()]
    frames = [(lines[i], lines[i + 1]) for i in range(len(lines) - 1) if lines[i].startswith("File ")]
    own = [frame for frame in frames if os.path.dirname(torch.__file__) not in frame[0]]
    for place, code in (own or frames)[-1:]:
        file, line = place.split(", ")[:2]
        found.append(f"{file[6:-1]} {line}: {code.rstrip(',')}")
    return ", ".join(found) or f"node {node.name}"


class Builder:
    """The network while it grows, node by node. Forms of _forms ask it for names and add layers to it."""

    def __init__(
        self,
        module: torch.fx.GraphModule,
        parameters: Mapping[str, torch.Tensor],
        names: Mapping[str, str],
        keyed: bool = False,
    ) -> None:
        self.module = module
        self.keyed = keyed
        self.given = parameters
        self.names = names
        self.parameters: dict[str, torch.Tensor] = {}
        self.operators: list[dict[str, Any]] = []
        self.values: dict[torch.fx.Node, Any] = {}  # a name, or one for each result
        self.batches: list[torch.fx.Node] = []  # inputs whose first size is open
        self.node: torch.fx.Node  # that is being visited
        self.taken: set[str] = set()
        self.paths: set[str] = set()
        self.keys: list[str] = []  # with draws: the seed, and the step of each
        self.moves: dict[tuple[str, str, str], str] = {}  # layers that only move elements, which views share

    # What there is.

    def value(self, node: torch.fx.Node) -> Any:
        """What the node is in the example: a tensor without memory, several, a size, or None."""
        return node.meta["val"]

    def sizes(self, node: torch.fx.Node) -> Sizes:
        """The sizes of a tensor."""
        return list(self.value(node).shape)

    def rank(self, node: torch.fx.Node) -> int:
        """The number of a tensor's dimensions."""
        return len(self.value(node).shape)

    def is_parameter(self, node: torch.fx.Node) -> bool:
        """Whether a layer can have the node as its own parameter."""
        return node.op == "placeholder" and node.name in self.given and self.given[node.name].is_floating_point()

    def used(self, result: int) -> bool:
        """Whether somebody reads this result of the node that is being visited."""
        return any(
            user.target is operator.getitem and user.args[1] == result and user.users for user in self.node.users
        )

    def closed(self, number: Any) -> Any:
        """A number that the network can hold, which the size of an open batch is not."""
        if is_open(number):
            raise self.no_form(
                "uses the batch size as a number, which networks do not have (dynamic_batch=False fixes the size)"
            )
        return number

    def no_form(self, why: str = "has no form in a network of dlprim") -> NoForm:
        """The error for the node that is being visited."""
        return NoForm(f"{self.node.target} {why}; the model uses it in {place_of(self.node)}.", self.node)

    # What forms add.

    def tensor(self, node: torch.fx.Node | str) -> str:
        """The name of a node's tensor."""
        if isinstance(node, str):
            return node
        if node not in self.values:
            self.values[node] = self.parameter(node)
        name = self.values[node]
        if isinstance(name, View):
            return written(self, name)
        if not isinstance(name, str):
            raise self.no_form("reads a result that networks of dlprim do not have")
        return name

    def view(self, node: torch.fx.Node) -> View:
        """A node's tensor as a view, which no layer needs to have written."""
        name = self.values.get(node)
        return name if isinstance(name, View) else view_of(self.tensor(node), self.sizes(node))

    def layer(
        self,
        kind: str,
        inputs: Iterable[torch.fx.Node | str],
        options: Mapping[str, Any] | None = None,
        weights: Iterable[torch.fx.Node | None] = (),
        results: int = 1,
        trained: bool | None = None,
    ) -> Any:
        """Adds an operator and returns the name of its result, or a list of several.

        `weights` become its parameters where all of them are parameters of the network, else further inputs. `trained`:
        whether a solver changes them; None: where the model's tensors ask for gradients.
        """
        own = [weight for weight in weights if weight is not None]
        names = [self.unique(self.node.name) for _ in range(results)]
        entry: dict[str, Any] = {
            "name": names[0],
            "type": kind,
            "inputs": [self.tensor(x) for x in inputs],
            "outputs": names,
        }
        if options:
            entry["options"] = {name: self.option(value) for name, value in options.items()}
        if own and all(self.is_parameter(weight) for weight in own):
            entry["name"] = self.path() or names[0]
            entry["params"] = [self.own(weight) for weight in own]
            if trained is None:
                trained = any(self.given[weight.name].requires_grad for weight in own)
            if not trained:
                entry["frozen"] = True
        else:
            entry["inputs"] += [self.tensor(weight) for weight in own]
        self.operators.append(entry)
        return names[0] if results == 1 else names

    def gradients(
        self,
        kind: str,
        inputs: Sequence[torch.fx.Node | str],
        dy: torch.fx.Node | str,
        wanted: Sequence[bool],
        options: Mapping[str, Any] | None = None,
    ) -> list[str | None]:
        """Adds what makes the gradients of an operator's inputs and parameters, and returns one for each; None where it
        is not wanted. `dy` is that of its first result."""
        numbers = [i for i, is_wanted in enumerate(wanted) if is_wanted]
        if not numbers:
            return [None for _ in wanted]
        made = self.layer(kind, [*inputs, dy], options, results=len(numbers))
        self.operators[-1]["gradients"] = numbers
        names = iter([made] if len(numbers) == 1 else made)
        return [next(names) if is_wanted else None for is_wanted in wanted]

    def shown(self, view: View) -> View | str:
        """A view that may wait for a layer that reads it. One of several open sizes is written at once, or refused."""
        return view if sum(not size.is_Integer for size in view.sizes) <= 1 else written(self, view)

    def kept(self, kind: str, name: str, options: dict[str, Any]) -> str:
        """A layer of one tensor, or the one that does the same already."""
        options = {key: self.option(value) for key, value in options.items()}
        key = (kind, name, str(options))
        if key not in self.moves:
            self.moves[key] = str(self.layer(kind, [name], options))
        return self.moves[key]

    def pointwise(
        self, code: str, inputs: Iterable[torch.fx.Node | str], dtype: torch.dtype | None = None, **options: Any
    ) -> str:
        """Adds an expression of docs/pointwise.md with one result."""
        if dtype is not None and dtype != torch.float32:
            options["dtypes"] = self.dtype(dtype)
        return str(self.layer("Pointwise", inputs, {"code": code, **options}))

    def draw(self) -> list[str]:
        """The seed and the step of an eager call that draws random numbers, int64 [1] each."""
        if not self.keys:
            self.keys.append(self.unique("seed"))
        self.keys.append(self.unique("step"))
        return [self.keys[0], self.keys[-1]]

    def later_steps(self) -> list[dict[str, Any]]:
        """Operators that make the steps behind the first one, each one more than that before."""
        made = []
        for at in range(2, len(self.keys), 16):
            names = self.keys[at : at + 16]
            code = "; ".join(f"y{i} = x0 + {at - 1 + i}" for i in range(len(names)))
            options = {"code": code, "dtypes": ["int64"] * len(names)}
            made.append(
                {"name": names[0], "type": "Pointwise", "inputs": self.keys[1:2], "outputs": names, "options": options}
            )
        return made

    def reshape(self, x: torch.fx.Node | str, before: Sizes, after: Sizes) -> str:
        """The elements of x in other sizes."""
        before, after = list(map(expression, before)), list(map(expression, after))
        if before == after:
            return self.tensor(x)
        dims = [
            int(size) if size.is_Integer else 0 if before[i : i + 1] == [size] else -1 for i, size in enumerate(after)
        ]
        if dims.count(-1) > 1:
            raise self.no_form("has two sizes that depend on the batch, of which dlprim deduces only one")
        return self.kept("Reshape", self.tensor(x), {"dims": dims})

    def expand(self, x: torch.fx.Node | str, before: Sizes, after: Sizes, dtype: torch.dtype) -> str:
        """x repeated along the dimensions that have size 1."""
        before = [1] * (len(after) - len(before)) + before
        grown = [i for i, size in enumerate(after) if not same_size(size, before[i])]
        if not grown:
            return self.tensor(x)
        shape = [after[i] if i in grown and not is_open(after[i]) else 1 for i in range(len(after))]
        inputs = [x] + [self.batch(after[i], len(after), i) for i in grown if is_open(after[i])]
        return self.pointwise("y0 = x0", inputs, dtype, shape=shape)

    def batch(self, size: Any, rank: int, dim: int) -> str:
        """A tensor that has an open size in one dimension, and size 1 in all others."""
        source = next((node for node in self.batches if same_size(size, self.sizes(node)[0])), None)
        if source is None:
            raise self.no_form(f"makes a size {size}, which depends on the batch but is not the batch")
        name = self.tensor(source)
        for d in range(1, self.rank(source)):
            name = self.layer("Slice", [name], {"dim": d, "begin": 0, "end": 1})
        return str(self.layer("Reshape", [name], {"dims": [-1 if d == dim else 1 for d in range(rank)]}))

    def constant(self, values: torch.Tensor) -> str:
        """A tensor whose elements the network has as literals."""
        whole = not values.is_floating_point()
        flat = values.reshape(-1)
        if flat.numel() > 1 and bool((flat == flat[0]).all()):
            flat = flat[:1]
        numbers = [int(v) if whole else number(float(v)) for v in flat.tolist()]
        options = {
            "shape": list(values.shape),
            "dtype": self.dtype(values.dtype),
            "integers" if whole else "values": numbers,
        }
        return str(self.layer("Constant", [], options))

    def dtype(self, dtype: torch.dtype) -> str:
        """The name of an element type."""
        if dtype not in DTYPES:
            raise self.no_form(f"has elements of {dtype}, which networks of dlprim lack")
        return DTYPES[dtype]

    # How they get there.

    def unique(self, name: str) -> str:
        """A name that no tensor has, made of one that may be taken."""
        found, count = name, 0
        while found in self.taken:
            count += 1
            found = f"{name}.{count}"
        self.taken.add(found)
        return found

    def path(self) -> str | None:
        """The path of the module that the node comes from, if no operator is named so."""
        modules = list(self.node.meta.get("nn_module_stack", {}).values())
        path = str(modules[-1][0]) if modules else ""
        if not path or path in self.paths or path in self.taken:
            return None
        self.paths.add(path)
        return path

    def own(self, node: torch.fx.Node) -> str:
        """The name of a parameter, which the network has from now on."""
        name = self.names.get(node.name, node.name)
        self.parameters[name] = self.given[node.name]
        return name

    def parameter(self, node: torch.fx.Node) -> str:
        """A tensor of the model as an operator without inputs."""
        tensor = self.given[node.name] if node.op == "placeholder" else getattr(self.module, str(node.target))
        if not tensor.is_floating_point() or node.op != "placeholder":
            return self.constant(tensor.detach().cpu())
        options = {"shape": list(tensor.shape), "dtype": self.dtype(tensor.dtype), "is_trainable": tensor.requires_grad}
        name = self.unique(self.own(node))
        self.operators.append(
            {
                "name": name,
                "type": "Parameter",
                "inputs": [],
                "outputs": [name],
                "options": options,
                "params": [self.own(node)],
            }
        )
        return name

    def option(self, value: Any) -> Any:
        """An option's value as JSON has it."""
        if isinstance(value, sympy.Integer):
            return int(value)
        if is_open(value) or isinstance(value, sympy.Expr):
            raise self.no_form(f"has an option that depends on the batch ({value}), which networks of dlprim fix")
        if isinstance(value, (list, tuple)):
            return [self.option(item) for item in value]
        return number(value) if isinstance(value, float) else value

    def arguments(self, node: torch.fx.Node) -> dict[str, Any]:
        """A call's arguments by the names of the operator's schema; sizes as SymInt, tensors as nodes."""
        schema = node.target._schema  # type: ignore[union-attr]
        found = {argument.name: argument.default_value for argument in schema.arguments if argument.has_default_value()}
        found |= dict(zip((argument.name for argument in schema.arguments), node.args, strict=False)) | node.kwargs

        def known(given: Any) -> Any:
            if isinstance(given, (list, tuple)):
                return [known(item) for item in given]
            is_number = isinstance(given, torch.fx.Node) and isinstance(
                self.value(given), (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)
            )
            return self.value(given) if is_number else given

        return {name: known(value) for name, value in found.items()}


def number(value: Any) -> Any:
    """A float as JSON has it."""
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)
