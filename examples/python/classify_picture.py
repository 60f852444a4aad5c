#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says what a picture shows, with a network of torchvision or timm: prints the five likeliest classes.

    classify_picture.py dog.jpg --model resnet18 --weights resnet18.safetensors --classes imagenet_classes.txt
    classify_picture.py dog.jpg --model mobilenet_v2 --weights mobilenet_v2-7ebf99e0.pth

resnet18, resnet34 and resnet50 are built here with dlprim.nn, and their parameters are called as torchvision and timm
call them. Any other model of torchvision's is translated by scripts/torchvision_net.py, which needs PyTorch and
torchvision. Weights come from a file: .safetensors, .pth or .pt (which need PyTorch), or .h5 as the library writes
them. https://download.pytorch.org/models/resnet18-f37072fd.pth is torchvision's file of resnet18; timm's are on its
model pages. Without a file weights are random, and so is the answer.

Needs numpy and Pillow.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
from typing import Any

import dlprim
import numpy as np
from dlprim import nn
from PIL import Image

# Of ImageNet's pictures, by colour; what torchvision's and most of timm's models were trained with.
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
RESNETS = {"resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3), "resnet50": (3, 4, 6, 3)}


def load_picture(path: pathlib.Path, size: int) -> np.ndarray:
    """A picture as [1, 3, size, size]: its shorter side scaled to 8/7 of the size, then the middle cut out."""
    with Image.open(path) as file:
        picture = file.convert("RGB")
    scale = size * 8 / 7 / min(picture.size)
    width, height = (max(size, round(side * scale)) for side in picture.size)
    picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - size) // 2, (height - size) // 2
    picture = picture.crop((left, top, left + size, top + size))
    pixels = (np.asarray(picture, np.float32) / 255 - MEAN) / DEVIATION
    return pixels.transpose(2, 0, 1)[np.newaxis]


def convolution(x: nn.Symbol, name: str, norm: str, channels: int, kernel: int, stride: int = 1) -> nn.Symbol:
    """A convolution and its batch norm, with parameters called as in PyTorch's state_dict."""
    y = nn.Conv2d(
        channels, kernel, stride=stride, padding=kernel // 2, bias=False, name=name, params=[f"{name}.weight"]
    )(x)
    parts = ("running_mean", "running_var", "weight", "bias")
    return nn.BatchNorm(name=norm, params=[f"{norm}.{part}" for part in parts])(y)


def block(x: nn.Symbol, name: str, channels: int, stride: int, bottleneck: bool) -> nn.Symbol:
    """Two or three convolutions and what goes around them."""
    y, out = x, channels * 4 if bottleneck else channels
    plan = [(channels, 1, 1), (channels, 3, stride), (out, 1, 1)] if bottleneck else [(out, 3, stride), (out, 3, 1)]
    for i, (width, kernel, step) in enumerate(plan, 1):
        y = convolution(y, f"{name}.conv{i}", f"{name}.bn{i}", width, kernel, step)
        if i < len(plan):
            y = nn.relu(y)
    if x.shape != y.shape:
        x = convolution(x, f"{name}.downsample.0", f"{name}.downsample.1", out, 1, stride)
    return nn.add(y, x, activation="relu")


def resnet(name: str, size: int, classes: int = 1000) -> nn.Model:
    x = nn.Input("data", (1, 3, size, size))
    y = nn.max_pool2d(nn.relu(convolution(x, "conv1", "bn1", 64, 7, 2)), 3, stride=2, padding=1)
    for stage, blocks in enumerate(RESNETS[name]):
        for i in range(blocks):
            stride = 2 if stage > 0 and i == 0 else 1
            y = block(y, f"layer{stage + 1}.{i}", 64 << stage, stride, bottleneck=name == "resnet50")
    y = nn.flatten(nn.global_avg_pool2d(y))
    return nn.Model(x, {"scores": nn.Linear(classes, name="fc", params=["fc.weight", "fc.bias"])(y)}, name=name)


def torchvision_network(name: str, size: int) -> tuple[dict[str, Any], dict[str, str]]:
    """The JSON of a network of torchvision's, and the names that PyTorch has for its parameters."""
    sys.path.insert(0, str(SCRIPTS))
    import torchvision_net

    if name not in torchvision_net.all_networks():
        raise ValueError(f"torchvision has no model '{name}' for classification")
    model = torchvision_net.make_model(name, device="meta")
    network, exporter = torchvision_net.export(name, 1, False, False, model, size)
    return network, exporter.weights


def read_weights(path: pathlib.Path) -> dict[str, Any]:
    """The tensors of a file of PyTorch's or a .safetensors file, by name."""
    if path.suffix == ".safetensors":
        return dlprim.weights.read_safetensors(path)
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception as error:  # whatever such a file makes PyTorch raise
        raise ValueError(f"'{path}' is no file of tensors that PyTorch saved") from error
    return dict(state.get("state_dict", state))


def make_net(context: dlprim.Context, arguments: argparse.Namespace) -> dlprim.Net:
    """The network with its weights."""
    if arguments.model in RESNETS:
        net = resnet(arguments.model, arguments.size).build(context, mode="inference")
        names = {name: name for name in net.param_names}
    else:
        network, names = torchvision_network(arguments.model, arguments.size)
        net = dlprim.Net.from_json(context, network, mode="inference")
    if arguments.weights is None:
        print("no --weights given: they are random, and so is the answer")
        net.initialize()
    elif arguments.weights.suffix == ".h5":
        net.load_weights(arguments.weights)
    else:
        matches = dlprim.weights.load(net, read_weights(arguments.weights), names)
        print(f"{len(matches)} parameters from {arguments.weights}")
    return net


def positive(text: str) -> int:
    """An argument that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("-d", "--device", default="", help="such as cpu, gpu or 0:0 (default: the best OpenCL device)")
    parser.add_argument("--model", default="resnet18", help="torchvision's name of it (default: %(default)s)")
    parser.add_argument("--weights", type=pathlib.Path, help=".safetensors, .pth, .pt or .h5")
    parser.add_argument("--classes", type=pathlib.Path, help="text file with the name of a class a line")
    parser.add_argument("--size", type=positive, default=224, help="of what the network sees (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    picture = load_picture(arguments.picture, arguments.size)
    names = arguments.classes.read_text().splitlines() if arguments.classes else []

    context = dlprim.Context(arguments.device)
    print(f"on {context.info}")
    net = make_net(context, arguments)
    (scores,) = net.run({net.input_names[0]: picture}).values()
    exponentials = np.exp(scores[0] - scores[0].max())
    shares = exponentials / exponentials.sum()
    for i in np.argsort(-shares, kind="stable")[:5]:
        print(f"{shares[i]:6.1%}  {names[i] if i < len(names) else f'class {i}'}")


if __name__ == "__main__":
    try:
        main()
    except (dlprim.DlprimError, OSError, ValueError, ImportError) as error:
        sys.exit(f"classify_picture.py: {error}")
