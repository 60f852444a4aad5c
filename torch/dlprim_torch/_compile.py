# SPDX-License-Identifier: MIT
"""torch.compile(model, backend="dlprim"): the graphs of a model on "ocl" as functions that dlprim plans as a whole.

Dynamo and AOTAutograd give a forward and a backward graph of ATen operators. What graph_of has a form for becomes a few
regions, each of which is one dlprim function; what has none runs eagerly between them, named in torch.ocl.fallbacks().
A region that dlprim cannot plan or cannot run once runs eagerly, too.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._python_dispatch import _disable_current_modes

from ._export import decompositions
from ._region import results_of
from ._regions import in_regions
from ._rounding import leave_unrounded
from ._saved import forward_and_backward
from ._traces import own_traces

MOST_SHAPES = 64  # for which one graph with open sizes is kept


def backend(
    module: GraphModule, examples: Sequence[Any], *, mode: str | None = None, options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The backend "dlprim" of torch.compile. It has one mode, which every `mode` means, and no options."""
    from torch._dynamo.backends.common import aot_autograd

    if options:
        names = ", ".join(options)
        raise ValueError(f'The backend "dlprim" of torch.compile has no options, and was given {names}.')
    made = aot_autograd(
        fw_compiler=compile_forward,
        bw_compiler=compile_backward,
        inference_compiler=compile_inference,
        decompositions=decompositions(),
        partition_fn=forward_and_backward,
        keep_inference_input_mutations=True,  # in graphs with gradients, too
    )
    with own_traces():
        return made(module, examples)


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
        leave_unrounded(module)
        return in_regions(module, {placeholders[i] for i in constants if i < len(placeholders)}, training)


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

        with _disable_current_modes(), own_traces(), torch.no_grad():
            mode = FakeTensorMode(allow_non_fake_inputs=True)
            fakes = [mode.from_tensor(x.detach()) for x in tensors]
            made = make_fx(run, decompositions())(*fakes)
            for old, new in zip(results_of(self.module), results_of(made), strict=True):
                if isinstance(new, Node) and old.meta.get("saved"):
                    new.meta["saved"] = True
            at = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
            return compiled(made, {at.index(i) for i in self.constants if i in at}, self.training)
