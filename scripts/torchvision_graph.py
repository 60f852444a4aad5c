# SPDX-License-Identifier: MIT
"""A traced PyTorch model and the network JSON that is made of it: names, parameters, and the forms that values have.

torchvision_operators.py translates the nodes.
"""
import contextlib

import torch
import torch.fx


class Rows(str):
    """A tensor [..., C] as the matrix [-1, C], which products, norms of its rows and what is done to each element take."""


class Channels(str):
    """A tensor [N, H, W, C] as [N, C, H, W]: convolutions of 1x1 are products with its channels."""


def shapes_of(module, model, shape):
    """fx node -> value, of which only the shape means something: nothing is computed."""
    values = {}

    class Shapes(torch.fx.Interpreter):
        def run_node(self, node):
            values[node] = super().run_node(node)
            return values[node]

    on_meta = next(model.parameters()).is_meta
    mode = contextlib.nullcontext() if on_meta else torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        Shapes(module).run(torch.zeros(shape, device="meta" if on_meta else "cpu"))
    return values


class NetworkGraph:
    """The operators of network JSON that a traced model becomes, and the names of its values there."""

    def __init__(self, model, graph, batch, size, keep_dropout):
        self.model = model
        self.keep_dropout = keep_dropout
        self.operators = []
        self.weights = {}   # parameter name in the file -> state_dict name
        self.shapes = {}    # parameter name in the file -> its shape there, where it is another
        self.decisions = {} # fx node that takes decisions -> (what it is, tensor that shows them, pooling's options)
        self.tensors = {}   # fx node -> tensor name, or a list of them
        self.rows = {}      # fx node -> tensor name, of Rows
        self.channels = {}  # fx node -> tensor name, of Channels
        self.made = {}      # what was made once for all -> tensor name
        self.names = set()
        module = self.traced = torch.fx.GraphModule(model, graph)
        self.values = shapes_of(module, model, (batch, 3, size, size))
        self.larger = shapes_of(module, model, (batch + 1, 3, size, size))  # tells which sizes are the batch's

    def emit(self, node, type_, inputs, options=None, params=(), name=None):
        name = name or str(node.target if node.op == "call_module" else node.name)
        base, k = name, 1
        while name in self.names:
            k += 1
            name = f"{base}_{k}"
        self.names.add(name)
        entry = {"name": name, "type": type_, "inputs": [str(x) for x in inputs], "outputs": [name]}
        if options:
            entry["options"] = options
        self.operators.append(entry)
        for i, param in enumerate(params):
            self.weights[f"{name}.{i}"] = param
        return name

    def pointwise(self, name, code, inputs, **options):
        return self.emit(None, "Pointwise", inputs, {"code": code, **options}, name=name)

    def once(self, key, make):
        """make() the first time, and its result whenever the same key is asked for."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def parameter(self, source, shape=None, value=0.0):
        """A Parameter of the state_dict's tensor `source`, perhaps in another shape; `value` is its first one."""
        def make():
            options = {"shape": list(shape or self.model.state_dict()[source].shape)}
            if value:
                options["value"] = value
            name = self.emit(None, "Parameter", [], options, [source], name=source)
            if shape:
                self.shapes[f"{name}.0"] = list(shape)
            return name
        return self.once(("parameter", source), make)

    # Forms of a value: as PyTorch has it, as rows, or with its channels in front.

    def tensor(self, node):
        """The name of a node's value in PyTorch's shape."""
        if node not in self.tensors:
            if node in self.rows:
                self.tensors[node] = self.emit(None, "Reshape", [self.rows[node]], {"dims": self.sizes(node)}, name=f"{node.name}.shape")
            elif node in self.channels:
                self.tensors[node] = self.emit(None, "Transpose", [self.channels[node]], {"dims": [0, 2, 3, 1]}, name=f"{node.name}.last")
            else:
                raise NotImplementedError(f"{node.target} at {node.name} is used as a tensor")
        return self.tensors[node]

    def as_rows(self, node):
        if node not in self.rows:
            x, features = self.tensor(node), self.values[node].shape[-1]
            flat = self.values[node].dim() == 2
            self.rows[node] = x if flat else self.emit(None, "Reshape", [x], {"dims": [-1, features]}, name=f"{node.name}.rows")
        return self.rows[node]

    def form(self, node):
        """(name, what makes such a form of a name) of what work on each element does to a node's value."""
        if node in self.channels:
            return self.channels[node], Channels
        if node in self.rows and node not in self.tensors:
            return self.rows[node], Rows
        return self.tensor(node), str

    @staticmethod
    def of_rows(name):
        """A value that is there as rows."""
        return Rows(name)

    def sizes(self, node, whole=False):
        """Options for a Reshape to a node's shape: -1 stands for what depends on the batch, or 0 where that comes first."""
        ours, other = self.values[node].shape, self.larger[node].shape
        dims = [int(a) if a == b else -1 for a, b in zip(ours, other)]
        if dims.count(-1) > 1:
            raise NotImplementedError(f"{node.name} has several sizes that depend on the batch")
        return [0] + dims[1:] if whole and dims[0] == -1 else dims

    def has_batch_first(self, node):
        shape = self.values[node].shape
        return shape[0] + 1 == self.larger[node].shape[0]
