#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Examples per second that the host decodes, augments and hands over: dlprim_data --speed beside a torchvision DataLoader
(Pillow, worker processes) on the same folder of JPEG files, by turns.

    benchmarks/data.py [--tools build/tools] [--folder DIR] [--threads 2] [--seconds 5] [--rounds 3] [--json FILE]
                       [--training DEVICE] [--net NET.json]

--training measures both while DEVICE trains NET (examples/nets/resnet18.json), and tells how many of the host's cores that had
beside each. Pictures become 224 x 224 by RandomResizedCrop, half of them mirrored, and are normalised. Without a folder one of made-up
pictures of 500 x 375 pixels is used. Needs torch, torchvision and Pillow.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
from torchvision_models import torchvision  # noqa: E402

MEAN, STD, BATCH = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 64


def make_folder(folder: pathlib.Path, count: int) -> None:
    """Pictures with edges and smooth parts, of about the bytes that photographs take, in two classes."""
    random = np.random.default_rng(1)
    for i in range(count):
        pixels = np.zeros((375, 500, 3))
        for size, strength in ((5, 1.0), (40, 0.5), (200, 0.25)):
            part = random.integers(0, 256, (max(2, size * 3 // 4), size, 3), np.uint8)
            method = Image.Resampling.NEAREST if i % 2 and size == 5 else Image.Resampling.BICUBIC
            pixels += strength * (np.asarray(Image.fromarray(part).resize((500, 375), method), np.float64) - 128)
        path = folder / "ab"[i % 2] / f"{i:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.clip(pixels * 0.6 + 128, 0, 255).astype(np.uint8)).save(path, quality=90)


def peer(folder: pathlib.Path, threads: int, seconds: float) -> float:
    transforms = torchvision.transforms
    data = torchvision.datasets.ImageFolder(str(folder), transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize(MEAN, STD)]))
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True, num_workers=threads,
                                         persistent_workers=True)
    images, begin = 0, 0.0
    warm = 2  # batches that do not count: the workers start
    while True:
        for batch, _ in loader:
            if warm > 0:
                warm -= 1
                begin = time.perf_counter()
                continue
            images += len(batch)
            if time.perf_counter() - begin >= seconds:
                return images / (time.perf_counter() - begin)


def ours(tools: pathlib.Path, folder: pathlib.Path, threads: int, seconds: float) -> float:
    with tempfile.TemporaryDirectory() as work:
        config = pathlib.Path(work) / "data.json"
        config.write_text(json.dumps({
            "net": "none.json", "batch": BATCH,
            "data": {"type": "folder", "train": str(folder.resolve()), "mean": MEAN, "std": STD, "threads": threads},
            "augmentation": {"resized_crop": True, "crop": 224, "flip": True}}))
        done = subprocess.run([tools / "dlprim_data", config, "--most", "1", "--speed", str(seconds), "--json", "-"],
                              capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["examples_per_second"])


class Training:
    """A device that trains a network, with batch 8, for as long as this lives."""

    def __init__(self, tools: pathlib.Path, device: str, net: pathlib.Path) -> None:
        command = [tools / "dlprim_benchmark", "-a", "-B8", "-w1", "-i1000000", device, net]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while self.processor_seconds() < 15:  # until its kernels are compiled and it trains
            time.sleep(0.2)

    def processor_seconds(self) -> float:
        if self.process.poll() is not None:
            raise SystemExit("the training has ended; what it wrote says why")
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def measured(work: Callable[[], float], training: Training | None, cores: list[float]) -> float:
    """What `work` returns. Adds how many cores the training had meanwhile."""
    if training is None:
        return work()
    before, begin = training.processor_seconds(), time.perf_counter()
    rate = work()
    cores.append((training.processor_seconds() - before) / (time.perf_counter() - begin))
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=pathlib.Path, default=pathlib.Path("build/tools"))
    parser.add_argument("--folder", type=pathlib.Path, help="a folder for each class, with pictures in it")
    parser.add_argument("--count", type=int, default=512, help="how many pictures are made up")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--training", metavar="DEVICE", help="measure while this device trains")
    parser.add_argument("--net", type=pathlib.Path, default=ROOT / "examples/nets/resnet18.json", help="what it trains")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or pathlib.Path(made)
        if not arguments.folder:
            make_folder(folder, arguments.count)
        sizes = [path.stat().st_size for path in folder.rglob("*.jpg")]
        rates: dict[str, list[float]] = {"dlprim": [], "torchvision": []}
        cores: dict[str, list[float]] = {"dlprim": [], "torchvision": []}
        training = Training(arguments.tools, arguments.training, arguments.net) if arguments.training else None
        try:
            for _ in range(arguments.rounds):
                rates["dlprim"].append(measured(
                    lambda: ours(arguments.tools, folder, arguments.threads, arguments.seconds), training, cores["dlprim"]))
                rates["torchvision"].append(measured(
                    lambda: peer(folder, arguments.threads, arguments.seconds), training, cores["torchvision"]))
        finally:
            if training is not None:
                training.end()
    for name, values in rates.items():
        beside = f", the training had {statistics.median(cores[name]):.2f} cores" if training is not None else ""
        print(f"{name:12} {statistics.median(values):8.1f} images/s  ({min(values):.1f} to {max(values):.1f}){beside}")
    ratio = statistics.median(rates["dlprim"]) / statistics.median(rates["torchvision"])
    print(f"{len(sizes)} JPEG files of {sum(sizes) / max(1, len(sizes)) / 1024:.0f} KiB, {arguments.threads} threads; "
          f"dlprim is {ratio:.2f} times as fast")
    if arguments.json:
        arguments.json.write_text(json.dumps({"rates": rates, "ratio": ratio, "threads": arguments.threads, "training": cores}, indent=1) + "\n")


if __name__ == "__main__":
    main()
