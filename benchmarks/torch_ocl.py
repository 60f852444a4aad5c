# SPDX-License-Identifier: MIT
"""PyTorch's device "ocl" beside PyTorch's own CPU or CUDA, eagerly, in one process and in turns.

    benchmarks/torch_ocl.py [--peer cpu|cuda] [--mode step|inference] [-B 16] [-n resnet18,resnet50,gpt2]

A step is forward, loss, backward and fused Adam. The peer's time is that of its better layout, row-major or channels_last.
Columns: milliseconds of the peer and of ocl (medians over all rounds), their ratio, launches of a step, the time until a step
is enqueued, bytes at the peak of both, operators that fell back to the CPU in a step.
(It is not called torch.py, since scripts beside it import torch.)
"""
import argparse
import contextlib
import gc
import statistics
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
    batch = arguments.batch
    if name.startswith("gpt2"):
        import transformers
        layers, _, heads = {"gpt2": (12, 1, 12), "gpt2-4": (4, 1, 4)}[name]
        settings = transformers.GPT2Config(n_layer=layers, n_head=heads, n_embd=64 * heads, resid_pdrop=0, embd_pdrop=0,
                                           attn_pdrop=0, use_cache=False)
        words = torch.randint(0, settings.vocab_size, (batch, arguments.length))
        return (transformers.GPT2LMHeadModel(settings), [words],
                lambda model, inputs: model(inputs[0], labels=inputs[0]).loss)
    import torchvision_net
    size = image_size(name, arguments.size)
    images, labels = torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))
    return (torchvision_net.make_model(name), [images, labels],
            lambda model, inputs: torch.nn.functional.cross_entropy(output_of(model(inputs[0])), inputs[1]))


def output_of(result):
    """The logits, of networks that return more in training too."""
    return getattr(result, "logits", result)


def peak_mib(device):
    if device == "ocl":
        return torch.ocl.max_memory_reserved() / 2**20
    if device == "cuda":
        return torch.cuda.max_memory_reserved() / 2**20
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def measure(name, arguments):
    torch.ocl.empty_cache()
    torch.ocl.reset_peak_memory_stats()
    if arguments.peer == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    ours = Step(name, arguments, "ocl", False)
    ours.times(arguments.warmup)
    layouts = [False] if name.startswith("gpt2") else [False, True]
    peers = [Step(name, arguments, arguments.peer, layout) for layout in layouts]
    for peer in peers:
        peer.times(arguments.warmup)
    torch.ocl.reset_fallbacks()
    before = torch.ocl.counters()
    done, enqueued, theirs = [], [], [[] for _ in peers]
    for _ in range(arguments.rounds):
        times = ours.times(arguments.iterations)
        done += times[0]
        enqueued += times[1]
        for peer, found in zip(peers, theirs):
            found += peer.times(arguments.iterations)[0]
    after = torch.ocl.counters()
    steps = arguments.rounds * arguments.iterations
    least = min(statistics.median(found) for found in theirs)
    median = statistics.median(done)
    fallbacks = sum(torch.ocl.fallbacks().values()) / steps
    per_step = {key: (after[key] - before[key]) / steps for key in after}
    memory = f"{peak_mib('ocl'):.0f}" + (f" / {peak_mib('cuda') / len(peers):.0f}" if arguments.peer == "cuda" else "")
    print(f"| {name} | {least:.2f} | {median:.2f} | {least / median:.2f} | {per_step.get('launches', 0):.0f} | "
          f"{statistics.median(enqueued):.2f} | {memory} | {fallbacks:g} |", flush=True)
    del ours, peers
    gc.collect()
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
    parser.add_argument("-B", "--batch", type=int, default=16)
    parser.add_argument("--size", type=int, help="height and width of images")
    parser.add_argument("--length", type=int, default=256, help="words of a sequence")
    parser.add_argument("-i", "--iterations", type=int, default=5, help="batches of a round")
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-w", "--warmup", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.peer == "cuda":  # products of float32 as such, and the fastest of its convolutions
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
    print(f"{torch.ocl.get_device_name()}, PyTorch {torch.__version__} on {arguments.peer}, {arguments.mode}, batch "
          f"{arguments.batch}{', ' + arguments.amp if arguments.amp else ''}; a small addition takes {small_add_us():.1f} us")
    print("| network | peer ms | ocl ms | ratio | launches | enqueued ms | MiB | fallbacks |\n|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in arguments.nets.split(","):
        try:
            ratios.append(measure(name, arguments))
        except Exception as error:  # one network's failure is a line of the table
            print(f"| {name} | {type(error).__name__}: {str(error).splitlines()[0][:150]} |", flush=True)
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
