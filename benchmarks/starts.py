#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a user waits for before and beside the work itself: compilers, plans of new sizes, and the start of a process.

    PYTHONPATH=build/python benchmarks/starts.py [--only WORD ...] [-d opencl] [--json FILE]

Caches of the library and of PoCL are empty folders of the row's own; "warm" is a second process with what the first has
left there. The rows:

- the first step of Conv-BN-ReLU-Pool-Linear with Adam on PyTorch's devices `ocl` (needs build/torch/python, too) and `cpu`;
- resnet50's first inference and first Adam step, the number of programs of that step, and a second process;
- the first inference and Adam step of a network of GPT-2 small's shape;
- the first result of the ONNX files of benchmarks/onnx_models.py, median and worst (--models WORD ...: some of them);
- each new length of a transformer and each new image of a convolutional network: programs compiled after the second size,
  by the library's counters and in PoCL's cache, and the time beyond the same run repeated;
- a KV cache that grows by one for each token, beside ONNX Runtime, on the device and on the host.

The ONNX rows need onnx and onnxruntime. Run it on a machine that does nothing else.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

import common
import numpy as np
import onnx_models

# benchmarks/onnx.py must not stand for the package onnx.
sys.path[:] = [path for path in sys.path if pathlib.Path(path).resolve() != pathlib.Path(__file__).resolve().parent]

RESNET50 = common.ROOT / "examples/nets/resnet50.json"


class Caches:
    """Empty caches of the library and of PoCL."""

    def __init__(self, folder):
        self.dlprim, self.pocl = pathlib.Path(folder) / "dlprim", pathlib.Path(folder) / "pocl"
        self.dlprim.mkdir()
        self.pocl.mkdir()
        self.environment = os.environ | {"DLPRIM_CACHE_DIR": str(self.dlprim), "POCL_CACHE_DIR": str(self.pocl)}

    def programs(self):
        """How many programs the cache has. One of its files tells of functions that the driver computes wrongly."""
        files = (self.dlprim / "kernels").glob("*.bin")
        return sum(b"functions that it computes wrongly" not in path.read_bytes() for path in files)

    def run(self, work, *arguments):
        """Does `work`, one of WORKS, in a process of its own, and returns its result."""
        command = [sys.executable, __file__, "--work", work, *map(str, arguments)]
        return json.loads(common.output_of(command, self.environment).splitlines()[-1])

    def first_ms(self, options, training):
        """Milliseconds from the start of dlprim_benchmark to the end of resnet50's first batch."""
        result = self.dlprim.parent / "result.json"
        command = [options.command, options.device, RESNET50, "-B", options.batch, "-i", 1, "-w", 1, "--json", result]
        common.output_of([*map(str, command), *(["-a"] if training else [])], self.environment)
        return json.loads(result.read_text())["first_batch_ms"]


@contextlib.contextmanager
def empty_caches():
    with tempfile.TemporaryDirectory() as folder:
        yield Caches(folder)


# What child processes do. Each returns what json can hold.


def ocl_step(device="ocl"):
    """Seconds of the first step on PyTorch's device, or why there is none. PyTorch's optimizers import torch._dynamo in it."""
    try:
        import dlprim_torch  # noqa: F401 - makes the device known
        import torch
    except ImportError as error:
        return str(error)
    start = time.perf_counter()
    layers = [torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    model = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(16 * 16 * 16, 10)).to(device)
    solver = torch.optim.Adam(model.parameters())
    images, labels = torch.randn(8, 3, 32, 32).to(device), torch.randint(0, 10, (8,)).to(device)
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    solver.step()
    if device != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - start


def first_result(model, inputs, device):
    """Seconds from opening the device to an ONNX model's first result."""
    import dlprim

    given = dict(np.load(inputs))
    start = time.perf_counter()
    dlprim.ONNXSession(dlprim.Context(device), model).run(given)
    return time.perf_counter() - start


def blocks(operators, x, layers, width, heads, causal=False):
    """Adds the layers of a transformer for rows x of [length, width], and returns the name of the last result."""

    def add(name, type_, operands, **options):
        operators.append({"name": name, "type": type_, "inputs": operands, "outputs": [name], "options": options})
        return name

    def attention(at, rows):
        joined = add(at + ".qkv", "InnerProduct", [rows], inputs=width, outputs=3 * width)
        split = add(at + ".split", "Reshape", [joined], dims=[-1, 3, heads, width // heads])
        by_head = add(at + ".by_head", "Transpose", [split], dims=[1, 2, 0, 3])
        parts = [add(f"{at}.part{i}", "Slice", [by_head], dim=0, begin=i, end=i + 1) for i in range(3)]
        mixed = add(at + ".attention", "Attention", parts, is_causal=causal)
        turned = add(at + ".turned", "Transpose", [mixed], dims=[0, 2, 1, 3])
        rows = add(at + ".rows", "Reshape", [turned], dims=[-1, width])
        return add(at + ".out", "InnerProduct", [rows], inputs=width, outputs=width)

    for layer in range(layers):
        at = f"layer{layer}"
        normed = add(at + ".norm", "LayerNorm", [x], normalized_shape=[width])
        x = add(at + ".first", "Elementwise", [x, attention(at, normed)], operation="sum")
        normed = add(at + ".norm2", "LayerNorm", [x], normalized_shape=[width])
        wide = add(at + ".wide", "InnerProduct", [normed], inputs=width, outputs=4 * width)
        wide = add(at + ".gelu", "Activation", [wide], activation="gelu")
        narrow = add(at + ".narrow", "InnerProduct", [wide], inputs=4 * width, outputs=width)
        x = add(at + ".second", "Elementwise", [x, narrow], operation="sum")
    return x


def transformer(width=64):
    """A transformer for rows of [length, width], and the shape of its input for a length."""
    operators = []
    x = blocks(operators, "x", layers=2, width=width, heads=4)
    net = {"inputs": [{"name": "x", "shape": [5, width]}], "outputs": [x], "operators": operators}
    return net, lambda length: [length, width]


def gpt2(length=64, vocabulary=50257, width=768):
    """A network of GPT-2 small's shape, with its loss."""
    tables = {"token": vocabulary, "position": 1024}
    operators = [
        {"name": name, "type": "Embedding", "inputs": [name + "s"], "outputs": [name],
         "options": {"num_embeddings": count, "embedding_dim": width}}
        for name, count in tables.items()
    ]  # fmt: skip
    operators.append({"name": "x", "type": "Elementwise", "inputs": list(tables), "outputs": ["x"], "options": {"operation": "sum"}})
    x = blocks(operators, "x", layers=12, width=width, heads=12, causal=True)
    for name, type_, operands, options in (
        ("norm", "LayerNorm", [x], {"normalized_shape": [width]}),
        ("logits", "InnerProduct", ["norm"], {"inputs": width, "outputs": vocabulary, "bias": False}),
        ("loss", "SoftmaxWithLoss", ["logits", "labels"], {}),
    ):
        operators.append({"name": name, "type": type_, "inputs": operands, "outputs": [name], "options": options})
    inputs = [{"name": name, "shape": [length], "dtype": "int32"} for name in ("tokens", "positions", "labels")]
    return {"inputs": inputs, "outputs": ["logits", "loss"], "operators": operators}


def convolutional():
    """A convolutional network, and the shape of its input for images of a size."""
    operators, channels, x = [], 3, "x"
    for block, features in enumerate([16, 32, 64]):
        for name, type_, options in (
            (f"conv{block}", "Convolution2D", {"channels_in": channels, "channels_out": features, "kernel": 3, "pad": 1}),
            (f"norm{block}", "BatchNorm", {"features": features}),
            (f"relu{block}", "Activation", {"activation": "relu"}),
            (f"pool{block}", "Pooling2D", {"mode": "max", "kernel": 2, "stride": 2}),
        ):
            operators.append({"name": name, "type": type_, "inputs": [x], "outputs": [name], "options": options})
            x = name
        channels = features
    for name, type_, options in (
        ("mean", "GlobalPooling", {"mode": "avg"}),
        ("flat", "Flatten", {}),
        ("y", "InnerProduct", {"inputs": channels, "outputs": 10}),
    ):
        operators.append({"name": name, "type": type_, "inputs": [x], "outputs": [name], "options": options})
        x = name
    net = {"inputs": [{"name": "x", "shape": [1, 3, 24, 24]}], "outputs": ["y"], "operators": operators}
    return net, lambda size: [1, 3, size, size]


def first_of_gpt2(device, mode):
    """Seconds from opening the device to the end of the first inference or Adam step."""
    import dlprim

    description = gpt2()
    start = time.perf_counter()
    net = dlprim.Net(dlprim.Context(device), description, mode, without_losses=mode == "inference")
    solver = dlprim.Solver(net, "adam") if mode == "training" else None
    net.initialize()
    for value in description["inputs"]:
        if value["name"] in net.input_names:
            net.set_input(value["name"], np.arange(*value["shape"], dtype=np.int32))
    if solver:
        solver.step()
        net.output("loss").numpy()
    else:
        net.forward()["logits"].numpy()
    return time.perf_counter() - start


NETS = {"transformer": (transformer, list(range(5, 25))), "convolutional network": (convolutional, list(range(24, 44)))}


def new_sizes(name, device):
    """For each size: what its first run took beyond the next one, in ms, and the programs that it compiled, by the library's
    counters and as files of PoCL's cache."""
    import dlprim

    make, sizes = NETS[name]
    random.Random(1).shuffle(sizes)
    description, shape_of = make()
    context = dlprim.Context(device)
    net = dlprim.Net(context, description, "inference", max_plans=len(sizes))
    net.initialize()
    cache = pathlib.Path(os.environ["POCL_CACHE_DIR"])

    def state():
        return context.counters.compiles, sum(1 for _ in cache.rglob("*.so"))

    def timed(size):
        start = time.perf_counter()
        net.reshape({"x": shape_of(size)})
        for output in net.forward(np.ones(shape_of(size), np.float32)).values():
            output.numpy()
        return (time.perf_counter() - start) * 1e3

    rows = []
    for size in sizes:
        before = state()
        first = timed(size)
        compiled = [after - earlier for after, earlier in zip(state(), before)]
        rows.append([first - min(timed(size) for _ in range(3)), *compiled])
    return rows


def growing_model(layers=4, width=16):
    """Attention in which each layer appends its token to the past, as a model of ONNX."""
    from onnx import TensorProto, helper, numpy_helper

    draw = np.random.default_rng(0)
    nodes, weights, x = [], [], "x"
    for layer in range(layers):
        names = {name: f"{name}{layer}" for name in ("w", "q", "k", "t", "s", "p", "o", "y")}
        weight = 0.1 * draw.standard_normal((width, width)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, names["w"]))
        for type_, inputs, output, options in (
            ("MatMul", [x, names["w"]], "q", {}),
            ("Concat", ["past", names["q"]], "k", {"axis": 1}),
            ("Transpose", [names["k"]], "t", {"perm": [0, 2, 1]}),
            ("MatMul", [names["q"], names["t"]], "s", {}),
            ("Softmax", [names["s"]], "p", {"axis": -1}),
            ("MatMul", [names["p"], names["k"]], "o", {}),
            ("Add", [x, names["o"]], "y", {}),
        ):
            nodes.append(helper.make_node(type_, inputs, [names[output]], **options))
        x = names["y"]
    given = [("x", [1, 1, width]), ("past", [1, "length", width])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in given]
    outputs = [helper.make_tensor_value_info(x, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "growing", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def growing_cache(device, tokens):
    """Milliseconds per token, ours and ONNX Runtime's: medians after the first two tokens."""
    import dlprim
    import onnxruntime

    model = growing_model()
    ours = dlprim.ONNXSession(dlprim.Context(device), model)
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    draw = np.random.default_rng(1)
    times = []
    for length in range(3, 3 + int(tokens)):
        feeds = {"x": draw.standard_normal((1, 1, 16)), "past": draw.standard_normal((1, length, 16))}
        feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
        start = time.perf_counter()
        (y,) = ours.run(feeds).values()
        between = time.perf_counter()
        (expected,) = theirs.run(None, feeds)
        times.append([(between - start) * 1e3, (time.perf_counter() - between) * 1e3])
        if not np.allclose(y, expected, atol=1e-4):
            raise RuntimeError(f"a past of {length} tokens gives another result than ONNX Runtime's")
    return [statistics.median(column) for column in zip(*times[2:])]


WORKS = {"ocl": ocl_step, "gpt2": first_of_gpt2, "first": first_result, "sizes": new_sizes, "cache": growing_cache}


# The rows. Each yields a title, a text and what --json keeps.


def ocl_rows(options):
    with empty_caches() as caches:
        caches.environment["DLPRIM_DEVICE"] = options.device
        cold = caches.run("ocl")
        if isinstance(cold, str):
            print(f"the first step on ocl: {cold}", file=sys.stderr)
            return
        warm, host = caches.run("ocl"), caches.run("ocl", "cpu")
    title = "first step of Conv-BN-ReLU-Pool-Linear with Adam on ocl; warm; on PyTorch's cpu"
    yield title, f"{cold:.1f}; {warm:.2f}; {host:.2f} s", [cold, warm, host]


def resnet50_rows(options):
    for training, title in ((False, "resnet50: first inference; second process"), (True, "resnet50: first Adam step; second process")):
        with empty_caches() as caches:
            cold, warm = (caches.first_ms(options, training) * 1e-3 for _ in range(2))
            programs = caches.programs()
        yield title, f"{cold:.1f}; {warm:.2f} s", [cold, warm]
        if training:
            yield "programs of resnet50's Adam step", str(programs), programs


def gpt2_rows(options):
    for mode, title in (("inference", "first inference"), ("training", "first Adam step")):
        with empty_caches() as caches:
            cold, warm = (caches.run("gpt2", options.device, mode) for _ in range(2))
            programs = caches.programs()
        yield f"GPT-2 small's shape, 64 tokens: {title}; second process; programs", f"{cold:.1f}; {warm:.2f} s; {programs}", [cold, warm, programs]


def onnx_rows(options):
    def first(title, make):
        with empty_caches() as caches:
            try:
                path, inputs = make(options.folder)
            except (onnx_models.Absent, ImportError) as why:
                print(f"{title}: {why}", file=sys.stderr)
                return None
            given = caches.dlprim.parent / "inputs.npz"
            np.savez(given, **inputs)
            return common.attempt(title, lambda: caches.run("first", path, given, options.device))

    options.folder.mkdir(parents=True, exist_ok=True)
    times = {}
    for title, make in (onnx_models.TRANSFORMERS | onnx_models.CARRIED).items():
        if is_wanted(title, options.models) and (seconds := first(title, make)):
            times[title] = seconds
            print(f"{title}: {seconds:.1f} s", file=sys.stderr, flush=True)
    if times:
        worst = max(times, key=times.get)
        text = f"{statistics.median(times.values()):.1f}; {times[worst]:.1f} s ({worst})"
        yield f"first result of {len(times)} ONNX files: median; worst", text, times


def size_rows(options):
    for name in NETS:
        with empty_caches() as caches:
            for state in ("empty caches", "warm"):
                rows = caches.run("sizes", name, options.device)[2:]
                beyond, compiled, files = zip(*rows)
                text = f"{sum(compiled)}; {sum(files)}; {statistics.median(beyond):.2f} ms; {max(beyond):.2f} ms"
                yield f"{len(rows)} new sizes of a {name}, {state}: programs; files of PoCL; median; worst", text, rows


def cache_rows(options):
    with empty_caches() as caches:
        for device, state in ((options.device, "empty caches"), (options.device, "warm"), ("cpu", "host")):
            ours, theirs = caches.run("cache", device, options.tokens)
            text = f"{ours:.2f} ms; {theirs:.2f} ms; {ours / theirs:.1f}"
            yield f"growing KV cache, {state}, per token: dlprim; ONNX Runtime; ratio", text, [ours, theirs]


ROWS = {"ocl": ocl_rows, "resnet50": resnet50_rows, "gpt2": gpt2_rows, "onnx": onnx_rows, "sizes": size_rows, "cache": cache_rows}


def is_wanted(title, words):
    return not words or any(word.lower() in title.lower() for word in words)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], choices=ROWS, help="these rows")
    parser.add_argument("--models", nargs="+", default=[], help="ONNX files whose titles have one of these words")
    parser.add_argument("-d", "--device", default="opencl")
    parser.add_argument("-B", "--batch", type=int, default=1, help="of resnet50")
    parser.add_argument("--tokens", type=int, default=200, help="of the growing cache")
    parser.add_argument("--command", default=common.BENCHMARK, help="dlprim_benchmark")
    parser.add_argument("--folder", type=pathlib.Path, default=common.ROOT / ".cache/onnx-benchmark")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)  # what a child process does
    options = parser.parse_args()
    if options.work:
        print(json.dumps(WORKS[options.work[0]](*options.work[1:])))
        return
    records = []
    print(common.machine() + "\n\n| what | measured |\n|---|---:|", flush=True)
    for name, rows in ROWS.items():
        if options.only and name not in options.only:
            continue
        try:
            for title, text, values in rows(options):
                print(f"| {title} | {text} |", flush=True)
                records.append({"row": title, "values": values})
        except (RuntimeError, ImportError) as error:
            print(f"{name}: {error}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps({"machine": common.machine(), "results": records}, indent=1))


if __name__ == "__main__":
    main()
