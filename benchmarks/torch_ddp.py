#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch's DistributedDataParallel costs: a training step of two processes with a device each.

    benchmarks/torch_ddp.py [--device ocl|cuda] [-n resnet50] [-B 16] [--ranks 2] [-r 5] [-i 4] [-w 3] [--share-cores]

Each rank has the network alone, and under DistributedDataParallel (gradient_as_bucket_view) for each way between ranks: "ocl"
has memory that ranks of a host share, and Gloo (DLPRIM_SHARED=0); "cuda" has NCCL. Without --device both devices are measured
where PyTorch has CUDA, one after the other. A round is some steps of each of these, on all ranks at the same time, and an
all_reduce of as many bytes as the network has gradients; a step is forward, loss, backward and fused Adam, and its time that
of the slowest rank. The table has medians over all rounds, and the least. Where PoCL is the only platform, ranks get a PoCL
device each, which share the processor's cores; --share-cores gives each rank cores of its own.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

WAYS = {"ocl": {"shared memory": "1", "Gloo": "0"}, "cuda": {"NCCL": "1"}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=list(WAYS))
    parser.add_argument("-n", "--net", default="resnet50")
    parser.add_argument("-B", "--batch", type=int, default=16, help="of each rank (16)")
    parser.add_argument("--size", type=int, help="of the images; default: the network's own")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("-r", "--rounds", type=int, default=5)
    parser.add_argument("-i", "--iterations", type=int, default=4, help="steps of a round")
    parser.add_argument("-w", "--warmup", type=int, default=3)
    parser.add_argument("--share-cores", action="store_true", help="each rank has cores of its own")
    return parser.parse_args()


class Step:
    """A network with its optimizer and a batch: call it for a step, which ends when the device is done."""

    def __init__(self, arguments, device, group):
        import torch
        import torchvision_net
        from common import image_size
        torch.manual_seed(0)
        size = image_size(arguments.net, arguments.size)
        self.torch, self.model = torch, torchvision_net.make_model(arguments.net).to(device).train()
        self.images = torch.randn(arguments.batch, 3, size, size).to(device)
        self.labels = torch.randint(0, 1000, (arguments.batch,)).to(device)
        if group is not None:
            self.model = torch.nn.parallel.DistributedDataParallel(self.model, process_group=group,
                                                                   gradient_as_bucket_view=True)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, fused=True)

    def __call__(self):
        self.optimizer.zero_grad()
        result = self.model(self.images)
        self.torch.nn.functional.cross_entropy(getattr(result, "logits", result), self.labels).backward()
        self.optimizer.step()
        self.torch.accelerator.synchronize()


class AllReduce:
    """A sum over ranks of as many floats as the network has parameters."""

    def __init__(self, model, device, group):
        import torch
        self.torch, self.group = torch, group
        self.values = torch.zeros(sum(parameter.numel() for parameter in model.parameters()), device=device)

    def __call__(self):
        self.torch.distributed.all_reduce(self.values, group=self.group)
        self.torch.accelerator.synchronize()


def milliseconds(call, iterations):
    start = time.perf_counter()
    for _ in range(iterations):
        call()
    return (time.perf_counter() - start) * 1e3 / iterations


def take_cores(arguments, rank):
    """Before anything counts the cores."""
    cores = sorted(os.sched_getaffinity(0))
    own = cores[rank * len(cores) // arguments.ranks:(rank + 1) * len(cores) // arguments.ranks]
    os.sched_setaffinity(0, own)
    os.environ["POCL_MAX_PTHREAD_COUNT"] = os.environ["OMP_NUM_THREADS"] = str(len(own))


def group_of(setting):
    """A process group, which looks at DLPRIM_SHARED when it is used first."""
    from torch import distributed
    os.environ["DLPRIM_SHARED"] = setting
    group = distributed.new_group()
    distributed.barrier(group)
    return group


def rank_work(rank, arguments, folder):
    if arguments.share_cores:
        take_cores(arguments, rank)
    import torch
    from torch import distributed
    device = f"{arguments.device}:{rank % torch.accelerator.device_count()}"
    torch.accelerator.set_device_index(torch.device(device).index)
    if arguments.device == "cuda":
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    distributed.init_process_group("nccl" if arguments.device == "cuda" else "ocl", init_method=f"file://{folder}/store",
                                   rank=rank, world_size=arguments.ranks)
    calls = {"alone": Step(arguments, device, None)}
    for way, setting in WAYS[arguments.device].items():
        group = group_of(setting)
        calls[way] = Step(arguments, device, group)
        calls[f"all_reduce by {way}"] = AllReduce(calls[way].model, device, group)
    for call in calls.values():
        milliseconds(call, arguments.warmup)
    found = {name: [] for name in calls}
    for _ in range(arguments.rounds):
        for name, call in calls.items():
            distributed.barrier()
            found[name].append(milliseconds(call, arguments.iterations))
    everyone = [None] * arguments.ranks
    distributed.all_gather_object(everyone, found)
    if rank == 0:
        megabytes = next(call for name, call in calls.items() if name.startswith("all_reduce")).values.numel() * 4e-6
        report(arguments, torch, everyone, megabytes)
    distributed.destroy_process_group()


def report(arguments, torch, everyone, megabytes):
    """`everyone`: by rank, the times of everything that was called, by round."""
    times = {name: list(map(max, zip(*(found[name] for found in everyone), strict=True))) for name in everyone[0]}
    alone = statistics.median(times["alone"])
    device = torch.cuda.get_device_name() if arguments.device == "cuda" else torch.ocl.get_device_name(0)
    print(f"{arguments.net}, {arguments.ranks} ranks, batch {arguments.batch} each, {arguments.device}, {device}; "
          f"{megabytes:.1f} MB of gradients")
    for name, all_of_them in times.items():
        median, least = statistics.median(all_of_them), min(all_of_them)
        text = f"  {name:30} {median:9.2f} ms, least {least:9.2f}"
        if name.startswith("all_reduce"):
            text += f"; {megabytes / median:.2f} GB/s"
        elif name != "alone":
            text += f"; {median - alone:+.2f} ms, alone / this {alone / median:.3f}"
        print(text, flush=True)


def has_cuda():
    program = "import torch; raise SystemExit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", program], env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
                          stderr=subprocess.DEVNULL).returncode == 0


def main():
    arguments = parse()
    if arguments.device is None:
        arguments.device = "ocl"
        if has_cuda():  # a PyTorch with both devices has one accelerator, so that each gets processes of its own
            subprocess.run([sys.executable, __file__, *sys.argv[1:], "--device", "cuda"], check=True)
    if arguments.device == "cuda":
        os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    else:
        os.environ.setdefault("POCL_DEVICES", " ".join(["pthread"] * arguments.ranks))
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import common  # noqa: F401 - finds scripts/
    import torch.multiprocessing
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank_work, (arguments, folder), arguments.ranks)


if __name__ == "__main__":
    main()
