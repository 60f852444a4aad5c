# SPDX-License-Identifier: MIT
"""How torchvision_net.py translates modules and functions of PyTorch to operators of network JSON."""
import math
import operator

import torch
import torch.fx
import torch.nn.functional as F
import torchvision_attention as attention
from torch import nn
from torchvision_graph import Channels, NetworkGraph, Rows
from torchvision_models import torchvision


def pair(value):
    return [int(v) for v in value] if isinstance(value, (tuple, list)) else [int(value), int(value)]


class Tracer(torch.fx.Tracer):
    """Leaves are modules that change nothing in what we compare, and those that have a translation of their own."""

    def is_leaf_module(self, module, qualified_name):
        if isinstance(module, torchvision.ops.StochasticDepth) or type(module) in MODULES:
            return True
        return super().is_leaf_module(module, qualified_name)


ACTIVATIONS = {nn.ReLU: "relu", nn.ReLU6: "relu6", nn.SiLU: "silu", nn.Hardswish: "hardswish", nn.Hardsigmoid: "hardsigmoid",
               nn.Sigmoid: "sigmoid", nn.Tanh: "tanh", nn.GELU: "gelu"}
FUNCTIONS = {F.relu: "relu", torch.relu: "relu", F.relu6: "relu6", F.silu: "silu", F.hardswish: "hardswish",
             F.hardsigmoid: "hardsigmoid", torch.sigmoid: "sigmoid", "relu": "relu", "relu_": "relu", "sigmoid": "sigmoid"}
SUMS = (operator.add, torch.add, operator.iadd, "add")
PRODUCTS = (operator.mul, torch.mul, "mul")
PERMUTATIONS = (torch.permute, "permute")


class Exporter(NetworkGraph):
    """Turns a model into the operators of network JSON, node by node."""

    def __init__(self, model, batch, size, keep_dropout):
        graph = Tracer().trace(model)
        super().__init__(model, graph, batch, size, keep_dropout)
        for node in graph.nodes:
            self.visit(node)

    def activation(self, node, kind):
        source, made = self.form(node.args[0])
        name = self.emit(node, "Activation", [source], {"activation": kind})
        if kind in ("relu", "relu6", "hardswish", "hardsigmoid"):
            self.decisions[node] = (kind, name, None)
        return made(name)

    def dropout(self, node, p):
        source, made = self.form(node.args[0])
        return made(self.emit(node, "Dropout", [source], {"p": p}) if self.keep_dropout and p > 0 else source)

    def linear(self, node, x, m, at):
        """A product with the last dimension of node x."""
        params = [at + ".weight"] + ([at + ".bias"] if m.bias is not None else [])
        if x in self.channels:
            options = {"channels_in": m.in_features, "channels_out": m.out_features, "kernel": [1, 1], "stride": [1, 1],
                       "pad": [0, 0], "dilate": [1, 1], "groups": 1, "bias": m.bias is not None}
            name = self.emit(node, "Convolution2D", [self.channels[x]], options, params)
            self.shapes[f"{name}.0"] = [m.out_features, m.in_features, 1, 1]
            return Channels(name)
        name = self.emit(node, "InnerProduct", [self.as_rows(x)],
                         {"inputs": m.in_features, "outputs": m.out_features, "bias": m.bias is not None}, params)
        return name if self.values[x].dim() == 2 else Rows(name)

    def layer_norm(self, node, m):
        x, at = node.args[0], node.target
        if x in self.channels:
            return Channels(self.channel_norm(self.channels[x], m, at))
        source, made = self.form(x)
        return made(self.emit(node, "LayerNorm", [source], {"normalized_shape": list(m.normalized_shape), "eps": m.eps},
                              [at + ".weight", at + ".bias"]))

    def channel_norm(self, x, m, at):
        """LayerNorm of the channels of [N, C, H, W], where they are: transposed, it would take longer."""
        shape = [*m.normalized_shape, 1, 1]
        mean = self.pointwise(at + ".mean", "y0 = mean[1](x0)", [x])
        variance = self.pointwise(at + ".variance", "d = x0 - x1; y0 = mean[1](d * d)", [x, mean])
        affine = [self.parameter(at + ".weight", shape, 1.0), self.parameter(at + ".bias", shape)]
        return self.pointwise(at, "y0 = (x0 - x1) * rsqrt(x2 + p0) * x3 + x4", [x, mean, variance, *affine], scalars=[m.eps])

    def module(self, node):
        m = self.model.get_submodule(node.target)
        at = node.target
        if type(m) in MODULES:
            return MODULES[type(m)](self, node, m)
        for kind, name in ACTIVATIONS.items():
            if type(m) is kind:
                return self.activation(node, name)
        if isinstance(m, (nn.Dropout, nn.Dropout2d)):
            return self.dropout(node, m.p)
        if isinstance(m, (nn.Identity, torchvision.ops.StochasticDepth)):
            return self.same(node.args[0])
        if isinstance(m, nn.LayerNorm):
            return self.layer_norm(node, m)
        if isinstance(m, nn.Linear):
            return self.linear(node, node.args[0], m, at)
        x = self.tensor(node.args[0])
        if isinstance(m, nn.Conv2d):
            options = {"channels_in": m.in_channels, "channels_out": m.out_channels, "kernel": pair(m.kernel_size),
                       "stride": pair(m.stride), "pad": pair(m.padding), "dilate": pair(m.dilation), "groups": m.groups,
                       "bias": m.bias is not None}
            return self.emit(node, "Convolution2D", [x], options, [at + ".weight"] + ([at + ".bias"] if m.bias is not None else []))
        if isinstance(m, nn.BatchNorm2d):
            return self.emit(node, "BatchNorm", [x], {"features": m.num_features, "eps": m.eps, "momentum": m.momentum},
                             [at + ".running_mean", at + ".running_var", at + ".weight", at + ".bias"])
        if isinstance(m, (nn.MaxPool2d, nn.AvgPool2d)):
            return self.pool(node, x, "max" if isinstance(m, nn.MaxPool2d) else "avg", m.kernel_size, m.stride, m.padding,
                             m.ceil_mode, getattr(m, "count_include_pad", False))
        if isinstance(m, nn.AdaptiveAvgPool2d):
            return self.adaptive_pool(node, x, m.output_size)
        if isinstance(m, nn.Flatten):
            return self.emit(node, "Flatten", [x])
        raise NotImplementedError(f"module {type(m).__name__} at {at}")

    def same(self, source):
        """A node's value in the form that it has."""
        if isinstance(self.tensors.get(source), list):
            return self.tensors[source]
        name, made = self.form(source)
        return made(name)

    def pool(self, node, x, mode, kernel, stride, pad, ceil_mode, include_pad):
        options = {"mode": mode, "kernel": pair(kernel), "stride": pair(stride if stride is not None else kernel),
                   "pad": pair(pad), "ceil_mode": bool(ceil_mode)}
        if mode == "avg":
            options["count_include_pad"] = bool(include_pad)
        else:
            self.decisions[node] = ("max_pool", x, options)
        return self.emit(node, "Pooling2D", [x], options)

    def adaptive_pool(self, node, x, size):
        size = pair(size)
        height, width = self.values[node.args[0]].shape[2:]
        if size == [1, 1]:
            return self.emit(node, "GlobalPooling", [x], {"mode": "avg"})
        if height % size[0] or width % size[1]:
            raise NotImplementedError("adaptive pooling to a size that does not divide the image")
        if [height, width] == size:
            return x
        kernel = [height // size[0], width // size[1]]
        return self.pool(node, x, "avg", kernel, kernel, 0, False, False)

    def permute(self, node):
        source = node.args[0]
        dims = node.args[1:] if isinstance(node.args[1], int) else node.args[1]
        order = [d % self.values[source].dim() for d in dims]
        if order == [0, 3, 1, 2] and source in self.channels:
            return str(self.channels[source])
        if order == [0, 2, 3, 1] and self.channels_return(node):
            return Channels(self.tensor(source))
        return self.emit(node, "Transpose", [self.tensor(source)], {"dims": order})

    def channels_return(self, node):
        """Whether all that becomes of [N, H, W, C] keeps its places and is permuted to [N, C, H, W] again."""
        for user in node.users:
            if user.op == "call_module" and isinstance(self.model.get_submodule(user.target), KEEPS_PLACES):
                if not self.channels_return(user):
                    return False
            elif user.target not in PERMUTATIONS or list(user.args[1] if len(user.args) == 2 else user.args[1:]) != [0, 3, 1, 2]:
                return False
        return len(node.users) > 0

    def elementwise(self, node, operation):
        a, b = node.args[:2]
        if not isinstance(b, torch.fx.Node) or not isinstance(a, torch.fx.Node):
            x, factor = (a, b) if isinstance(a, torch.fx.Node) else (b, a)
            source, made = self.form(x)
            return made(self.pointwise(node.name, "y0 = x0 + p0" if operation == "sum" else "y0 = x0 * p0", [source],
                                       scalars=[float(factor)]))
        alike = self.values[a].shape == self.values[b].shape
        if alike and any(self.form(x)[1] is Rows for x in (a, b)):
            return Rows(self.emit(node, "Elementwise", [self.as_rows(a), self.as_rows(b)], {"operation": operation}))
        if alike and all(x in self.channels for x in (a, b)):
            return Channels(self.emit(node, "Elementwise", [self.channels[a], self.channels[b]], {"operation": operation}))
        return self.emit(node, "Elementwise", [self.tensor(a), self.tensor(b)], {"operation": operation})

    def concat(self, node):
        dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
        parts = node.args[0]
        expanded = [part for part in parts if part.target == "expand"]
        if expanded:  # for each sample one of what is the same for all
            other = next(part for part in parts if part not in expanded)
            one = self.emit(None, "Slice", [self.tensor(other)], {"dim": dim, "begin": 0, "end": 1}, name=f"{node.name}.first")
        names = [self.pointwise(part.name, "y0 = x1", [one, self.tensor(part.args[0])]) if part in expanded else self.tensor(part)
                 for part in parts]
        return self.emit(node, "Concat", names, {"dim": dim})

    def item(self, node):
        """x[...] of ranges and single places."""
        source, keys = node.args
        name, single = self.tensor(source), False
        for dim, key in enumerate(keys if isinstance(keys, tuple) else (keys,)):
            if key == slice(None):
                continue
            begin, end = (key, key + 1) if isinstance(key, int) else (key.start or 0, key.stop)
            single = single or isinstance(key, int)
            if key is None or key is Ellipsis or begin < 0 or getattr(key, "step", None) not in (None, 1):
                raise NotImplementedError(f"{node.target} with {keys} at {node.name}")
            end = self.values[source].shape[dim] if end is None else end
            name = self.emit(node, "Slice", [name], {"dim": dim, "begin": begin, "end": end})
        return self.emit(node, "Reshape", [name], {"dims": self.sizes(node, True)}) if single else name

    def function(self, node):
        target = node.target
        source = node.args[0] if node.args else None
        if target is operator.getitem and isinstance(self.tensors.get(source), list):
            return self.tensors[source][node.args[1]]
        if isinstance(self.values[node], torch.Size) or not isinstance(self.values[node], (torch.Tensor, tuple, list)):
            return None  # sizes
        if target in FUNCTIONS:
            return self.activation(node, FUNCTIONS[target])
        if target in SUMS:
            return self.elementwise(node, "sum")
        if target in PRODUCTS:
            return self.elementwise(node, "prod")
        if target in PERMUTATIONS:
            return self.permute(node)
        if target in attention.FUNCTIONS:
            return attention.FUNCTIONS[target](self, node)
        if target is torch.cat:
            return self.concat(node)
        if target == "expand":
            return None  # torch.cat is the one that takes it
        if target is operator.getitem:
            return self.item(node)
        if target in (torch.flatten, "flatten"):
            return self.emit(node, "Flatten", [self.tensor(source)])
        if target in (torch.transpose, "transpose", torch.swapaxes):
            rank = self.values[source].dim()
            order = list(range(rank))
            a, b = node.args[1], node.args[2]
            order[a], order[b] = order[b], order[a]
            return self.emit(node, "Transpose", [self.tensor(source)], {"dims": order})
        if target in ("view", "reshape", torch.reshape):
            return self.emit(node, "Reshape", [self.tensor(source)], {"dims": self.sizes(node, self.has_batch_first(source))})
        if target in ("contiguous",):
            return self.same(source)
        if target in ("chunk", torch.chunk):
            dim = node.args[2] if len(node.args) > 2 else node.kwargs.get("dim", 0)
            names, begin = [], 0
            for part in self.values[node]:
                end = begin + part.shape[dim]
                names.append(self.emit(node, "Slice", [self.tensor(source)], {"dim": dim, "begin": begin, "end": end}))
                begin = end
            return names
        if target in ("mean", torch.mean):
            dims = list(node.args[1])
            return self.emit(node, "Reduction", [self.tensor(source)], {"method": "mean", "dims": dims, "keep_dim": False})
        if target is F.adaptive_avg_pool2d:
            return self.adaptive_pool(node, self.tensor(source), node.args[1])
        if target in (F.avg_pool2d, F.max_pool2d, torch.max_pool2d):
            mode = "avg" if target is F.avg_pool2d else "max"

            def get(i, key, default):
                return node.args[i] if len(node.args) > i else node.kwargs.get(key, default)

            return self.pool(node, self.tensor(source), mode, get(1, "kernel_size", None), get(2, "stride", None),
                             get(3, "padding", 0), node.kwargs.get("ceil_mode", False), node.kwargs.get("count_include_pad", True))
        if target is F.dropout:
            return self.dropout(node, node.kwargs.get("p", 0.5))
        raise NotImplementedError(f"{target} at {node.name}")

    def constant(self, node):
        """A parameter, made when something reads it as a tensor, or a table."""
        if attention.is_table(node.target):
            return
        if node.target.endswith("relative_coords_table"):
            self.tensors[node] = attention.coordinates(self, list(self.values[node].shape))
            return
        users = [user for user in node.users if user.target not in attention.FUNCTIONS or attention.reads_tensor(user, node)]
        if users:
            first = next((value for name, value in FIRST_VALUES.items() if node.target.endswith(name)), 0.0)
            self.tensors[node] = self.parameter(node.target, value=first)

    def visit(self, node):
        if node.op == "placeholder":
            made = "data"
        elif node.op == "get_attr":
            return self.constant(node)
        elif node.op == "call_module":
            made = self.module(node)
        elif node.op in ("call_function", "call_method"):
            made = self.function(node)
        else:
            self.output = self.tensor(node.args[0])
            return
        if made is not None:
            {Rows: self.rows, Channels: self.channels}.get(type(made), self.tensors)[node] = made


KEEPS_PLACES = (nn.LayerNorm, nn.Linear, nn.Dropout, nn.Identity, torchvision.ops.StochasticDepth, *ACTIVATIONS)
# What a Parameter starts from where it is not 0.
FIRST_VALUES = {"layer_scale": 1e-6, "logit_scale": math.log(10)}


def layer_norm_2d(exporter, node, m):
    return exporter.channel_norm(exporter.tensor(node.args[0]), m, node.target)


# Modules that stay leaves, and how they are translated.
MODULES = {torchvision.models.convnext.LayerNorm2d: layer_norm_2d, **attention.MODULES}
