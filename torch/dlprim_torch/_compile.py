# SPDX-License-Identifier: MIT
"""torch.compile(model, backend="dlprim"): the graphs of a model on "ocl" as functions that dlprim plans as a whole.

Dynamo and AOTAutograd give a forward and a backward graph of ATen operators. What graph_of has a form for becomes a few
regions, each of which is one dlprim function; what has none runs eagerly between them, named in torch.ocl.fallbacks().
A region that dlprim cannot plan or cannot run once runs eagerly, too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

from . import _state
from ._forms.images import RESIZES
from ._graph import Builder, graph_of

log = logging.getLogger(__name__)  # shown by TORCH_LOGS=+dlprim_torch._compile

MOST_SHAPES = 64  # for which one graph with open sizes is kept

ATTENTION_BACKWARD = torch.ops.aten._scaled_dot_product_fused_attention_overrideable_backward.default

# What draws random numbers and has a form that draws those of eager calls.
DRAWN = {
    torch.ops.aten.native_dropout.default,
    torch.ops.aten.bernoulli.p,
    torch.ops.aten.rand_like.default,
    torch.ops.aten.randn_like.default,
    torch.ops.aten._scaled_dot_product_fused_attention_overrideable.default,
}

# What only shows a tensor in another way. It costs nothing eagerly, and would be a copy as a function's result.
VIEWS = {
    getattr(getattr(torch.ops.aten, name), overload)
    for name, overload in (
        ("reshape", "default"),
        ("t", "default"),
        ("transpose", "int"),
        ("permute", "default"),
        ("unsqueeze", "default"),
        ("squeeze", "dim"),
        ("squeeze", "dims"),
        ("expand", "default"),
        ("alias", "default"),
        ("detach", "default"),
    )
}


def backend(
    module: GraphModule, examples: Sequence[Any], *, mode: str | None = None, options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend "dlprim" of torch.compile. It has one mode, which every `mode` means, and no options."""
    from torch._dynamo.backends.common import aot_autograd

    from ._export import decompositions

    if options:
        names = ", ".join(options)
        raise ValueError(f'The backend "dlprim" of torch.compile has no options, and was given {names}.')
    made = aot_autograd(
        fw_compiler=compile_forward,
        bw_compiler=compile_backward,
        inference_compiler=compile_inference,
        decompositions=decompositions(),
        partition_fn=forward_and_backward,
    )
    with whole_resizes():
        return made(module, examples)


@contextlib.contextmanager
def whole_resizes() -> Iterator[None]:
    """Keeps images that get other sizes one operator, of which PyTorch makes indices while it traces a gradient."""
    operators = [getattr(getattr(torch.ops.aten, name), part) for name in RESIZES for part in ("vec", "default")]
    known = [dict(op.py_kernels) for op in operators]
    try:
        for op in operators:
            for key in (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd):
                op.py_kernels.pop(key, None)
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernels in zip(operators, known, strict=True):
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()


def forward_and_backward(joint: GraphModule, inputs: Any, **options: Any) -> Any:
    """AOTAutograd's two graphs. Keys of attention that drops nothing are not saved between them."""
    from torch._functorch.partitioners import default_partition

    for node in joint.graph.nodes:
        if node.target is ATTENTION_BACKWARD and node.args[12] == 0:
            node.update_arg(14, node.args[1])  # the query, which nobody reads there
            node.update_arg(15, node.args[1])
    return default_partition(joint, inputs, **options)


def compile_forward(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """A forward graph that a backward graph follows, to which its last results go: weights change between calls."""
    context = torch._guards.TracingContext.try_get()
    known = context.fw_metadata if context is not None else None
    if known is not None:
        returned = results_of(module)[: known.num_forward_returns]
        for node in results_of(module)[known.num_forward_returns :]:
            if isinstance(node, Node) and node not in returned:
                node.meta["saved"] = True
    return compile_backward(module, examples)


def compile_backward(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """A backward graph."""
    return boxed(compiled(module, set(), True))


def compile_inference(module: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
    """A graph without a backward one. What is packed of its weights is kept until they change."""
    context = torch._guards.TracingContext.try_get()
    known = context.fw_metadata if context is not None else None
    return boxed(compiled(module, set(known.static_input_indices if known is not None else ()), False))


def boxed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The form in which AOTAutograd hands over arguments, so that they can be freed early."""
    from torch._functorch.aot_autograd import make_boxed_func  # type: ignore[attr-defined]

    return make_boxed_func(function)


def compiled(module: GraphModule, constants: set[int], training: bool) -> Callable[..., Any]:
    """The graph as a callable. `constants`: the placeholders whose tensors seldom change."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    if any(isinstance(size, torch.SymInt) for node in placeholders for size in open_sizes(node)):
        return BySizes(module, constants, training)
    with _disable_current_modes():  # numbers of the graph are real
        return in_regions(module, {placeholders[i] for i in constants if i < len(placeholders)}, training)


def results_of(module: GraphModule) -> list[Any]:
    """What a graph returns."""
    return list(next(node for node in module.graph.nodes if node.op == "output").args[0])


def open_sizes(node: Node) -> Iterable[Any]:
    """What is given of sizes by a placeholder."""
    value = node.meta.get("val")
    return [*value.shape, *value.stride()] if isinstance(value, torch.Tensor) else [value]


class BySizes:
    """A graph with open sizes, as a graph of its own for each set of sizes that comes."""

    def __init__(self, module: GraphModule, constants: set[int], training: bool) -> None:
        self.module, self.constants, self.training = module, constants, training
        self.known: OrderedDict[tuple[Any, ...], Callable[..., Any]] = OrderedDict()

    def __call__(self, *inputs: Any) -> Any:
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        key = tuple((x.shape, x.stride()) if isinstance(x, torch.Tensor) else x for x in inputs)
        if key not in self.known:
            if len(self.known) >= MOST_SHAPES:
                self.known.popitem(last=False)
            self.known[key] = self.specialised(inputs, tensors)
        self.known.move_to_end(key)
        return self.known[key](*tensors)

    def specialised(self, inputs: Sequence[Any], tensors: Sequence[torch.Tensor]) -> Callable[..., Any]:
        """The graph for the sizes of these inputs, called on the tensors among them."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.proxy_tensor import make_fx

        def run(*given: torch.Tensor) -> Any:
            rest = iter(given)
            return self.module(*(next(rest) if isinstance(x, torch.Tensor) else x for x in inputs))

        with _disable_current_modes(), whole_resizes(), torch.no_grad():
            mode = FakeTensorMode(allow_non_fake_inputs=True)
            fakes = [mode.from_tensor(x.detach()) for x in tensors]
            made = make_fx(run)(*fakes)
            for old, new in zip(results_of(self.module), results_of(made), strict=True):
                if isinstance(new, Node) and old.meta.get("saved"):
                    new.meta["saved"] = True
            at = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
            return compiled(made, {at.index(i) for i in self.constants if i in at}, self.training)


def in_regions(module: GraphModule, constants: set[Node], training: bool) -> Callable[..., Any]:
    """The graph with what has forms as regions."""
    from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

    names = {node.name for node in constants}
    eager = show_results(module)
    lacking = without_form(module) | eager
    parts = partitions(module, lacking)
    drawn = {node for node in module.graph.nodes if is_drawn(node)}
    if not any(drawn <= part.keys() for part in parts):  # regions would not draw in the order of eager calls
        lacking |= drawn | {user for node in drawn for user in node.users if user.target is operator.getitem}
        parts = runs(module, lacking)
    for name in sorted({str(node.target) for node in lacking - eager if node.target is not operator.getitem}):
        log.info("%s has no form in a network and runs eagerly", name)
        note_eager(name)
    fused = fuse_by_partitions(module, parts, prefix="region", always_return_tuple=True)
    for name, child in list(fused.named_children()):
        if name.startswith("region") and isinstance(child, GraphModule):
            call = next(node for node in fused.graph.nodes if node.op == "call_module" and node.target == name)
            if not call.all_input_nodes:  # nothing tells the device: what is made of nothing is made eagerly
                continue
            fixed = [i for i, node in enumerate(call.all_input_nodes) if node.name in names]
            setattr(fused, name, Region(child, fixed, training))
    fused.recompile()
    return fused


def partitions(module: GraphModule, lacking: set[Node]) -> list[dict[Node, int | None]]:
    """The nodes with forms, in as few parts as the others between them allow."""
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    supported = [node for node in calls if node not in lacking]
    if not supported:
        return []
    if not returns_to(supported, lacking):
        return [dict.fromkeys(supported)]
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import create_op_support

    known = set(supported)
    partitioner = CapabilityBasedPartitioner(
        module,
        create_op_support(lambda modules, node: node in known),
        allows_single_node_partition=True,
    )
    return [part.nodes for part in partitioner.propose_partitions()]


def runs(module: GraphModule, lacking: set[Node]) -> list[dict[Node, int | None]]:
    """The nodes with forms, in parts that leave all nodes in the order of the graph."""
    parts: list[dict[Node, int | None]] = [{}]
    for node in module.graph.nodes:
        if node.op == "call_function" and node not in lacking:
            parts[-1][node] = None
        elif node.op == "call_function" and parts[-1]:
            parts.append({})
    return [part for part in parts if part]


def returns_to(supported: Sequence[Node], lacking: set[Node]) -> bool:
    """Whether a supported node reads what a lacking one has made of the result of another."""
    behind: set[Node] = set()
    known = set(supported)
    for node in supported[0].graph.nodes:
        after = any(x in behind or x in known for x in node.all_input_nodes)
        if node in lacking and after:
            behind.add(node)
        if node in known and any(x in behind for x in node.all_input_nodes):
            return True
    return False


def show_results(module: GraphModule) -> set[Node]:
    """Gives outputs of the graph that are views nodes of their own, and returns these."""
    graph = module.graph
    output = next(node for node in graph.nodes if node.op == "output")
    made: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
            node.target = torch.ops.aten.reshape.default  # strides may differ from those that were traced

    def shown(node: Any) -> Any:
        if not isinstance(node, Node) or node.op != "call_function" or node.target not in VIEWS:
            return node
        if node not in made:
            source = shown(node.args[0])
            with graph.inserting_before(output):
                copy = graph.node_copy(node)
            copy.args = (source, *node.args[1:])
            made[node] = copy
        return made[node]

    output.args = (torch.fx.node.map_arg(output.args[0], shown),)
    graph.eliminate_dead_code()
    module.recompile()
    return set(made.values())


def without_form(module: GraphModule) -> set[Node]:
    """The nodes that a region cannot have."""
    builder = Builder(module, {}, {}, keyed=True)
    found = set()
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output"):
            builder.values[node] = node.name
            continue
        if node.target is operator.getitem:
            source = node.args[0]
            if source not in found:
                builder.visit(node)
                if builder.values[node] is not None or not node.users:
                    continue
                found.update([source, *source.users])  # somebody reads a result that the form does not make
            found.add(node)
            builder.values[node] = node.name
            continue
        elif node.op == "get_attr":
            builder.values[node] = node.name
            continue
        elif not is_of_device(node) or is_bound_to_order(node):
            found.add(node)
            builder.values[node] = stand_in(node)
            continue
        try:
            builder.visit(node)
        except Exception as error:  # also a form that fails leaves its node to eager calls
            log.debug("%s: %s", node, error)
            found.add(node)
            builder.values[node] = stand_in(node)
    return found


def stand_in(node: Node) -> Any:
    """Names for a node's results."""
    value = node.meta.get("val")
    return [f"{node.name}.{i}" for i in range(len(value))] if isinstance(value, (tuple, list)) else node.name


def is_of_device(node: Node) -> bool:
    """Whether all tensors of a call are on the device and have elements; numbers of the CPU may be among them."""
    values = [x.meta.get("val") for x in node.all_input_nodes]
    made = node.meta.get("val")
    results = list(made) if isinstance(made, (tuple, list)) else [made]
    tensors = [x for x in values + results if isinstance(x, torch.Tensor)]
    return all(x.numel() > 0 for x in tensors) and all(
        x.device.type == "ocl" for x in tensors if x.dim() > 0 or any(x is y for y in results)
    )


def is_drawn(node: Node) -> bool:
    """Whether a call draws random numbers. Attention says so also where it drops nothing."""
    if not isinstance(node.target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    given = {**dict(zip((x.name for x in node.target._schema.arguments), node.args, strict=False)), **node.kwargs}
    return bool(given.get("dropout_p", 0) != 0) if "attention" in str(node.target) else True


def is_bound_to_order(node: Node) -> bool:
    """Whether a call draws random numbers in a way of its own, or writes to its arguments."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return True
    return (is_drawn(node) and target not in DRAWN) or target._schema.is_mutable


class Region(torch.nn.Module):
    """Operators that dlprim plans as a whole. They run eagerly where it cannot plan them, or their first call fails."""

    def __init__(self, module: GraphModule, constants: Sequence[int], training: bool) -> None:
        super().__init__()
        self.module = module
        self.function: Any = None
        self.proven = False
        try:
            self.plan(constants, training)
        except RuntimeError as error:
            self.give_up(error)

    def plan(self, constants: Sequence[int], training: bool) -> None:
        """Makes the function."""
        network = graph_of(self.module, keyed=True)
        self.draws = network.draws
        self.places = [i for i, name in enumerate(network.inputs) if name]
        results = results_of(self.module)
        self.traced = [node.meta["val"] for node in results]
        # Nobody sees the strides of what is saved for the backward graph.
        self.strides = [None if node.meta.get("saved") else strides_of(node.meta["val"]) for node in results]
        values = [
            node.meta.get("val") for node in self.module.graph.nodes if node.op in ("placeholder", "call_function")
        ]
        device = next(x.device for x in leaves(values) if x.device.type == "ocl")
        self.device = device.index or 0
        self.function = _state.module().Function(
            self.device,
            json.dumps(network.config),
            "A region of torch.compile",
            [network.inputs[i] for i in constants if network.inputs[i]],
            training,
        )

    def give_up(self, error: RuntimeError) -> None:
        """Leaves the operators to eager calls from now on. Raises the error if it says that memory is short."""
        if isinstance(error, torch.OutOfMemoryError):
            raise error
        self.function = None
        targets = {str(node.target) for node in self.module.graph.nodes if node.op == "call_function"}
        names = sorted(targets - {str(operator.getitem)})
        log.info("A region runs eagerly (%s): %s", ", ".join(names), error)
        for name in names:
            note_eager(name)

    def forward(self, *inputs: torch.Tensor) -> Sequence[torch.Tensor]:
        if self.function is None:
            return tuple(self.module(*inputs))
        before = _state.module().rng_state(self.device) if self.draws and not self.proven else None
        try:
            made = self.planned(inputs)
        except RuntimeError as error:
            if self.proven:
                raise
            self.give_up(error)
            if before is not None:
                _state.module().set_rng_state(self.device, before)
            return tuple(self.module(*inputs))
        self.proven = True
        return made

    def planned(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The function's results, with the types, shapes and strides that were traced."""
        given = [inputs[i] for i in self.places]
        if self.draws:
            given += _state.module().draw_keys(self.device, self.draws)
        made = self.function(given)
        return [as_traced(*row) for row in zip(made, self.traced, self.strides, strict=True)]


def as_traced(made: torch.Tensor, traced: torch.Tensor, strides: Sequence[int] | None) -> torch.Tensor:
    """A function's result as the graph has it: statistics of norms may have another type, losses one dimension more."""
    if made.dtype != traced.dtype:
        made = made.to(traced.dtype)
    if made.shape != traced.shape:
        made = made.view(traced.shape)
    if strides is None:
        return made
    return torch.empty_strided(traced.shape, strides, dtype=made.dtype, device=made.device).copy_(made)


def strides_of(traced: torch.Tensor) -> Sequence[int] | None:
    """The strides of a tensor whose elements lie side by side in another order than that of its dimensions."""
    if traced.numel() == 0 or traced.is_contiguous():
        return None
    wanted = 1
    for size, stride in sorted(zip(traced.shape, traced.stride(), strict=True), key=lambda row: (row[1], row[0])):
        if size > 1 and stride != wanted:
            return None
        wanted *= size
    return traced.stride()


def leaves(values: Iterable[Any]) -> Iterable[torch.Tensor]:
    """The tensors among values and lists of them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from leaves(value)


def note_eager(name: str) -> None:
    """Names an operator in torch.ocl.fallbacks()."""
    from . import ocl

    ocl._eager[name] = ocl._eager.get(name, 0) + 1
