#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One library's time and memory on one network, on the processor, in a process of its own. benchmarks/cpu.py starts it.

    cpu_peer.py prepare NET FOLDER --for onnxruntime,ncnn [--batch N] [--size N]
    cpu_peer.py PEER NET FOLDER [--batch N] [--size N] [--training] [--threads N] [-i N] [-w N]

`prepare` writes into FOLDER what the others read: the network as files, an input and PyTorch's output for it. It runs
apart, because a process that has converted a network has memory to give to whoever measures memory in it.
A PEER is torch, torch_channels_last, onnxruntime, openvino or ncnn. It prints a line of JSON: `ms`, the median of a
batch; `mib`, the growth of resident memory from before the network and its input were there to the most there was
while batches ran, without mapped files (pages of the libraries' code that a first batch touches; no peer maps its
weights here); `resident_mib`, with them; `load_mib`, as `mib`, while the network was loaded; `settings`, as the library
reports them. A library whose output is not PyTorch's ends with an error.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import common

TOLERANCE = 1e-3  # of the largest output


class Memory:
    """Growth of this process's resident memory, in MiB; None where the system does not tell."""

    def __init__(self):
        self.known = self.forget_peak()
        if self.known:
            self.resident, self.files = self.status("VmRSS"), self.status("RssFile")
            self.known = self.files is not None

    @staticmethod
    def status(field):
        for line in open("/proc/self/status"):
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
        return None

    @staticmethod
    def forget_peak():
        """Sets VmHWM to what is resident now. False where the system does not let us."""
        try:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
            return True
        except OSError:
            return False

    def peak(self):
        """The most since the last call, with mapped files and without."""
        if not self.known:
            return None, None
        growth = self.status("VmHWM") - self.resident
        files = self.status("RssFile") - self.files
        self.forget_peak()
        return growth, growth - files


def prepare(arguments):
    import numpy
    import torch
    from torchvision_net import export, make_model, write_json
    folder, wanted = arguments.folder, arguments.readers.split(",")
    model = make_model(arguments.net).eval()
    size = common.image_size(arguments.net, arguments.size)
    x = torch.randn(arguments.batch, 3, size, size, generator=torch.Generator().manual_seed(1))
    if "dlprim" in wanted:
        write_json(folder / "net.json", export(arguments.net, 1, True, True, model, size)[0])
    with torch.inference_mode():
        numpy.save(folder / "input.npy", x.numpy())
        numpy.save(folder / "output.npy", model(x).numpy())
    if "onnxruntime" in wanted or "openvino" in wanted:
        torch.onnx.export(model, x, str(folder / "net.onnx"), dynamo=False, input_names=["data"])
    if "ncnn" in wanted:
        import pnnx
        torch.jit.trace(model, x).save(str(folder / "net.pt"))
        shape = "[" + ",".join(str(n) for n in x.shape) + "]"
        subprocess.run([pnnx.EXEC_PATH, "net.pt", f"inputshape={shape}", "fp16=0"], cwd=folder, check=True)
        for left in [folder / "net.pt", *folder.glob("net.pnnx.*")]:
            left.unlink()
    return {}


def torch_peer(arguments, channels_last):
    import torch
    import torchvision_net  # noqa: F401 - imported before memory is looked at
    torch.set_num_threads(arguments.threads)

    def load():
        run = common.torch_batch(arguments.net, arguments.batch, arguments.training, "cpu", channels_last,
                                 size=arguments.size)
        layout = "channels_last" if channels_last else "NCHW"
        return run, None, f"eager, {layout}, {torch.get_num_threads()} threads, oneDNN " + \
            ("on" if torch.backends.mkldnn.is_available() else "off") + f", {torch.backends.cpu.get_cpu_capability()}"
    return load


def read_input(arguments):
    import numpy
    return numpy.load(arguments.folder / "input.npy")


def onnxruntime_peer(arguments):
    import onnxruntime

    def load():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(arguments.folder / "net.onnx"), options,
                                               providers=["CPUExecutionProvider"])
        x = read_input(arguments)
        settings = ", ".join(session.get_providers()) + \
            f", {options.intra_op_num_threads} threads within an operator, {options.inter_op_num_threads} across, " \
            f"{options.execution_mode.name}, {options.graph_optimization_level.name}"
        return lambda: session.run(None, {"data": x}), lambda out: out[0], settings
    return load


def openvino_peer(arguments):
    import openvino

    def plain(value):
        return value.to_string() if isinstance(value, openvino.Type) else getattr(value, "name", value)

    def load():
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": arguments.threads, "NUM_STREAMS": 1,
                    "PERFORMANCE_HINT": "LATENCY"}
        model = openvino.Core().compile_model(str(arguments.folder / "net.onnx"), "CPU", settings)
        request = model.create_infer_request()
        x = read_input(arguments)
        shown = ", ".join(f"{key} {plain(model.get_property(key))}" for key in [*settings, "ENABLE_CPU_PINNING"])
        return lambda: request.infer({0: x}), lambda out: out[0], shown
    return load


def ncnn_peer(arguments):
    import ncnn
    import numpy

    def load():
        net = ncnn.Net()
        net.opt.num_threads = arguments.threads
        reduced = ["use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_packed", "use_bf16_storage",
                   "use_vulkan_compute"]
        for option in reduced:
            setattr(net.opt, option, False)
        for read, file in ((net.load_param, "net.ncnn.param"), (net.load_model, "net.ncnn.bin")):
            if read(str(arguments.folder / file)) != 0:
                raise RuntimeError(f"ncnn does not read {file}")
        # Pools, as ncnn's own benchmark has: without them each blob is allocated anew in each run. Weights stay out.
        pools = ncnn.UnlockedPoolAllocator(), ncnn.PoolAllocator()
        net.opt.blob_allocator, net.opt.workspace_allocator = pools
        array = read_input(arguments)[0]
        x = ncnn.Mat(array).clone()  # a Mat does not keep the array that it is made of

        def infer(pools=pools):  # which live as long as this does
            extractor = net.create_extractor()
            extractor.input("in0", x)
            failed, out = extractor.extract("out0")
            if failed:
                raise RuntimeError("ncnn's extract() failed")
            return numpy.array(out)
        options = [*reduced, "use_winograd_convolution", "use_winograd63_convolution", "use_winograd43_convolution",
                   "use_sgemm_convolution", "use_packing_layout", "lightmode"]
        settings = f"{net.opt.num_threads} threads, pools for blobs and workspace" + "".join(
            f", {state}: " + " ".join(option for option in options if getattr(net.opt, option) == value)
            for state, value in (("on", True), ("off", False)))
        return infer, lambda out: out[None], settings
    return load


PEERS = {"torch": lambda arguments: torch_peer(arguments, False),
         "torch_channels_last": lambda arguments: torch_peer(arguments, True),
         "onnxruntime": onnxruntime_peer, "openvino": openvino_peer, "ncnn": ncnn_peer}


def check(output, folder):
    import numpy
    expected = numpy.load(folder / "output.npy")
    if output.shape != expected.shape:
        raise RuntimeError(f"an output of {output.shape}, PyTorch's is {expected.shape}")
    error = float(numpy.abs(output - expected).max() / numpy.abs(expected).max())
    if not error <= TOLERANCE:
        raise RuntimeError(f"its output is off PyTorch's by {error:.1e} of the largest, more than {TOLERANCE}")


def measure(arguments):
    load = PEERS[arguments.peer](arguments)
    memory = Memory()
    run, output_of, settings = load()
    _, loading = memory.peak()
    ms = common.median_ms(run, arguments.iterations, arguments.warmup)
    resident, running = memory.peak()
    if output_of:
        check(output_of(run()), arguments.folder)
    return {"ms": ms, "mib": running, "resident_mib": resident, "load_mib": loading, "settings": settings}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["prepare", *PEERS])
    parser.add_argument("net")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--for", dest="readers", default="",
                        help="prepare: who reads, of dlprim,onnxruntime,openvino,ncnn")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--size", type=int, help="of the image; default: the network's own")
    parser.add_argument("--training", action="store_true", help="a step with Adam; torch only")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("-i", "--iterations", type=int, default=10)
    parser.add_argument("-w", "--warmup", type=int, default=3)
    arguments = parser.parse_args()
    result = prepare(arguments) if arguments.peer == "prepare" else measure(arguments)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
