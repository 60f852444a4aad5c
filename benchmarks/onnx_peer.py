#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One library that runs one model on the processor, in a process of its own. benchmarks/onnx.py starts it.

    onnx_peer.py LIBRARY MODEL INPUTS.npz [--threads N] [-d DEVICE]

LIBRARY is dlprim, dlprim-net (a dlprim.Net, of a model or of JSON), onnxruntime or openvino. It prints a line when it
is ready, and then answers lines of its input: a number N by the times of N runs in ms, as JSON; a path by writing the
outputs there (.npz). Inputs and outputs lie in the host's memory, so that copies count for all.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy as np

# benchmarks/onnx.py must not stand for the package onnx.
sys.path[:] = [path for path in sys.path if pathlib.Path(path).resolve() != pathlib.Path(__file__).resolve().parent]


def dlprim_session(model, inputs, options):
    import dlprim

    session = dlprim.ONNXSession(dlprim.Context(options.device), model)
    return lambda: list(session.run(inputs).values())


def dlprim_net(model, inputs, options):
    import dlprim

    context = dlprim.Context(options.device)
    shapes = {name: array.shape for name, array in inputs.items()}
    if model.endswith(".onnx"):
        net = dlprim.Net.from_onnx(context, model, input_shapes=shapes)
        named = inputs
    else:
        (array,) = inputs.values()
        net = dlprim.Net(context, model, "inference", batch=array.shape[0])
        net.initialize()
        named = None
    return lambda: [y.numpy() for y in (net.forward(**named) if named else net.forward(array)).values()]


def onnx_runtime(model, inputs, options):
    import onnxruntime

    how = onnxruntime.SessionOptions()
    how.intra_op_num_threads, how.inter_op_num_threads, how.log_severity_level = options.threads, 1, 3
    session = onnxruntime.InferenceSession(model, how, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def openvino(model, inputs, options):
    import openvino

    core = openvino.Core()
    read = core.read_model(model)
    read.reshape({name: list(array.shape) for name, array in inputs.items()})
    how = {"INFERENCE_NUM_THREADS": options.threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    request = core.compile_model(read, "CPU", how).create_infer_request()
    return lambda: [request.infer(inputs)[output] for output in request.model_outputs]


LIBRARIES = {"dlprim": dlprim_session, "dlprim-net": dlprim_net, "onnxruntime": onnx_runtime, "openvino": openvino}


def timed(run, count):
    times = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("model")
    parser.add_argument("inputs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-d", "--device", default="opencl")
    options = parser.parse_args()
    inputs = dict(np.load(options.inputs))
    run = LIBRARIES[options.library](options.model, inputs, options)
    run()
    print("ready", flush=True)
    for line in sys.stdin:
        text = line.strip()
        if text.isdigit():
            print(json.dumps(timed(run, int(text))), flush=True)
        else:
            np.savez(text, *[np.asarray(y) for y in run()])
            print("written", flush=True)


if __name__ == "__main__":
    main()
