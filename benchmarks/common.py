# SPDX-License-Identifier: MIT
"""What the benchmark scripts share: dlprim_benchmark's times, PyTorch's, and the table."""
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
BENCHMARK = str(ROOT / "build/tools/dlprim_benchmark")
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


def output_of(command, environment=None, given=None):
    """What a command prints that reads `given`. One that fails throws, with the last line of its stderr."""
    done = subprocess.run(command, capture_output=True, text=True, env=environment, input=given)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise RuntimeError(f"exit status {done.returncode}: {lines[-1] if lines else 'not a word'}")
    return done.stdout


def dlprim_result(command, device, path, batch, training, iterations, warmup, more=()):
    """What dlprim_benchmark measures of a network's file, as a dictionary; its times are without copies."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        output_of([command, device, str(path), "-B", str(batch), "-i", str(iterations), "-w", str(max(warmup, 1)),
                   "--json", str(result), *(["-a"] if training else []), *more])
        return json.loads(result.read_text())


class Prepared:
    """A process that prepares a measurement from its start on, beside others, says "ready", and measures when it is told to."""

    def __init__(self, command):
        self.errors = tempfile.TemporaryFile("w+")
        # They compile beside each other: few threads each.
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env=os.environ | {"TORCHINDUCTOR_COMPILE_THREADS": "2"})

    def expect_line(self, limit=None):
        """Its next line. After `limit` seconds without, it is ended."""
        timer = threading.Timer(limit, self.process.kill) if limit else None
        if timer:
            timer.start()
        line = self.process.stdout.readline()
        if timer:
            timer.cancel()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            lines = self.errors.read().strip().splitlines()
            raise RuntimeError(lines[-1] if lines else f"exit status {self.process.returncode}")
        return line

    def result(self, limit=None):
        """What it measures, alone on the device if the caller asks one after the other."""
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        result = json.loads(self.expect_line(limit))
        self.process.wait()
        return result


def image_size(net, size=None):
    """That asked for, or the network's own."""
    import torchvision_net
    return size or torchvision_net.image_size(net)


def torch_batch(net, batch, training, device, channels_last, *, compiled=None, size=None, scaled=False,
                stored=None):
    """A function that runs one batch of PyTorch's network, to the end; `compiled`: torch.compile's mode, if it is to be;
    `scaled`: a step with its gradient scaler; `stored`: the type of parameters and images, float32 unless it is given."""
    import torch
    from torchvision_net import make_model
    form = torch.channels_last if channels_last else torch.contiguous_format
    dtype = getattr(torch, stored or "float32")
    model = make_model(net).to(device=device, dtype=dtype, memory_format=form).train(training)
    size = image_size(net, size)
    x = torch.randn(batch, 3, size, size, device=device, dtype=dtype).to(memory_format=form)
    label = torch.zeros(batch, dtype=torch.long, device=device)
    forward = torch.compile(model, mode=compiled) if compiled else model
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    if not training:
        def infer():
            with torch.inference_mode():
                forward(x)
            wait()
        return infer
    solver = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    scaler = torch.amp.GradScaler(device, enabled=scaled)

    def step():
        solver.zero_grad(set_to_none=True)
        scaler.scale(torch.nn.functional.cross_entropy(forward(x), label)).backward()
        scaler.step(solver)
        scaler.update()
        wait()
    return step


def attempt(what, measure):
    """measure(), or None with a line on stderr where a peer cannot do it."""
    try:
        return measure()
    except Exception as error:  # noqa: BLE001 - whatever a peer throws, the others go on
        print(f"{what}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", file=sys.stderr)
        return None


def library_version(command):
    """What the command says that it was built of, wherever it lies."""
    try:
        return output_of([command, "--version"]).strip()
    except (OSError, RuntimeError):
        return "dlprim (commit unknown)"


def processor():
    try:
        for line in open("/proc/cpuinfo"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def machine():
    """Processor, cores, caches, memory, system, and what else it does: as much of it as the system tells."""
    about = [processor()]
    cpus = pathlib.Path("/sys/devices/system/cpu")
    try:
        cores = {path.read_text() for path in cpus.glob("cpu[0-9]*/topology/thread_siblings_list")}
        about.append(f"{len(cores)} cores, {os.cpu_count()} threads, {len(os.sched_getaffinity(0))} of them ours")
        for cache in sorted(cpus.glob("cpu0/cache/index*")):
            names = ("level", "type", "size", "shared_cpu_list")
            level, kind, size, shared = [(cache / name).read_text().strip() for name in names]
            if kind != "Instruction":
                about.append(f"L{level} {size} for {shared}")
        about.append(f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / (1 << 30):.0f} GiB")
        about.append(f"{platform.system()} {platform.release()}")
        about.append(f"load {os.getloadavg()[0]:.2f} before the run")
    except (OSError, ValueError, AttributeError):
        pass
    return "; ".join(about)


class Table:
    """Rows of medians: dlprim's column, then one a peer, a column of MiB beside each, and at the end of a row one ratio: the
    best peer's time over dlprim's."""

    def __init__(self, columns):
        self.columns, self.rows = columns, []

    def add(self, label, results):
        """results: column -> {"ms": time, "mib": memory, if known}, or None where there is none."""
        self.rows.append((label, results))
        shown = ", ".join(f"{name} {results[name]['ms']:.1f} ms" for name in self.columns if results.get(name))
        print(f"{label}: {shown}", file=sys.stderr, flush=True)

    def print(self, head):
        ours, peers = self.columns[0], self.columns[1:]
        heads = [text for column in self.columns for text in (f"{column}, ms", "MiB")]
        heads += [f"best / {ours}"] if peers else []
        print(head + "\n\n| net | " + " | ".join(heads) + " |\n|---|" + "---:|" * len(heads))
        for label, results in self.rows:
            ms = {column: result["ms"] for column, result in results.items() if result}
            mib = {column: result.get("mib") for column, result in results.items() if result}
            cells = []
            for column in self.columns:
                cells.append(f"{ms[column]:.2f}" if column in ms else "-")
                cells.append(f"{mib[column]:.1f}" if mib.get(column) is not None else "-")
            if peers:
                best = min((ms[peer] for peer in peers if peer in ms), default=None)
                cells.append(f"{best / ms[ours]:.2f}" if best and ours in ms else "-")
            print(f"| {label} | " + " | ".join(cells) + " |")
        print(f"\nMedians. MiB: the peak of {ours}'s plan; of a peer, the growth of its resident memory, or what it has allocated on a "
              f"GPU. Ratio: the best peer's time over {ours}'s: above 1, {ours} is faster.")
