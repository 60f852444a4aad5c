# SPDX-License-Identifier: MIT
"""PyTorch's device "ocl" beside PyTorch's own CPU or CUDA, eagerly or by torch.compile, in turns.

    benchmarks/torch_ocl.py [--peer cpu|cuda] [--mode step|inference] [-B 16] [-n resnet18,resnet50,gpt2,bert]

A step is forward, loss, backward and fused Adam. The peer's time is that of its better layout, row-major or channels_last.
Columns: milliseconds of the peer and of ocl (medians over all rounds), their ratio, launches of a step, the time until a step
is enqueued, memory at the peak of both, operators that fell back to the CPU in a step. Each device has a process of its own:
PyTorch has one accelerator in a process, and without it CUDA has no backward. (The script is not called torch.py, since
those beside it import torch.)
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

import torch
from common import NETS, image_size


class Step:
    """One network on one device: call it for a batch."""

    def __init__(self, name, arguments, device, channels_last):
        self.device, self.mode, self.amp = device, arguments.mode, arguments.amp
        torch.manual_seed(0)
        self.model, self.inputs, self.loss = make(name, arguments)
        form = torch.channels_last if channels_last else torch.contiguous_format
        self.model = self.model.to(device)
        if channels_last:
            self.model = self.model.to(memory_format=form)
        self.inputs = [tensor.to(device) for tensor in self.inputs]
        if channels_last and self.inputs[0].dim() == 4:
            self.inputs[0] = self.inputs[0].to(memory_format=form)
        self.model.train(self.mode == "step")
        if arguments.compile:
            self.model = torch.compile(self.model)
        if self.mode == "step":
            self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)

    def enqueue(self):
        cast = torch.autocast(self.device, getattr(torch, self.amp)) if self.amp else contextlib.nullcontext()
        if self.mode == "inference":
            with torch.inference_mode(), cast:
                self.model(self.inputs[0])
            return
        self.optimizer.zero_grad()
        with cast:
            loss = self.loss(self.model, self.inputs)
        loss.backward()
        self.optimizer.step()

    def finish(self):
        if self.device != "cpu":
            torch.accelerator.synchronize() if self.device == "ocl" else torch.cuda.synchronize()

    def times(self, iterations):
        """Milliseconds until a batch is done, and until it is enqueued."""
        done, enqueued = [], []
        for _ in range(iterations):
            start = time.perf_counter()
            self.enqueue()
            enqueued.append((time.perf_counter() - start) * 1e3)
            self.finish()
            done.append((time.perf_counter() - start) * 1e3)
        return done, enqueued


def make(name, arguments):
    """A network, its inputs, and a function for its loss."""
    import torchvision_net  # first: transformers imports torchvision, which may need what this declares
    batch = arguments.batch
    if name.startswith("gpt2"):
        import transformers
        layers, _, heads = {"gpt2": (12, 1, 12), "gpt2-4": (4, 1, 4)}[name]
        settings = transformers.GPT2Config(n_layer=layers, n_head=heads, n_embd=64 * heads, resid_pdrop=0, embd_pdrop=0,
                                           attn_pdrop=0, use_cache=False)
        words = torch.randint(0, settings.vocab_size, (batch, arguments.length))
        return (transformers.GPT2LMHeadModel(settings), [words],
                lambda model, inputs: model(inputs[0], labels=inputs[0]).loss)
    if name == "bert":
        import transformers
        settings = transformers.BertConfig(hidden_dropout_prob=0, attention_probs_dropout_prob=0)
        words = torch.randint(0, settings.vocab_size, (batch, arguments.length))
        return (transformers.BertForMaskedLM(settings), [words],
                lambda model, inputs: model(inputs[0], labels=inputs[0]).loss)
    size = image_size(name, arguments.size)
    images, labels = torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))
    return (torchvision_net.make_model(name), [images, labels],
            lambda model, inputs: torch.nn.functional.cross_entropy(output_of(model(inputs[0])), inputs[1]))


def output_of(result):
    """The logits, of networks that return more in training too."""
    return getattr(result, "logits", result)


def peak_mib(device):
    """Memory that the process has had from the device's allocator, or on the CPU from the system."""
    if device == "ocl":
        return torch.ocl.max_memory_reserved() / 2**20
    if device == "cuda":
        return torch.cuda.max_memory_reserved() / 2**20
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def work(arguments):
    """One device's process: prints a line of JSON for each round that stdin asks for."""
    device = arguments.worker
    if device == "cuda":  # products of float32 as such, and the fastest of its convolutions
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
    step = Step(arguments.nets, arguments, device, arguments.channels_last)
    for line in sys.stdin:
        ours = device == "ocl"
        if ours:
            torch.ocl.reset_fallbacks()
        before = torch.ocl.counters() if ours else {}
        done, enqueued = step.times(int(line))
        counts = {key: value - before[key] for key, value in torch.ocl.counters().items()} if ours else {}
        if ours:
            counts["fallbacks"] = sum(torch.ocl.fallbacks().values())
        print(json.dumps({"done": done, "enqueued": enqueued, "counts": counts, "mib": peak_mib(device)}), flush=True)


class Worker:
    """A process that measures one network on one device."""

    def __init__(self, name, arguments, device, channels_last):
        command = [sys.executable, __file__, "--worker", device, "-n", name, "-B", str(arguments.batch), "--mode",
                   arguments.mode, "--length", str(arguments.length)]
        command += ["--channels-last"] if channels_last else []
        command += ["--amp", arguments.amp] if arguments.amp else []
        command += ["--compile"] if arguments.compile and (device == "ocl" or not arguments.eager_peer) else []
        command += ["--size", str(arguments.size)] if arguments.size else []
        # The peer's PyTorch does not load this device.
        environment = os.environ | ({} if device == "ocl" else {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=environment)
        self.done, self.enqueued, self.counts, self.mib = [], [], {}, 0

    def ask(self, iterations):
        """Lets it run some batches."""
        self.iterations = iterations
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{iterations}\n")
            self.process.stdin.flush()

    def answer(self):
        """Waits for them."""
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError((self.process.stderr.read().strip().splitlines() or ["it ended"])[-1])
        return json.loads(line)

    def times(self, iterations):
        """Runs some batches and keeps what was measured."""
        self.ask(iterations)
        found = self.answer()
        self.done += found["done"]
        self.enqueued += found["enqueued"]
        self.counts = {key: value / iterations for key, value in found["counts"].items()}
        self.mib = found["mib"]

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def workers_of(name, arguments):
    """The device's process and those of the peer, one for each of its layouts."""
    layouts = [False] if name.startswith("gpt2") else [False, True]
    return [Worker(name, arguments, "ocl", False), *(Worker(name, arguments, arguments.peer, one) for one in layouts)]


def measure(name, arguments, workers):
    ours, *peers = workers
    try:
        for worker in [] if arguments.at_once else workers:
            worker.ask(arguments.warmup)
            worker.answer()
        for _ in range(arguments.rounds):
            for worker in [ours, *peers]:
                worker.times(arguments.iterations)
    finally:
        for worker in [ours, *peers]:
            worker.end()
    best = min(peers, key=lambda peer: statistics.median(peer.done))
    least, median = statistics.median(best.done), statistics.median(ours.done)
    print(f"| {name} | {least:.2f} | {median:.2f} | {least / median:.2f} | {ours.counts['launches']:.0f} | "
          f"{statistics.median(ours.enqueued):.2f} | {best.mib:.0f} / {ours.mib:.0f} | {ours.counts['fallbacks']:g} |",
          flush=True)
    return least / median


def small_add_us():
    """Host time of an addition of small tensors, with its launch enqueued."""
    a, b = torch.ones(8, device="ocl"), torch.ones(8, device="ocl")
    for _ in range(100):
        a + b
    torch.accelerator.synchronize()
    found = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(100):
            a + b
        found.append((time.perf_counter() - start) * 1e4)
        torch.accelerator.synchronize()
    return statistics.median(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--nets", default=",".join(NETS))
    parser.add_argument("--peer", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--mode", choices=["step", "inference"], default="step")
    parser.add_argument("--amp", choices=["float16", "bfloat16"], help="the type of autocast")
    parser.add_argument("--compile", action="store_true", help="call models by torch.compile, also the peer's")
    parser.add_argument("--eager-peer", action="store_true", help="with --compile: the peer's as they are")
    parser.add_argument("-B", "--batch", type=int, default=16)
    parser.add_argument("--size", type=int, help="height and width of images")
    parser.add_argument("--length", type=int, default=256, help="words of a sequence")
    parser.add_argument("-i", "--iterations", type=int, default=5, help="batches of a round")
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-w", "--warmup", type=int, default=3)
    parser.add_argument("--at-once", action="store_true",
                        help="warm up all networks at the same time, on machines with many cores and much memory")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--channels-last", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(arguments)
    print(f"{torch.ocl.get_device_name()}, PyTorch {torch.__version__} on {arguments.peer}, {arguments.mode}, batch "
          f"{arguments.batch}{', ' + arguments.amp if arguments.amp else ''}{', torch.compile' if arguments.compile else ''}; a small addition takes {small_add_us():.1f} us")
    print("| network | peer ms | ocl ms | ratio | launches | enqueued ms | MiB, peer / ocl | fallbacks |\n|---|---|---|---|---|---|---|---|")
    ratios, names, ready = [], arguments.nets.split(","), {}
    if arguments.at_once:
        ready = {name: workers_of(name, arguments) for name in names}
        for worker in sum(ready.values(), []):
            worker.ask(arguments.warmup)
        for worker in sum(ready.values(), []):
            with contextlib.suppress(RuntimeError):  # it is told when it is measured
                worker.answer()
    for name in names:
        try:
            ratios.append(measure(name, arguments, ready.get(name) or workers_of(name, arguments)))
        except Exception as error:  # one network's failure is a line of the table
            print(f"| {name} | {type(error).__name__}: {str(error).splitlines()[0][:150]} |", flush=True)
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
