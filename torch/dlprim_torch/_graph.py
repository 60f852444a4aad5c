# SPDX-License-Identifier: MIT
"""A graph of ATen operators as a network of dlprim: its JSON, and its parameters.

torch.export and torch.compile's backend both come here. FORMS of _forms is the table of the operators that have
layers of their own; all other pointwise operators and reductions are the expressions of rows.yaml, which eager calls
use, too.
"""

from __future__ import annotations

import inspect
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sympy  # type: ignore[import-untyped]
import torch

from . import _state
from ._views import View, expression, view_of

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

Sizes = list[Any]  # of int, or torch.SymInt where a size is open


class Network(NamedTuple):
    """A graph as a network: see graph_of."""

    config: dict[str, Any]
    inputs: list[str]
    outputs: list[str]
    parameters: dict[str, torch.Tensor]
    draws: int


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
    return builder.build(placeholders)


def is_open(size: object) -> bool:
    """Whether a size, or a number made of sizes, is a symbol, such as that of an open batch."""
    return isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool))


def same_size(a: Any, b: Any) -> bool:
    """Whether two sizes are equal for all values of their symbols."""
    if is_open(a) and is_open(b):
        return bool(a.node.expr == b.node.expr)
    return not is_open(a) and not is_open(b) and int(a) == int(b)


def hint(size: Any) -> int:
    """A size as it was in the example."""
    return int(size.node.hint) if is_open(size) else int(size)


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
            return self.written(name)
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
        return view if sum(not size.is_Integer for size in view.sizes) <= 1 else self.written(view)

    def rows(self, node: torch.fx.Node) -> tuple[str, Callable[[str, Any], Any]]:
        """A tensor for a layer that treats each row by itself, and what makes the node's view of its result.

        The rows are in the order of the view's base, which needs no copy where only they have changed places.
        """
        view = self.view(node)
        leading = [atom for group in view.groups[:-1] for atom in group]
        order = [atom for atom in view.order if atom in leading]
        if view.fixed or leading == order:
            return self.tensor(node), lambda name, features: name
        name = self.written(view._replace(groups=[[atom] for atom in order] + view.groups[-1:]))

        def again(result: str, features: Any) -> View:
            found = view_of(result, [*(view.sizes[atom] for atom in order), features])
            place = {atom: i for i, atom in enumerate(order)}
            groups = [[place[atom] for atom in group] for group in view.groups[:-1]]
            return found._replace(groups=[*groups, found.groups[-1]])

        return name, again

    def written(self, view: View) -> str:
        """The name of a view's tensor, which layers make."""
        name, cuts, sizes = view.base, [list(cut) for cut in view.cuts], [view.size(cut) for cut in view.cuts]
        atoms = [atom for group in view.groups for atom in group]
        moved = atoms != [atom for atom in view.order if atom not in view.fixed]
        few = {atom for atom in view.fixed if moved and view.sizes[atom] <= 4}  # of which others are likely read, too
        for dim, cut in enumerate(cuts):
            while cut and cut[0] in view.fixed and cut[0] not in few:
                inner = view.size(cut[1:])
                begin = view.fixed[cut.pop(0)] * inner
                name = self.kept("Slice", name, {"dim": dim, "begin": begin, "end": begin + inner})
                sizes[dim] = inner
        inside = [atom for cut in cuts for atom in cut if atom in view.fixed]
        places = [atom for cut in cuts for atom in cut]
        wanted = inside + atoms if moved else places
        runs = runs_of(wanted, places, set(inside))
        rising = sorted(runs, key=lambda run: places.index(run[0]))
        name = self.reshape(name, sizes, [view.size(run) for run in rising])
        order = [rising.index(run) for run in runs]
        if order != sorted(order):
            name = self.kept("Transpose", name, {"dims": order})
        sizes = [view.size(run) for run in runs]
        for atom in inside:
            dim = runs.index([atom])
            name = self.kept("Slice", name, {"dim": dim, "begin": view.fixed[atom], "end": view.fixed[atom] + 1})
            sizes[dim] = sympy.Integer(1)
        return self.reshape(name, sizes, [view.size(group) for group in view.groups])

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

    def row(self, overload: str | None = None, **others: Any) -> Any:
        """What rows.yaml makes of the node that is being visited; None where it has no row.

        `overload` takes the place of the node's, and `others` join its arguments.
        """
        node = self.node
        stands: dict[int, torch.fx.Node | str] = {}
        keep: list[torch.Tensor] = []

        def stand_in(given: Any) -> Any:
            if isinstance(given, (list, tuple)):
                return [stand_in(item) for item in given]
            if not isinstance(given, torch.fx.Node):
                return self.closed(given)
            kind = wanted if given is given_self and wanted is not None else self.value(given).dtype
            tensor = torch.empty([1] * self.rank(given), dtype=kind, device="meta")
            keep.append(tensor)
            cast = kind != self.value(given).dtype
            stands[id(tensor)] = self.layer("Cast", [given], {"dtype": self.dtype(kind)}) if cast else given
            return tensor

        schema = node.target._schema  # type: ignore[union-attr]
        known = {**self.arguments(node), **others}
        given_self, wanted = known.get("self"), known.get("dtype")
        if (
            schema.name not in ("aten::sum", "aten::prod", "aten::nansum")
            or not self.value(known["self"]).is_floating_point()
            or (wanted is not None and wanted.is_floating_point)
        ):
            wanted = None  # only floats that become whole numbers are cast before they are added
        arguments = {name: stand_in(value) for name, value in known.items()}
        results = self.value(node) if isinstance(self.value(node), (tuple, list)) else [self.value(node)]
        numel = math.prod(hint(size) for size in results[0].shape)
        name = schema.name.removeprefix("aten::")
        programs = _state.module().row_programs(name, overload or schema.overload_name, numel, **arguments)
        if not programs:
            return None
        first, *second = programs
        if not second:
            return self.program(first, stands, results)
        after, between = second
        stands[id(between)] = self.program(first, stands, [between])
        return self.program(after, stands, results)

    def program(self, program: dict[str, Any], stands: dict[int, torch.fx.Node | str], results: Sequence[Any]) -> Any:
        """A row's program as a Pointwise operator with results of these types."""
        sources = [stands[id(tensor)] for tensor in program["inputs"]]
        options = {"code": program["code"]}
        if program["scalars"]:
            options["scalars"] = program["scalars"]
        if not program["keep_dim"] and "[" in program["code"]:
            options["keep_dim"] = False
        types = [result.dtype for result in results]
        if any(tensor.dtype != torch.float32 for tensor in program["inputs"]) or any(t != torch.float32 for t in types):
            options["dtypes"] = [self.dtype(dtype) for dtype in types]
        return self.layer("Pointwise", sources, options, results=len(results))

    def visit(self, node: torch.fx.Node) -> None:
        """Adds what a node computes."""
        from ._forms import FORMS

        self.node = node
        if node.target is operator.getitem:
            made = self.values[node.all_input_nodes[0]]
            results = made if isinstance(made, list) else [made, *[None] * 8]
            self.values[node] = results[int(node.args[1])]  # type: ignore[arg-type]
            return
        if node.op == "get_attr" or not isinstance(self.value(node), (torch.Tensor, tuple, list)):
            return
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None or not schema.name.startswith("aten::"):
            raise self.no_form()
        name = schema.name.removeprefix("aten::")
        form: Callable[..., Any] | None = FORMS.get(f"{name}.{schema.overload_name or 'default'}", FORMS.get(name))
        made = None
        given = self.arguments(node)
        if any(isinstance(value, complex) for value in given.values()):
            raise self.no_form("has a complex number, which networks of dlprim lack")
        source = given.get("self")
        if name in OF_DIMENSIONS and isinstance(source, torch.fx.Node) and self.rank(source) == 0:
            if any(given.get(key) not in (None, []) for key in ("dim", "dims")):
                raise self.no_form("of a tensor without dimensions has no form in a network of dlprim")
        before = len(self.operators)
        if form is not None:
            for argument in schema.arguments:
                if str(argument.type) in ("number", "float") and name != "arange":
                    self.closed(given.get(argument.name))
            made = form(self, **{key: given[key] for key in list(inspect.signature(form).parameters)[1:]})
        if made is None:
            made = self.row()
        if made is None:
            raise self.no_form()
        self.values[node] = made
        if self.keyed:
            self.set_precision(self.operators[before:])

    def set_precision(self, made: Sequence[dict[str, Any]]) -> None:
        """Lets products of the node that is being visited round as eager calls do, where its result has 16 bits."""
        value = self.value(self.node)
        results = value if isinstance(value, (tuple, list)) else [value]
        name = PRECISIONS.get(next((x.dtype for x in results if isinstance(x, torch.Tensor)), torch.float32))
        for entry in made if name else ():
            if entry["type"] in PRODUCTS:
                entry["precision"] = name

    def build(self, placeholders: Sequence[torch.fx.Node]) -> Network:
        """The whole network."""
        inputs: list[str] = []
        declared: list[dict[str, Any]] = []
        for node in placeholders:
            if node.name in self.given:
                continue
            self.node = node
            tensor = self.value(node)
            if not isinstance(tensor, torch.Tensor):
                inputs.append("")
                continue
            name = self.unique(self.names.get(node.name, node.name))
            self.values[node] = name
            inputs.append(name)
            declared.append(
                {"name": name, "shape": [hint(size) for size in tensor.shape], "dtype": self.dtype(tensor.dtype)}
            )
            if tensor.dim() and is_open(tensor.shape[0]):
                self.batches.append(node)
        live = living(self.module.graph)
        for node in self.module.graph.nodes:
            if node in live and node.op in ("call_function", "call_method", "call_module", "get_attr"):
                self.visit(node)
        declared += [{"name": name, "shape": [1], "dtype": "int64"} for name in self.keys[:2]]
        outputs = self.outputs({entry["name"] for entry in declared})
        config = {
            "inputs": declared,
            "outputs": [name for name in outputs if name],
            "operators": needed(self.later_steps() + self.operators, outputs),
        }
        return Network(config, inputs, outputs, self.parameters, max(len(self.keys) - 1, 0))

    def outputs(self, inputs: set[str]) -> list[str]:
        """The names of the graph's outputs."""
        node = next(node for node in self.module.graph.nodes if node.op == "output")
        self.node = node
        found: list[str] = []
        values = node.args[0] if isinstance(node.args[0], (tuple, list)) else [node.args[0]]
        for value in values:
            if value is None:
                found.append("")
                continue
            if not isinstance(value, torch.fx.Node) or not isinstance(self.value(value), torch.Tensor):
                raise NoForm(f"The graph returns {value}, which is no tensor.", node)
            name = self.tensor(value)
            copied = name in inputs or name in found
            found.append(self.pointwise("y0 = x0", [name], self.value(value).dtype) if copied else name)
        return found


def number(value: Any) -> Any:
    """A float as JSON has it."""
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def runs_of(wanted: Sequence[int], places: Sequence[int], alone: set[int]) -> list[list[int]]:
    """The atoms in their order, with those joined that stand side by side before and behind."""
    runs: list[list[int]] = []
    for atom in wanted:
        at = places.index(atom)
        joined = runs and at > 0 and places[at - 1] == runs[-1][-1]
        if joined and atom not in alone and runs[-1][-1] not in alone:
            runs[-1].append(atom)
        else:
            runs.append([atom])
    return runs


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
