#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rounding errors of each distinct convolution and product of networks, forward and both gradients, beside those of a
device's plain multiply-adds and of PyTorch's float32.

    layer_errors.py [NAME ...] --run build/tools/dlprim_run -d gpu [--torch-device cuda] [--batch 4]

All layers stand beside each other in one network, each with an input, weights and an output gradient of its own. It runs
twice: with the engines that the planner chooses, and without the matrix instructions (DLPRIM_TRAITS="wgmma=0,mma=0"). An
error is against PyTorch's float64, its root mean square over that of the result. Inputs are normal numbers, but for the
networks' first layers behind a ReLU; weights are as He et al. initialise them.

Prints the layers where the planner's engines err more than the plain ones, and a table. Fails (exit status 1) where
an error is above 1e-6 and above that of the plain ones. Needs torch, torchvision, h5py.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import torch
import torch.nn.functional as F
import torchvision_net
from torch import nn

FIVE = ["alexnet", "resnet18", "resnet50", "vgg16", "mobilenet_v2"]
KINDS = {"": "forward", "dx": "data gradient", "dw": "filter gradient"}


def layers_of(names, batch):
    """Distinct layers: (module's options, input shape) -> "network node", the first that has it."""
    layers = {}
    for name in names:
        model = torchvision_net.make_model(name).eval()
        size = torchvision_net.image_size(name)

        def note(module, inputs, _, path):
            if isinstance(module, nn.Linear):
                options = (module.in_features, module.out_features)
            else:
                options = (module.in_channels, module.out_channels, module.kernel_size, module.stride, module.padding,
                           module.dilation, module.groups)
            layers.setdefault((options, (batch, *inputs[0].shape[1:])), f"{name} {path}")

        for path, module in model.named_modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                module.register_forward_hook(lambda *a, path=path: note(*a, path))
        with torch.no_grad():
            model(torch.zeros(1, 3, size, size))
    return layers


def operator_of(options):
    if len(options) == 2:
        return "InnerProduct", {"inputs": options[0], "outputs": options[1], "bias": False}
    channels_in, channels_out, kernel, stride, pad, dilate, groups = options
    return "Convolution2D", {"channels_in": channels_in, "channels_out": channels_out, "kernel": list(kernel), "stride": list(stride),
                             "pad": list(pad), "dilate": list(dilate), "groups": groups, "bias": False}


def compute(options, x, w):
    if len(options) == 2:
        return F.linear(x, w)
    return F.conv2d(x, w, None, *options[3:])


def results_of(options, x, w, dy, dtype, device):
    x, w = (t.to(device, dtype).requires_grad_(True) for t in (x, w))
    y = compute(options, x, w)
    y.backward(dy.to(device, dtype))
    return {"": y.detach().double(), "dx": x.grad.double(), "dw": w.grad.double()}


class Files:
    """The network of all layers, and its tensors."""

    def __init__(self, layers, folder):
        self.folder, self.layers, self.tensors = folder, [], {}
        generator = torch.Generator().manual_seed(1)
        net = {"inputs": [], "outputs": [], "operators": []}
        with h5py.File(folder / "in.h5", "w") as inputs, h5py.File(folder / "weights.h5", "w") as weights, \
                h5py.File(folder / "dy.h5", "w") as gradients:
            for i, ((options, shape), label) in enumerate(layers.items()):
                kind, json_options = operator_of(options)
                x = torch.randn(shape, generator=generator)
                x = x if shape[1] == 3 else x.relu()
                weight = (options[1], options[0]) if len(options) == 2 else (options[1], options[0] // options[6], *options[2])
                w = torch.randn(weight, generator=generator) * math.sqrt(2 / math.prod(weight[1:]))
                dy = torch.randn(compute(options, x.to("meta"), w.to("meta")).shape, generator=generator)
                self.layers.append((options, label, x, w, dy))
                net["inputs"].append({"name": f"x{i}", "shape": list(shape)})
                net["outputs"].append(f"y{i}")
                net["operators"].append({"name": f"layer{i}", "type": kind, "inputs": [f"x{i}"], "outputs": [f"y{i}"],
                                         "options": json_options})
                inputs[f"x{i}"], gradients[f"y{i}"], weights[f"layer{i}.0"] = x.numpy(), dy.numpy(), w.numpy()
        (folder / "net.json").write_text(json.dumps(net))

    def run(self, command, device, traits):
        environment = os.environ | ({"DLPRIM_TRAITS": traits} if traits else {})
        subprocess.run([command, "net.json", "-d", device, "--weights", "weights.h5", "--inputs", "in.h5", "--outputs", "y.h5",
                        "--train", "--output-grads", "dy.h5", "--grads", "g.h5"], check=True, cwd=self.folder, env=environment)
        with h5py.File(self.folder / "y.h5") as y, h5py.File(self.folder / "g.h5") as g:
            return [{"": np.array(y[f"y{i}"]), "dx": np.array(g[f"x{i}"]), "dw": np.array(g[f"layer{i}.0"])}
                    for i in range(len(self.layers))]


def error(value, exact):
    value = torch.as_tensor(value).to(exact.device).double()
    return float((value - exact).norm() / exact.norm())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=FIVE, help="torchvision's names; default: the five of examples/nets")
    parser.add_argument("--run", default="build/tools/dlprim_run")
    parser.add_argument("-d", "--device", default="gpu")
    parser.add_argument("--torch-device", default="cpu")
    parser.add_argument("--batch", type=int, default=4)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    command = str(pathlib.Path(arguments.run).resolve())
    errors, worse, failed = {kind: [] for kind in KINDS}, [], False
    with tempfile.TemporaryDirectory() as folder:
        files = Files(layers_of(arguments.names, arguments.batch), pathlib.Path(folder))
        chosen = files.run(command, arguments.device, "")
        plain = files.run(command, arguments.device, "wgmma=0,mma=0")
        for (options, label, x, w, dy), ours, fma in zip(files.layers, chosen, plain):
            exact = results_of(options, x, w, dy, torch.float64, arguments.torch_device)
            single = results_of(options, x, w, dy, torch.float32, arguments.torch_device)
            for kind in KINDS:
                row = [error(ours[kind], exact[kind]), error(fma[kind], exact[kind]), error(single[kind], exact[kind])]
                errors[kind].append(row)
                if row[0] > row[1]:
                    bad = row[0] > 1e-6
                    failed |= bad
                    worse.append(f"{label}, {KINDS[kind]}: {row[0]:.2e}, plain {row[1]:.2e}{' FAILED' if bad else ''}")
    print(f"{len(files.layers)} layers, batch {arguments.batch}; the planner's engines err more than the plain ones in {len(worse)} "
          f"of {3 * len(files.layers)}:")
    print("".join(f"    {line}\n" for line in worse), end="")
    print("\n| | planner's engines, mean | worst | plain multiply-adds, mean | worst | PyTorch float32, mean | worst |")
    print("|---|" + "---:|" * 6)
    for kind, name in KINDS.items():
        columns = zip(*errors[kind])
        cells = [f"{math.exp(sum(map(math.log, column)) / len(column)):.1e} | {max(column):.1e}" for column in columns]
        print(f"| {name} | " + " | ".join(cells) + " |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
