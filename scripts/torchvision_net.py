#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a torchvision classification network's JSON and its freshly initialised weights.

    torchvision_net.py NAME NET.json [WEIGHTS.h5]

compare_networks.py compares such networks with PyTorch. Needs torch, torchvision, h5py.
"""
import argparse
import json
import operator
import pathlib
import sys

import h5py
import torch
import torch.fx

try:
    import torchvision
except RuntimeError:
    # Built for another PyTorch, torchvision lacks its compiled operators. Classification needs none of them, but the
    # import declares shapes for two: those are declared here, and the import is tried again.
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    _library = torch.library.Library("torchvision", "DEF")
    _library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision
from torch import nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

NETWORKS = [
    "alexnet", "resnet18", "resnet50", "vgg16", "mobilenet_v2", "vgg11_bn", "squeezenet1_0", "googlenet",
    "inception_v3", "densenet121", "densenet161", "resnext50_32x4d", "wide_resnet50_2", "mnasnet1_0",
    "shufflenet_v2_x1_0", "mobilenet_v3_small", "mobilenet_v3_large", "efficientnet_b0", "regnet_y_400mf",
]


def make_model(name):
    torch.manual_seed(1)
    options = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options.update(aux_logits=False, init_weights=True)
    return torchvision.models.get_model(name, **options)


def image_size(name):
    return 299 if name == "inception_v3" else 224


def pair(value):
    return [int(v) for v in value] if isinstance(value, (tuple, list)) else [int(value), int(value)]


class Tracer(torch.fx.Tracer):
    """Modules that change nothing in what we compare stay leaves."""

    def is_leaf_module(self, module, qualified_name):
        if isinstance(module, torchvision.ops.StochasticDepth):
            return True
        return super().is_leaf_module(module, qualified_name)


ACTIVATIONS = {nn.ReLU: "relu", nn.ReLU6: "relu6", nn.SiLU: "silu", nn.Hardswish: "hardswish", nn.Hardsigmoid: "hardsigmoid",
               nn.Sigmoid: "sigmoid", nn.Tanh: "tanh", nn.GELU: "gelu"}
FUNCTIONS = {F.relu: "relu", torch.relu: "relu", F.relu6: "relu6", F.silu: "silu", F.hardswish: "hardswish",
             F.hardsigmoid: "hardsigmoid", torch.sigmoid: "sigmoid", "relu": "relu", "relu_": "relu", "sigmoid": "sigmoid"}


class Exporter:
    """Turns a traced module into the operators of network JSON."""

    def __init__(self, model, batch, size, keep_dropout):
        self.model = model
        self.keep_dropout = keep_dropout
        self.operators = []
        self.weights = {}   # parameter name in the file -> state_dict name
        self.decisions = {} # fx node that takes decisions -> (what it is, tensor that shows them, pooling's options)
        self.tensors = {}   # fx node -> tensor name, or a list of them
        self.shapes = {}    # tensor name -> shape
        self.names = set()
        graph = Tracer().trace(model)
        module = self.traced = torch.fx.GraphModule(model, graph)
        self.values = {}
        outer = self

        class Shapes(torch.fx.Interpreter):
            def run_node(self, node):
                value = super().run_node(node)
                outer.values[node] = value
                return value

        with torch.no_grad():
            Shapes(module).run(torch.zeros(batch, 3, size, size))
        for node in graph.nodes:
            self.visit(node)

    def emit(self, node, type_, inputs, options=None, params=(), name=None):
        name = name or str(node.target if node.op == "call_module" else node.name)
        base, k = name, 1
        while name in self.names:
            k += 1
            name = f"{base}_{k}"
        self.names.add(name)
        entry = {"name": name, "type": type_, "inputs": inputs, "outputs": [name]}
        if options:
            entry["options"] = options
        self.operators.append(entry)
        for i, param in enumerate(params):
            self.weights[f"{name}.{i}"] = param
        return name

    def activation(self, node, source, kind):
        name = self.emit(node, "Activation", [source], {"activation": kind})
        if kind in ("relu", "relu6", "hardswish", "hardsigmoid"):
            self.decisions[node] = (kind, name, None)
        return name

    def module(self, node):
        m = self.model.get_submodule(node.target)
        x = self.tensors[node.args[0]]
        at = node.target
        if isinstance(m, nn.Conv2d):
            options = {"channels_in": m.in_channels, "channels_out": m.out_channels, "kernel": pair(m.kernel_size),
                       "stride": pair(m.stride), "pad": pair(m.padding), "dilate": pair(m.dilation), "groups": m.groups,
                       "bias": m.bias is not None}
            return self.emit(node, "Convolution2D", [x], options, [at + ".weight"] + ([at + ".bias"] if m.bias is not None else []))
        if isinstance(m, nn.BatchNorm2d):
            return self.emit(node, "BatchNorm", [x], {"features": m.num_features, "eps": m.eps, "momentum": m.momentum},
                             [at + ".running_mean", at + ".running_var", at + ".weight", at + ".bias"])
        if isinstance(m, nn.Linear):
            return self.emit(node, "InnerProduct", [x], {"inputs": m.in_features, "outputs": m.out_features, "bias": m.bias is not None},
                             [at + ".weight"] + ([at + ".bias"] if m.bias is not None else []))
        if isinstance(m, (nn.MaxPool2d, nn.AvgPool2d)):
            return self.pool(node, x, "max" if isinstance(m, nn.MaxPool2d) else "avg", m.kernel_size, m.stride, m.padding,
                             m.ceil_mode, getattr(m, "count_include_pad", False))
        if isinstance(m, nn.AdaptiveAvgPool2d):
            return self.adaptive_pool(node, x, m.output_size)
        if isinstance(m, (nn.Dropout, nn.Dropout2d)):
            return self.emit(node, "Dropout", [x], {"p": m.p}) if self.keep_dropout and m.p > 0 else x
        if isinstance(m, (nn.Identity, torchvision.ops.StochasticDepth)):
            return x
        if isinstance(m, nn.Flatten):
            return self.emit(node, "Flatten", [x])
        for kind, name in ACTIVATIONS.items():
            if type(m) is kind:
                return self.activation(node, x, name)
        raise NotImplementedError(f"module {type(m).__name__} at {at}")

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

    def reshape(self, node, x):
        shape = list(self.values[node].shape)
        return self.emit(node, "Reshape", [x], {"dims": [0] + shape[1:]})

    def function(self, node):
        target = node.target
        source = node.args[0] if node.args else None
        if source in self.tensors and isinstance(self.tensors[source], list):
            if target is operator.getitem:
                return self.tensors[source][node.args[1]]
        if isinstance(self.values[node], torch.Size) or not isinstance(self.values[node], (torch.Tensor, tuple, list)):
            return None  # sizes
        if target in FUNCTIONS:
            return self.activation(node, self.tensors[source], FUNCTIONS[target])
        if target in (operator.add, torch.add, operator.iadd, "add"):
            return self.emit(node, "Elementwise", [self.tensors[a] for a in node.args[:2]], {"operation": "sum"})
        if target in (operator.mul, torch.mul, "mul"):
            return self.emit(node, "Elementwise", [self.tensors[a] for a in node.args[:2]], {"operation": "prod"})
        if target is torch.cat:
            dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", 0)
            return self.emit(node, "Concat", [self.tensors[a] for a in source], {"dim": dim})
        if target in (torch.flatten, "flatten"):
            return self.emit(node, "Flatten", [self.tensors[source]])
        if target in (torch.transpose, "transpose"):
            rank = self.values[source].dim()
            order = list(range(rank))
            a, b = node.args[1], node.args[2]
            order[a], order[b] = order[b], order[a]
            return self.emit(node, "Transpose", [self.tensors[source]], {"dims": order})
        if target in ("view", "reshape", torch.reshape):
            return self.reshape(node, self.tensors[source])
        if target in ("contiguous",):
            return self.tensors[source]
        if target in ("chunk", torch.chunk):
            dim = node.args[2] if len(node.args) > 2 else node.kwargs.get("dim", 0)
            names, begin = [], 0
            for part in self.values[node]:
                end = begin + part.shape[dim]
                names.append(self.emit(node, "Slice", [self.tensors[source]], {"dim": dim, "begin": begin, "end": end}))
                begin = end
            return names
        if target in ("mean", torch.mean):
            dims = list(node.args[1])
            return self.emit(node, "Reduction", [self.tensors[source]], {"method": "mean", "dims": dims, "keep_dim": False})
        if target is F.adaptive_avg_pool2d:
            return self.adaptive_pool(node, self.tensors[source], node.args[1])
        if target in (F.avg_pool2d, F.max_pool2d, torch.max_pool2d):
            mode = "avg" if target is F.avg_pool2d else "max"
            get = lambda i, key, default: node.args[i] if len(node.args) > i else node.kwargs.get(key, default)
            return self.pool(node, self.tensors[source], mode, get(1, "kernel_size", None), get(2, "stride", None),
                             get(3, "padding", 0), node.kwargs.get("ceil_mode", False), node.kwargs.get("count_include_pad", True))
        if target is F.dropout:
            p = node.kwargs.get("p", 0.5)
            return self.emit(node, "Dropout", [self.tensors[source]], {"p": p}) if self.keep_dropout and p > 0 else self.tensors[source]
        raise NotImplementedError(f"{target} at {node.name}")

    def visit(self, node):
        if node.op == "placeholder":
            self.tensors[node] = "data"
        elif node.op == "call_module":
            self.tensors[node] = self.module(node)
        elif node.op in ("call_function", "call_method"):
            self.tensors[node] = self.function(node)
        elif node.op == "output":
            self.output = self.tensors[node.args[0]]


def export(name, batch, loss, keep_dropout, model=None, size=None):
    """The network as a dictionary, and its exporter, which knows what came from where."""
    model = model or make_model(name)
    size = size or image_size(name)
    model.eval()
    exporter = Exporter(model, batch, size, keep_dropout)
    net = {"inputs": [{"name": "data", "shape": [batch, 3, size, size]}], "outputs": [exporter.output], "operators": exporter.operators}
    if loss:
        net["inputs"].append({"name": "label", "shape": [batch], "dtype": "int"})
        net["outputs"].append("loss")
        net["operators"].append({"name": "loss", "type": "SoftmaxWithLoss", "inputs": [exporter.output, "label"], "outputs": ["loss"]})
    return net, exporter


def write_json(path, net):
    """One operator a line: long enough to hold it, short enough to read."""
    def line(items):
        return ",\n".join("    " + json.dumps(item) for item in items)
    text = '{\n  "inputs": [\n' + line(net["inputs"]) + '\n  ],\n  "outputs": ' + json.dumps(net["outputs"]) + \
           ',\n  "operators": [\n' + line(net["operators"]) + "\n  ]\n}\n"
    pathlib.Path(path).write_text(text)


def write_weights(path, weights, state):
    with h5py.File(path, "w") as file:
        for name, source in weights.items():
            file.create_dataset(name, data=state[source].detach().float().cpu().numpy())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="torchvision's name, such as " + ", ".join(NETWORKS[:5]))
    parser.add_argument("json")
    parser.add_argument("weights", nargs="?")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--no-loss", action="store_true", help="logits alone, without a label input and a loss")
    arguments = parser.parse_args()
    model = make_model(arguments.name)
    net, exporter = export(arguments.name, arguments.batch, not arguments.no_loss, True, model)
    write_json(arguments.json, net)
    if arguments.weights:
        write_weights(arguments.weights, exporter.weights, model.state_dict())
    return 0


if __name__ == "__main__":
    sys.exit(main())
