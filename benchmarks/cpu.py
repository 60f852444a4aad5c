#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times networks on this machine's processor, side by side: dlprim, PyTorch, ONNX Runtime, OpenVINO.

    benchmarks/cpu.py [NET ...] [-d opencl] [--threads 2] [--peers torch,onnxruntime,openvino]

Inference at batch 1 and 16 and a training step with Adam at batch 16 (PyTorch alone trains), fp32. PyTorch runs in
NCHW and in channels_last, and its better time counts. Prints tables in markdown. Peers that are not installed are
left out; onnxruntime and openvino read an ONNX file that PyTorch writes. Run it on a machine that does nothing else.
"""
import argparse
import os
import pathlib
import platform
import tempfile

import common


def torch_ms(arguments, net, batch, training):
    times = [common.median_ms(common.torch_batch(net, batch, training, "cpu", channels_last), arguments.iterations, arguments.warmup)
             for channels_last in (False, True)]
    return min(times)


def export_onnx(net, batch, path):
    import torch
    from torchvision_net import image_size, make_model
    size = image_size(net)
    torch.onnx.export(make_model(net).eval(), torch.zeros(batch, 3, size, size), str(path), dynamo=False, input_names=["data"])


def onnx_ms(arguments, net, batch, prepare):
    """prepare(path) returns a function of the input that runs the network."""
    import numpy
    from torchvision_net import image_size
    size = image_size(net)
    x = numpy.random.default_rng(1).standard_normal((batch, 3, size, size), dtype=numpy.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "net.onnx"
        export_onnx(net, batch, path)
        infer = prepare(path)
    return common.median_ms(lambda: infer(x), arguments.iterations, arguments.warmup)


def with_onnxruntime(threads):
    def prepare(path):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return lambda x: session.run(None, {"data": x})
    return prepare


def with_openvino(threads):
    def prepare(path):
        import openvino
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
        model = openvino.Core().compile_model(str(path), "CPU", settings)
        request = model.create_infer_request()
        return lambda x: request.infer({0: x})
    return prepare


def installed(peer):
    try:
        return __import__(peer).__version__
    except ImportError:
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", nargs="*", default=common.NETS)
    parser.add_argument("--benchmark", default=str(common.ROOT / "build/tools/dlprim_benchmark"), help="dlprim's command")
    parser.add_argument("-d", "--device", default="opencl", help="dlprim's device; cpu is the host without OpenCL")
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 16], help="of inference")
    parser.add_argument("--train-batch", type=int, default=16, help="0: no training")
    parser.add_argument("--peers", default="torch,onnxruntime,openvino")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-i", "--iterations", type=int, default=10)
    parser.add_argument("-w", "--warmup", type=int, default=3)
    arguments = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT", "DLPRIM_THREADS"):
        os.environ[variable] = str(arguments.threads)
    versions = {peer: installed(peer) for peer in arguments.peers.split(",") if peer}
    peers = [peer for peer, version in versions.items() if version]
    if "torch" in peers:
        import torch
        torch.set_num_threads(arguments.threads)
    ways = {"torch": torch_ms,
            "onnxruntime": lambda a, net, batch, _: onnx_ms(a, net, batch, with_onnxruntime(a.threads)),
            "openvino": lambda a, net, batch, _: onnx_ms(a, net, batch, with_openvino(a.threads))}
    machine = f"{common.processor()}, {arguments.threads} threads, {platform.system()}; fp32; dlprim's device: {arguments.device}. " + \
        ", ".join([common.library_version(arguments.benchmark)] + [f"{peer} {versions[peer]}" for peer in peers])
    print(machine + ".\n", flush=True)

    def table(head, batch, training, with_peers):
        rows = common.Table(["dlprim"] + with_peers)
        for net in arguments.nets:
            times = {"dlprim": common.attempt(f"dlprim {net}", lambda: common.dlprim_ms(
                arguments.benchmark, arguments.device, net, batch, training, arguments.iterations, arguments.warmup))}
            for peer in with_peers:
                times[peer] = common.attempt(f"{peer} {net}", lambda: ways[peer](arguments, net, batch, training))
            rows.add(f"{net}, batch {batch}", times)
        rows.print(head)
        print(flush=True)

    for batch in arguments.batches:
        table(f"Inference, batch {batch}", batch, False, peers)
    if arguments.train_batch > 0:
        table(f"Training step with Adam, batch {arguments.train_batch}", arguments.train_batch, True,
              [peer for peer in peers if peer == "torch"])


if __name__ == "__main__":
    main()
