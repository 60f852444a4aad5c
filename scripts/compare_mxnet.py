#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes networks of MXNet's model zoo to ONNX as MXNet's exporter does, and compares dlprim_run with ONNX Runtime.

    compare_mxnet.py [NAME ...] [-d DEVICE] [--folder DIR]

NAME is vgg11_bn, alexnet, mobilenetv2_0.25, mobilenet0.25, densenet121, resnet18_v1 or squeezenet1.0. MXNet is no longer
developed and does not install beside a present NumPy, so the models are written here, node by node, in two forms:

    8    mxnet.contrib.onnx of MXNet 1.5: Dropout with its ratio, Clip with attributes, a pooling that rounds up as padding behind
    13   mxnet.onnx of MXNet 1.9: Dropout as Identity, Clip with inputs, ceil_mode, batches of any size

In both every parameter is an input with an initialiser whose numbers are not raw, and a Gemm follows a Flatten of its own.
Weights are random. A network agrees where no score differs by more than 1e-3 of the largest; exit code 1 where one does
not. Needs onnx, onnxruntime and h5py.
"""
import argparse
import pathlib
import sys

import numpy as np
import onnx
import onnx_agreement
import onnxruntime
from onnx import TensorProto, helper

FORMS = [8, 13]


class Exporter:
    """A network node by node, with names as gluon gives them: each method adds a layer and returns its output's name."""

    def __init__(self, prefix, form, size):
        self.prefix, self.form = prefix, form
        self.nodes, self.inputs, self.initializers, self.counts = [], [], [], {}
        self.draw = np.random.default_rng(7)
        self.shapes = {"data": (2, 3, size, size)}
        batch = None if form >= 12 else 2
        self.inputs.append(helper.make_tensor_value_info("data", TensorProto.FLOAT, [batch, 3, size, size]))

    def name(self, kind):
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        return f"{self.prefix}_{kind}{number}"

    def parameter(self, name, values):
        values = np.asarray(values, np.float32)
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, values.shape))
        self.initializers.append(helper.make_tensor(name, TensorProto.FLOAT, values.shape, values.ravel().tolist()))
        return name

    def add(self, kind, inputs, name, shape, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        self.shapes[name] = tuple(shape)
        return name

    def conv(self, x, channels, kernel, stride=1, pad=0, groups=1, bias=False):
        name = self.name("conv")
        n, c, *size = self.shapes[x]
        scale = np.sqrt(2 / (c // groups * kernel * kernel))
        weight = self.draw.normal(0, scale, (channels, c // groups, kernel, kernel))
        inputs = [x, self.parameter(name + "_weight", weight)]
        if bias:
            inputs.append(self.parameter(name + "_bias", self.draw.normal(0, 0.1, channels)))
        shape = [n, channels, *((each + 2 * pad - kernel) // stride + 1 for each in size)]
        return self.add("Conv", inputs, name + "_fwd", shape, kernel_shape=(kernel, kernel), strides=(stride, stride),
                        dilations=(1, 1), pads=(pad,) * 4, group=groups)

    def norm(self, x):
        name, channels = self.name("batchnorm"), self.shapes[x][1]
        values = [("gamma", self.draw.uniform(0.5, 1.5, channels)), ("beta", self.draw.normal(0, 0.2, channels)),
                  ("running_mean", self.draw.normal(0, 0.2, channels)),
                  ("running_var", self.draw.uniform(0.5, 1.5, channels))]
        inputs = [x, *(self.parameter(f"{name}_{what}", each) for what, each in values)]
        return self.add("BatchNormalization", inputs, name + "_fwd", self.shapes[x], epsilon=1e-5, momentum=0.9)

    def relu(self, x):
        return self.add("Relu", [x], self.name("relu") + "_fwd", self.shapes[x])

    def relu6(self, x):
        name = self.name("relu6") + "_clip0"
        if self.form < 11:
            return self.add("Clip", [x], name, self.shapes[x], min=0.0, max=6.0)
        bounds = [name + "_min", name + "_max"]
        for bound, value in zip(bounds, (0.0, 6.0)):
            self.initializers.append(helper.make_tensor(bound, TensorProto.FLOAT, (), [value]))
        return self.add("Clip", [x, *bounds], name, self.shapes[x])

    def pool(self, x, kind, kernel, stride, pad=0, up=False):
        n, c, *size = self.shapes[x]
        room = [each + 2 * pad - kernel for each in size]
        sizes = [(-(-each // stride) if up else each // stride) + 1 for each in room]
        behind = [pad + ((-each) % stride if up and self.form < 12 else 0) for each in room]
        attributes = {"kernel_shape": (kernel, kernel), "strides": (stride, stride), "pads": (pad, pad, *behind)}
        if self.form >= 12:
            attributes["ceil_mode"] = int(up)
        if kind == "AveragePool":
            attributes["count_include_pad"] = 1
        return self.add(kind, [x], self.name("pool") + "_fwd", [n, c, *sizes], **attributes)

    def mean(self, x):
        return self.add("GlobalAveragePool", [x], self.name("pool") + "_fwd", [*self.shapes[x][:2], 1, 1])

    def flatten(self, x, name=None):
        n, *rest = self.shapes[x]
        return self.add("Flatten", [x], name or self.name("flatten") + "_flatten0", [n, int(np.prod(rest))])

    def dense(self, x, columns):
        name = self.name("dense")
        x = self.flatten(x, name + ("_fwd_data_flattened" if self.form >= 12 else "_fwd_flatten"))
        n, rows = self.shapes[x]
        weight = self.draw.normal(0, np.sqrt(2 / rows), (columns, rows))
        inputs = [x, self.parameter(name + "_weight", weight),
                  self.parameter(name + "_bias", self.draw.normal(0, 0.1, columns))]
        return self.add("Gemm", inputs, name + "_fwd", [n, columns], alpha=1.0, beta=1.0, transA=0, transB=1)

    def dropout(self, x):
        name = self.name("dropout") + "_fwd"
        if self.form >= 12:
            return self.add("Identity", [x], name, self.shapes[x])
        return self.add("Dropout", [x], name, self.shapes[x], ratio=0.5)

    def sum(self, x, y):
        return self.add("Add", [x, y], self.name("plus"), self.shapes[x])

    def concat(self, values):
        n, _, *size = self.shapes[values[0]]
        channels = sum(self.shapes[each][1] for each in values)
        return self.add("Concat", values, self.name("concat"), [n, channels, *size], axis=1)

    def model(self, y):
        shape = [None] * len(self.shapes[y]) if self.form >= 12 else self.shapes[y]
        output = helper.make_tensor_value_info(y, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "mxnet_converted_model", self.inputs, [output], self.initializers)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.form)], ir_version=8 if self.form >= 12 else 3)
        onnx.checker.check_model(made)
        return made


def alexnet(net):
    x = net.relu(net.conv("data", 64, 11, 4, 2, bias=True))
    x = net.pool(x, "MaxPool", 3, 2)
    x = net.relu(net.conv(x, 192, 5, 1, 2, bias=True))
    x = net.pool(x, "MaxPool", 3, 2)
    for channels in (384, 256, 256):
        x = net.relu(net.conv(x, channels, 3, 1, 1, bias=True))
    x = net.flatten(net.pool(x, "MaxPool", 3, 2))
    for _ in range(2):
        x = net.dropout(net.relu(net.dense(x, 4096)))
    return net.dense(x, 1000)


def vgg11_bn(net):
    x = "data"
    for layers, channels in ((1, 64), (1, 128), (2, 256), (2, 512), (2, 512)):
        for _ in range(layers):
            x = net.relu(net.norm(net.conv(x, channels, 3, 1, 1, bias=True)))
        x = net.pool(x, "MaxPool", 2, 2)
    for _ in range(2):
        x = net.dropout(net.relu(net.dense(x, 4096)))
    return net.dense(x, 1000)


def resnet18_v1(net):
    x = net.pool(net.relu(net.norm(net.conv("data", 64, 7, 2, 3))), "MaxPool", 3, 2, 1)
    for stage, channels in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = net.relu(net.norm(net.conv(x, channels, 3, stride, 1)))
            y = net.norm(net.conv(y, channels, 3, 1, 1))
            if stride == 2:
                x = net.norm(net.conv(x, channels, 1, stride))
            x = net.relu(net.sum(y, x))
    return net.dense(net.mean(x), 1000)


def squeezenet(net):
    def fire(x, squeezed, expanded):
        x = net.relu(net.conv(x, squeezed, 1, bias=True))
        return net.concat([net.relu(net.conv(x, expanded, 1, bias=True)), net.relu(net.conv(x, expanded, 3, 1, 1, bias=True))])

    x = net.relu(net.conv("data", 96, 7, 2, bias=True))
    for fires in ((16, 16, 32), (32, 48, 48, 64), (64,)):
        x = net.pool(x, "MaxPool", 3, 2, up=True)
        for squeezed in fires:
            x = fire(x, squeezed, squeezed * 4)
    x = net.relu(net.conv(net.dropout(x), 1000, 1, bias=True))
    return net.flatten(net.pool(x, "AveragePool", 13, 13))


def mobilenet(net):
    x = net.relu(net.norm(net.conv("data", 8, 3, 2, 1)))
    widths = [64, 128, 128, 256, 256] + [512] * 6 + [1024] * 2
    for channels, stride in zip(widths, [1, 2] * 3 + [1] * 5 + [2, 1]):
        before = net.shapes[x][1]
        x = net.relu(net.norm(net.conv(x, before, 3, stride, 1, groups=before)))
        x = net.relu(net.norm(net.conv(x, channels // 4, 1)))
    return net.dense(net.flatten(net.mean(x)), 1000)


def mobilenetv2(net):
    x = net.relu6(net.norm(net.conv("data", 8, 3, 2, 1)))
    widths = [16] + [24] * 2 + [32] * 3 + [64] * 4 + [96] * 3 + [160] * 3 + [320]
    strides = [1, 2] * 2 + [1, 1, 2] + [1] * 6 + [2] + [1] * 3
    for number, (width, stride) in enumerate(zip(widths, strides)):
        before, channels = net.shapes[x][1], width // 4
        middle = before * (6 if number else 1)
        y = net.relu6(net.norm(net.conv(x, middle, 1)))
        y = net.relu6(net.norm(net.conv(y, middle, 3, stride, 1, groups=middle)))
        y = net.norm(net.conv(y, channels, 1))
        x = net.sum(y, x) if stride == 1 and before == channels else y
    x = net.relu6(net.norm(net.conv(x, 1280, 1)))
    return net.flatten(net.conv(net.mean(x), 1000, 1))


def densenet121(net):
    x = net.pool(net.relu(net.norm(net.conv("data", 64, 7, 2, 3))), "MaxPool", 3, 2, 1)
    for number, layers in enumerate((6, 12, 24, 16)):
        if number:
            x = net.conv(net.relu(net.norm(x)), net.shapes[x][1] // 2, 1)
            x = net.pool(x, "AveragePool", 2, 2)
        for _ in range(layers):
            y = net.conv(net.relu(net.norm(x)), 128, 1)
            x = net.concat([x, net.conv(net.relu(net.norm(y)), 32, 3, 1, 1)])
    x = net.pool(net.relu(net.norm(x)), "AveragePool", 7, 7)
    return net.dense(net.flatten(x), 1000)


NETWORKS = {"vgg11_bn": vgg11_bn, "alexnet": alexnet, "mobilenetv2_0.25": mobilenetv2, "mobilenet0.25": mobilenet,
            "densenet121": densenet121, "resnet18_v1": resnet18_v1, "squeezenet1.0": squeezenet}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(NETWORKS))
    onnx_agreement.add_options(parser)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3  # it warns of each parameter that is an input
    failed = 0
    for name in options.names:
        for form in FORMS:
            net = Exporter(name.split("_")[0].replace(".", ""), form, 224)
            y = NETWORKS[name](net)
            path = options.folder / f"{name}-mxnet-{form}.onnx"
            path.write_bytes(net.model(y).SerializeToString())
            images = np.random.default_rng(9).standard_normal((2, 3, 224, 224), np.float32)
            session = onnxruntime.InferenceSession(str(path), quiet, providers=["CPUExecutionProvider"])
            inputs, outputs = (pathlib.Path(options.folder, f"{path.stem}-{what}.h5") for what in ("images", "onnxruntime"))
            onnx_agreement.write_tensor(inputs, "data", images)
            onnx_agreement.write_tensor(outputs, y, session.run([y], {"data": images})[0])
            agrees, how = onnx_agreement.compare(path, options.device, inputs, outputs, options.folder, y)
            failed += not agrees
            print(f"{path.stem}: {how}{'' if agrees else '  FAILED'}", flush=True)
            for file in (path, inputs, outputs):
                file.unlink()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
