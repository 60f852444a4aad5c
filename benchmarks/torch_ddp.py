#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch's DistributedDataParallel costs: a training step of two processes with a device each.

    benchmarks/torch_ddp.py [--device ocl|cuda] [-n resnet50] [-B 16] [--ranks 2] [-r 5] [-i 4] [-w 3]

Each rank has the network twice: alone, and under DistributedDataParallel (gradient_as_bucket_view). A round is some steps of
the first one and some of the second one, on all ranks at the same time; a step is forward, loss, backward and fused Adam, and
its time that of the slowest rank. The table has medians over all rounds. "ocl" exchanges by its own backend, "cuda" by NCCL.
Where PoCL is the only platform, ranks get a PoCL device each, which share the processor's cores.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["ocl", "cuda"], default="ocl")
    parser.add_argument("-n", "--net", default="resnet50")
    parser.add_argument("-B", "--batch", type=int, default=16, help="of each rank (16)")
    parser.add_argument("--size", type=int, help="of the images; default: the network's own")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-i", "--iterations", type=int, default=4, help="steps of a round")
    parser.add_argument("-w", "--warmup", type=int, default=3)
    return parser.parse_args()


class Step:
    """A network with its optimizer and a batch: call it for a step, which ends when the device is done."""

    def __init__(self, arguments, device, parallel):
        import torch
        import torchvision_net
        from common import image_size
        torch.manual_seed(0)
        size = image_size(arguments.net, arguments.size)
        self.torch, self.model = torch, torchvision_net.make_model(arguments.net).to(device).train()
        self.images = torch.randn(arguments.batch, 3, size, size).to(device)
        self.labels = torch.randint(0, 1000, (arguments.batch,)).to(device)
        if parallel:
            self.model = torch.nn.parallel.DistributedDataParallel(self.model, gradient_as_bucket_view=True)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)

    def __call__(self):
        self.optimizer.zero_grad()
        result = self.model(self.images)
        self.torch.nn.functional.cross_entropy(getattr(result, "logits", result), self.labels).backward()
        self.optimizer.step()
        self.torch.accelerator.synchronize()

    def milliseconds(self, iterations):
        start = time.perf_counter()
        for _ in range(iterations):
            self()
        return (time.perf_counter() - start) * 1e3 / iterations


def rank_work(rank, arguments, folder):
    import torch
    from torch import distributed
    device = f"{arguments.device}:{rank % torch.accelerator.device_count()}"
    torch.accelerator.set_device_index(torch.device(device).index)
    if arguments.device == "cuda":
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    distributed.init_process_group("nccl" if arguments.device == "cuda" else "ocl", init_method=f"file://{folder}/store",
                                   rank=rank, world_size=arguments.ranks)
    steps = [Step(arguments, device, parallel) for parallel in (False, True)]
    for step in steps:
        step.milliseconds(arguments.warmup)
    found = [[], []]
    for _ in range(arguments.rounds):
        for times, step in zip(found, steps, strict=True):
            distributed.barrier()
            times.append(step.milliseconds(arguments.iterations))
    everyone = [None] * arguments.ranks
    distributed.all_gather_object(everyone, found)
    if rank == 0:
        report(arguments, torch, everyone)
    distributed.destroy_process_group()


def report(arguments, torch, everyone):
    """`everyone`: by rank, the times of the step alone and of the one under DistributedDataParallel, by round."""
    alone, parallel = (statistics.median(map(max, zip(*(found[k] for found in everyone), strict=True))) for k in (0, 1))
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else torch.ocl.get_device_name(0)
    print(f"{arguments.net}, {arguments.ranks} ranks, batch {arguments.batch} each, {arguments.device}, {name}: alone "
          f"{alone:.2f} ms, DistributedDataParallel {parallel:.2f} ms ({alone / parallel:.3f})", flush=True)


def main():
    arguments = parse()
    if arguments.device == "cuda":
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # a PyTorch with both devices has one accelerator
    else:
        os.environ.setdefault("POCL_DEVICES", " ".join(["pthread"] * arguments.ranks))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import common  # noqa: F401 - finds scripts/
    import torch.multiprocessing
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank_work, (arguments, folder), arguments.ranks)


if __name__ == "__main__":
    main()
