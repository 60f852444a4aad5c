#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a torchvision classification network's JSON and its weights.

    torchvision_net.py NAME NET.json [WEIGHTS.h5] [--pretrained FILE.pth]

Weights are freshly initialised, as torchvision does it, with a seed; they recognise nothing until they are trained.
--pretrained FILE.pth takes a state_dict that PyTorch saved instead; --pretrained DEFAULT, or a name of torchvision's
weights such as IMAGENET1K_V1, downloads those. StochasticDepth is left out: a training step drops no branches.
compare_networks.py compares such networks with PyTorch. Needs torch, torchvision, h5py.
"""
import argparse
import json
import pathlib
import sys

import h5py
from torchvision_models import NETWORKS, all_networks, first_line, image_size, make_model, torchvision
from torchvision_operators import Exporter

# What other scripts use of torchvision_models.py.
__all__ = ["NETWORKS", "all_networks", "export", "first_line", "image_size", "make_model", "torchvision", "write_json", "write_weights"]


def export(name, batch, loss, keep_dropout, model=None, size=None):
    """The network as a dictionary, and its exporter, which knows what came from where."""
    model = model or make_model(name, device="meta")
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


def write_weights(path, exporter, state):
    with h5py.File(path, "w") as file:
        for name, source in exporter.weights.items():
            value = state[source].detach().float().cpu()
            file.create_dataset(name, data=value.reshape(exporter.shapes.get(name, value.shape)).numpy())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="torchvision's name, such as " + ", ".join(NETWORKS[:5]))
    parser.add_argument("json")
    parser.add_argument("weights", nargs="?")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--no-loss", action="store_true", help="logits alone, without a label input and a loss")
    parser.add_argument("--pretrained", metavar="FILE.pth", help="the weights: a state_dict's file, or a name of torchvision's "
                        "weights, such as DEFAULT, to download")
    arguments = parser.parse_args()
    if arguments.name not in all_networks():
        parser.error(f"torchvision has no classification network '{arguments.name}'; it has {', '.join(all_networks())}")
    if arguments.pretrained and not arguments.weights:
        parser.error("--pretrained wants a file to write the weights to: NAME NET.json WEIGHTS.h5")
    try:
        model = make_model(arguments.name, arguments.pretrained, "cpu" if arguments.weights else "meta")
        net, exporter = export(arguments.name, arguments.batch, not arguments.no_loss, True, model)
    except (ValueError, NotImplementedError) as error:
        sys.exit(f"torchvision_net.py: {arguments.name}: {error}")
    write_json(arguments.json, net)
    if arguments.weights:
        write_weights(arguments.weights, exporter, model.state_dict())
        print(f"wrote {arguments.weights}: {'weights of ' + arguments.pretrained if arguments.pretrained else 'fresh weights'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
