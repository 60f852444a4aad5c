#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports torchvision's networks to ONNX by PyTorch's exporters, and compares dlprim_run's results with PyTorch's.

    compare_onnx.py [NAME ...] [-d DEVICE] [--exporter script|export|both] [--opset N|newest ...] [--dynamic] [--discard]
                    [--folder DIR]

The exporter "script" is the one by TorchScript, "export" the one by torch.export. Without --opset each network is exported
for operator sets 9, 11, 13, 17 and the newest that the exporter knows. --dynamic leaves the batch open. Models and
PyTorch's results are kept in the folder (.cache/onnx); --discard removes each model when it was run. A network agrees
where no element differs by more than 1e-3 of the largest; exit code 1 where one does not. What PyTorch itself cannot
export is listed and counts as neither. A model whose operator set is not the one that was asked for is named with its own:
torch.export's exporter writes the newest form and converts it where that is possible. Needs torch, torchvision, onnx,
onnxscript and h5py.
"""
import argparse
import logging
import sys
import warnings

import onnx_agreement
import torch
import torchvision_net

NETWORKS = [
    "alexnet", "vgg16", "resnet18", "resnext50_32x4d", "wide_resnet50_2", "efficientnet_b0", "efficientnet_b4",
    "regnet_y_400mf",
    "squeezenet1_0", "mobilenet_v2", "densenet121", "googlenet", "inception_v3", "shufflenet_v2_x1_0", "mobilenet_v3_large",
    "mobilenet_v3_small", "mnasnet1_0", "convnext_tiny", "vit_b_16", "swin_t",
]
OPSETS = ["9", "11", "13", "17", "newest"]


def make_model(name):
    """The network with no weight left at zero, as some classifiers begin: a result of zeros would compare nothing."""
    model = torchvision_net.make_model(name).eval()
    for parameter in model.parameters():
        if not parameter.detach().any():
            torch.nn.init.normal_(parameter, std=0.02)
    return model


def newest_opset(exporter):
    constants = torch.onnx._constants
    if exporter == "script":
        return constants.ONNX_TORCHSCRIPT_EXPORTER_MAX_OPSET
    return constants.ONNX_MAX_OPSET


def export(model, images, path, exporter, opset, dynamic):
    """Throws whatever PyTorch does."""
    names = {"input_names": ["x"], "output_names": ["y"], "opset_version": opset}
    if exporter == "script":
        torch.onnx.export(model, images, str(path), dynamo=False, dynamic_axes={"x": {0: "N"}} if dynamic else None, **names)
    else:
        shapes = ({0: torch.export.Dim("N")},) if dynamic else None
        torch.onnx.export(model, (images,), str(path), dynamo=True, verbose=False, dynamic_shapes=shapes, **names)


def reference(name, folder):
    """The model, its images, and the paths of these and of PyTorch's result."""
    model = make_model(name)
    size = torchvision_net.image_size(name)
    torch.manual_seed(7)
    images = torch.randn(2, 3, size, size)
    inputs, outputs = folder / f"{name}.h5", folder / f"{name}-torch.h5"
    onnx_agreement.write_tensor(inputs, "x", images.numpy())
    with torch.no_grad():
        onnx_agreement.write_tensor(outputs, "y", model(images).numpy())
    return model, images, inputs, outputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NETWORKS)
    parser.add_argument("--exporter", choices=("script", "export", "both"), default="both")
    parser.add_argument("--opset", nargs="+", default=OPSETS)
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--discard", action="store_true")
    onnx_agreement.add_options(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch._C._jit_set_onnx_log_output_stream("stderr")  # where the exporter prints graphs that it cannot export
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in options.names:
        model, images, inputs, outputs = reference(name, options.folder)
        for exporter in ("script", "export") if options.exporter == "both" else (options.exporter,):
            newest = newest_opset(exporter)
            for opset in dict.fromkeys(newest if each == "newest" else int(each) for each in options.opset):
                what = f"{name}-{exporter}-{opset}{'-dynamic' if options.dynamic else ''}"
                path = options.folder / f"{what}.onnx"
                try:
                    if not path.exists():
                        export(model, images, path, exporter, opset, options.dynamic)
                except Exception as error:  # noqa: BLE001 - whatever an exporter ends with
                    print(f"{what}: PyTorch does not export it: {torchvision_net.first_line(error)}", flush=True)
                    continue
                if (written := onnx_agreement.opset_of(path)) != opset:
                    what += f" (of opset {written})"
                agrees, how = onnx_agreement.compare(path, options.device, inputs, outputs, options.folder)
                failed += not agrees
                print(f"{what}: {how}{'' if agrees else '  FAILED'}", flush=True)
                if options.discard:
                    onnx_agreement.remove(path)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
