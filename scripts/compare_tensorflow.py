#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports Keras networks to ONNX by tf2onnx, and compares dlprim_run's results with TensorFlow's.

    compare_tensorflow.py [NAME ...] [-d DEVICE] [--opset N ...] [--folder DIR]

NAME is a network of keras.applications (ResNet50, DenseNet121 and MobileNetV2); its weights are random, those of its batch
normalisations included. Without --opset each network is exported for operator sets 9, 11, 13, 17 and 18. A network agrees
where no score differs by more than 1e-3 of the largest, and where no padding has become an operator of its own: what Keras
pads with zeros in front of a convolution, on one side perhaps, is that convolution's padding. Exit code 1 where one does
not. Models and results are kept in the folder (.cache/onnx). Needs tensorflow, tf2onnx, onnx and h5py.
"""
import argparse
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402 - after the level of what TensorFlow prints
import numpy as np  # noqa: E402
import onnx_agreement  # noqa: E402
import tensorflow  # noqa: E402
import tf2onnx  # noqa: E402

NETWORKS = ["ResNet50", "DenseNet121", "MobileNetV2"]
OPSETS = [9, 11, 13, 17, 18]


def make_model(name):
    """The network without its softmax, whose shares of random scores would all be alike."""
    keras.utils.set_random_seed(7)
    model = getattr(keras.applications, name)(weights=None, classifier_activation=None)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            gamma, beta, mean, variance = layer.get_weights()
            draw = np.random.default_rng(gamma.size)
            layer.set_weights([draw.uniform(0.5, 1.5, gamma.shape), draw.normal(0, 0.2, beta.shape),
                               draw.normal(0, 0.2, mean.shape), draw.uniform(0.5, 1.5, variance.shape)])
    return model


def export(model, images, path, opset):
    """The function is named, so that the model's input and output are "x" and "y"."""
    signature = tensorflow.TensorSpec(images.shape, tensorflow.float32, name="x")

    @tensorflow.function(input_signature=[signature])
    def network(x):
        return tensorflow.identity(model(x, training=False), name="y")

    written, _ = tf2onnx.convert.from_function(network, [signature], opset=opset)
    renamed = {written.graph.input[0].name: "x", written.graph.output[0].name: "y"}
    for node in written.graph.node:
        for names in (node.input, node.output):
            names[:] = [renamed.get(each, each) for each in names]
    written.graph.input[0].name, written.graph.output[0].name = "x", "y"
    path.write_bytes(written.SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NETWORKS)
    parser.add_argument("--opset", type=int, nargs="+", default=OPSETS)
    onnx_agreement.add_options(parser)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in options.names:
        model = make_model(name)
        images = np.random.default_rng(7).standard_normal((2, 224, 224, 3), np.float32)
        inputs, outputs = (pathlib.Path(options.folder, f"{name}-{what}.h5") for what in ("images", "tensorflow"))
        onnx_agreement.write_tensor(inputs, "x", images)
        onnx_agreement.write_tensor(outputs, "y", model(images, training=False).numpy())
        for opset in options.opset:
            path = options.folder / f"{name}-tf2onnx-{opset}.onnx"
            if not path.exists():
                export(model, images, path, opset)
            agrees, how = onnx_agreement.compare(path, options.device, inputs, outputs, options.folder)
            if agrees:
                types = onnx_agreement.operators(path, options.folder)
                agrees = not types["Pad"]
                how += f", {types.total()} operators, {types['Pad']} of them Pad, {types['Transpose']} Transpose"
            failed += not agrees
            print(f"{path.stem}: {how}{'' if agrees else '  FAILED'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
