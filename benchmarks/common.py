# SPDX-License-Identifier: MIT
"""What the benchmark scripts share: dlprim_benchmark's times, PyTorch's, and the table."""
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
NETS = ["alexnet", "resnet18", "resnet50", "vgg16", "mobilenet_v2"]


def median_ms(batch, iterations, warmup):
    """The median time of batch(), which must return when its work is done."""
    for _ in range(warmup):
        batch()
    times = []
    for _ in range(iterations):
        start = time.perf_counter()
        batch()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def dlprim_ms(command, device, net, batch, training, iterations, warmup, more=()):
    """Median time of a batch by dlprim_benchmark, without copies of inputs and outputs."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        subprocess.run([command, device, str(ROOT / "examples/nets" / (net + ".json")), "-B", str(batch), "-i", str(iterations),
                        "-w", str(max(warmup, 1)), "--json", str(result), *(["-a"] if training else []), *more],
                       check=True, stdout=subprocess.DEVNULL)
        return json.loads(result.read_text())["ms_per_batch"]["median"]


def torch_batch(net, batch, training, device, channels_last, compiled=False):
    """A function that runs one batch of PyTorch's network, to the end."""
    import torch
    from torchvision_net import image_size, make_model
    form = torch.channels_last if channels_last else torch.contiguous_format
    model = make_model(net).to(device=device, memory_format=form).train(training)
    size = image_size(net)
    x = torch.randn(batch, 3, size, size, device=device).to(memory_format=form)
    label = torch.zeros(batch, dtype=torch.long, device=device)
    forward = torch.compile(model) if compiled else model
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    if not training:
        def infer():
            with torch.inference_mode():
                forward(x)
            wait()
        return infer
    solver = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step():
        solver.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(forward(x), label).backward()
        solver.step()
        wait()
    return step


def attempt(what, measure):
    """measure(), or None with a line on stderr where a peer cannot do it."""
    try:
        return measure()
    except Exception as error:  # noqa: BLE001: whatever a peer throws, the others go on
        print(f"{what}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", file=sys.stderr)
        return None


def library_version(command):
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return "dlprim " + (commit or pathlib.Path(command).name)


def processor():
    try:
        for line in open("/proc/cpuinfo"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


class Table:
    """Rows of medians: one column a library, and for each peer how many times dlprim's speed is the peer's."""

    def __init__(self, columns):
        self.columns, self.rows = columns, []

    def add(self, label, times):
        """times: column -> ms, or None where there is none."""
        self.rows.append((label, times))
        shown = ", ".join(f"{column} {times[column]:.1f} ms" for column in self.columns if times.get(column))
        print(f"{label}: {shown}", file=sys.stderr, flush=True)

    def print(self, head):
        print(head + "\n")
        peers = self.columns[1:]
        print("| net | " + " | ".join([f"{column}, ms" for column in self.columns] + [f"dlprim / {peer}" for peer in peers]) + " |")
        print("|---|" + "---:|" * (len(self.columns) + len(peers)))
        for label, times in self.rows:
            ours = times.get(self.columns[0])
            cells = [f"{times[c]:.2f}" if times.get(c) else "-" for c in self.columns]
            cells += [f"{ours / times[p]:.2f}" if ours and times.get(p) else "-" for p in peers]
            print(f"| {label} | " + " | ".join(cells) + " |")
        print("\nMedians; a ratio is dlprim's time over the other's: below 1, dlprim is faster.")
