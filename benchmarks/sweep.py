#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times all of torchvision's classification networks on a device, perhaps beside PyTorch, and shows where time goes.

    benchmarks/sweep.py --export NETS                                   writes every network's JSON into a folder
    benchmarks/sweep.py -d gpu --nets NETS --results FILE.jsonl --torch
    benchmarks/sweep.py -d gpu --nets NETS --results FILE.jsonl --names 'resnet*' vit_b_16 --quick
    benchmarks/sweep.py -d gpu --nets NETS --results FILE.jsonl --report --picture FILE.svg
    benchmarks/sweep.py -d gpu --nets NETS --reference-share [--fast]

Each network runs by dlprim_benchmark in inference and in a training step with Adam. A line of FILE.jsonl is one of these: its
time; the sum of its nodes' roofline bounds, and the time over it; the share of nodes' time that reference engines take; the
nodes that lose most against their bounds; the seconds to the end of the first batch; the plan's peak of memory. What FILE
has is not run again, so that a sweep may be called off and go on; what failed is tried again with --retry. A network that
does not fit memory, or takes longer than --limit, is a line that says so.

--torch times PyTorch in the same run: eagerly, in NCHW and in channels_last, of which the better time counts; on a GPU by
gpu_peer.py (fused Adam, TF32 off in fp32), --ahead networks of which prepare themselves beside each other before they are
measured one by one; on processors by cpu_peer.py. The ratio is PyTorch's time over dlprim's.

--reference-share prints the share of time in reference engines of every network and exits with 1 where one is over 1 %, or
could not be looked at. --fast does not time nodes: it runs two batches and reads the planner's note on what it expects.

The end is a table in markdown, with geometric means and minima, and one picture, by matplotlib, if it is installed.
Networks that FILE or NETS lack are exported on the fly, which needs torchvision.
"""
from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import common

Record = dict[str, Any]
MODES = {"inference": False, "step": True}
MEMORY_WORDS = ("memory", "allocat", "that fits", "the plan needs", "MEM_OBJECT")
SHARE = 0.01  # of reference engines: what is too much


# Networks

def export_all(names: list[str], folder: pathlib.Path) -> int:
    """Writes the networks' JSON; lists what does not export, with the reason. The number of those."""
    import torchvision_net
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in chosen(torchvision_net.all_networks(), names):
        try:
            torchvision_net.write_json(folder / f"{name}.json", torchvision_net.export(name, 1, True, True)[0])
        except (NotImplementedError, RuntimeError, KeyError, ValueError) as error:
            failed += 1
            print(f"{name}: not exported: {error}", flush=True)
    print(f"{len(list(folder.glob('*.json')))} networks in {folder}, {failed} not exported")
    return failed


def chosen(all_names: Iterable[str], patterns: list[str]) -> list[str]:
    """Names that one of the patterns matches; all without a pattern."""
    return [name for name in sorted(all_names) if not patterns or any(fnmatch.fnmatch(name, p) for p in patterns)]


class Networks:
    """Where the networks' JSON comes from."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.made: tempfile.TemporaryDirectory[str] | None = None
        if arguments.nets:
            self.folder = arguments.nets
            self.names = chosen((path.stem for path in self.folder.glob("*.json")), arguments.names)
        else:
            import torchvision_net
            self.made = tempfile.TemporaryDirectory()
            self.folder = pathlib.Path(self.made.name)
            self.names = chosen(torchvision_net.all_networks(), arguments.names)

    def path(self, name: str) -> pathlib.Path:
        path = self.folder / f"{name}.json"
        if not path.exists():
            import torchvision_net
            torchvision_net.write_json(path, torchvision_net.export(name, 1, True, True)[0])
        return path


# dlprim

def why(error: str) -> str:
    """A failure in the report's words."""
    if any(word.lower() in error.lower() for word in MEMORY_WORDS):
        return f"does not fit memory: {error}"
    return error


def benchmark(arguments: argparse.Namespace, path: pathlib.Path, training: bool, iterations: int, warmup: int,
              more: list[str]) -> Record:
    """dlprim_benchmark's JSON; throws RuntimeError with one sentence."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        command = [arguments.benchmark, arguments.device, str(path), "-B", str(arguments.batch), "-i", str(iterations),
                   "-w", str(warmup), "--precision", arguments.precision, "--json", str(result), *(["-a"] if training else []), *more]
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=arguments.limit)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"took longer than {arguments.limit:g} s") from None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            raise RuntimeError(why(lines[-1] if lines else f"exit status {done.returncode}"))
        return json.loads(result.read_text())


def is_reference(node: Record) -> bool:
    return node["engine"].endswith(".reference")


def reference_share(nodes: list[Record]) -> float:
    """Of the time of all nodes."""
    total = math.fsum(node["ms"] for node in nodes)
    return math.fsum(node["ms"] for node in nodes if is_reference(node)) / total if total else 0.0


def expected_reference_share(notes: list[str]) -> float:
    """What the planner's note says, which is there where it expects more than SHARE."""
    said = [re.search(r"expected to take (\d+) % of the network's time in reference engines", note) for note in notes]
    return sum(int(match[1]) for match in said if match) / 100


def dlprim_record(arguments: argparse.Namespace, path: pathlib.Path, training: bool) -> Record:
    result = benchmark(arguments, path, training, arguments.iterations, arguments.warmup, ["-t"])
    nodes = result["nodes"]
    bound, ms = math.fsum(node["bound_ms"] for node in nodes), result["ms_per_batch"]["median"]
    engines: collections.Counter[str] = collections.Counter()
    for node in nodes:
        engines[node["engine"] or node["type"]] += node["ms"]
    worst = sorted(nodes, key=lambda node: node["bound_ms"] - node["ms"])[:5]
    return {"ms": ms, "min_ms": result["ms_per_batch"]["min"], "bound_ms": bound, "over_bound": ms / bound if bound else None,
            "nodes_ms": math.fsum(node["ms"] for node in nodes), "reference_share": reference_share(nodes),
            "first_batch_s": result["first_batch_ms"] / 1e3, "peak_mib": result["planned_peak_bytes"] / (1 << 20),
            "launches": result["per_batch"]["launches"],
            "worst": [{key: node[key] for key in ("name", "type", "engine", "ms", "bound_ms")} for node in worst],
            "engines_ms": dict(engines.most_common(8)), "device_name": result["device"], "driver": result["driver"]}


# PyTorch

class GpuPeer:
    """The two forms of PyTorch on a GPU: they prepare themselves from the start on."""

    def __init__(self, arguments: argparse.Namespace, name: str, training: bool) -> None:
        import gpu
        self.limit = arguments.limit
        self.forms = {layout: gpu.prepare(arguments, (name, arguments.batch, None), arguments.precision, training, last, False)
                      for layout, last in (("NCHW", False), ("channels_last", True))}

    def await_ready(self) -> None:
        self.errors = {}
        for layout in list(self.forms):
            try:
                self.forms[layout].expect_line(self.limit)
            except (RuntimeError, OSError) as error:
                self.errors[layout] = str(error)
                self.close(layout)

    def record(self) -> Record:
        results = {}
        for layout in list(self.forms):
            try:
                results[layout] = self.forms[layout].result(self.limit)
            except (RuntimeError, OSError, ValueError) as error:
                self.errors[layout] = str(error)
            self.close(layout)
        return best_form(results, self.errors)

    def close(self, layout: str) -> None:
        process = self.forms.pop(layout).process
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def end(self) -> None:
        for layout in list(self.forms):
            self.close(layout)


class CpuPeer:
    """The two forms of PyTorch on a processor, one by one."""

    def __init__(self, arguments: argparse.Namespace, name: str, training: bool) -> None:
        self.arguments, self.name, self.training = arguments, name, training

    def await_ready(self) -> None:
        """Nothing is prepared before."""

    def end(self) -> None:
        """Nothing stays."""

    def record(self) -> Record:
        results, errors = {}, {}
        for layout, form in (("NCHW", "torch"), ("channels_last", "torch_channels_last")):
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, str(pathlib.Path(__file__).with_name("cpu_peer.py")), form, self.name, folder,
                           "--batch", str(self.arguments.batch), "--threads", str(self.arguments.threads),
                           "-i", str(self.arguments.iterations), "-w", str(self.arguments.warmup),
                           *(["--training"] if self.training else [])]
                try:
                    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=self.arguments.limit)
                    results[layout] = json.loads(done.stdout.splitlines()[-1])
                except subprocess.CalledProcessError as error:
                    errors[layout] = (error.stderr.strip().splitlines() or [str(error)])[-1]
                except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
                    errors[layout] = f"{type(error).__name__}: {error}"[:200]
        return best_form(results, errors)


def best_form(results: dict[str, Record], errors: dict[str, str]) -> Record:
    if not results:
        return {"error": why("; ".join(f"{layout}: {error}" for layout, error in errors.items()))}
    layout = min(results, key=lambda form: results[form]["ms"])
    return {"ms": results[layout]["ms"], "mib": results[layout].get("mib"), "layout": layout,
            "ms_by_layout": {form: result["ms"] for form, result in results.items()}}


def peer_kind(arguments: argparse.Namespace) -> type[GpuPeer | CpuPeer] | None:
    if not arguments.torch:
        return None
    import torch
    if arguments.torch == "cuda" and not torch.cuda.is_available():
        sys.exit("sweep.py: PyTorch sees no CUDA device; --torch cpu times it on the processor")
    on_gpu = arguments.torch == "cuda" or (arguments.torch == "auto" and torch.cuda.is_available())
    if not on_gpu and arguments.precision != "fp32":
        sys.exit("sweep.py: PyTorch on processors is timed in fp32 alone")
    return GpuPeer if on_gpu else CpuPeer


# The sweep

def key_of(record: Record) -> tuple[Any, ...]:
    return tuple(record[part] for part in ("device", "net", "mode", "precision", "batch"))


def read_records(path: pathlib.Path) -> dict[tuple[Any, ...], Record]:
    """The last line of each network, mode, precision, batch and device. A line that was cut off counts as none."""
    records: dict[tuple[Any, ...], Record] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
            records[key_of(record)] = record
        except (ValueError, KeyError):
            print(f"{path}: a line that is no record is left out", file=sys.stderr)
    return records


def finished(record: Record | None, arguments: argparse.Namespace) -> bool:
    if record is None:
        return False
    failed = "error" in record or "error" in record.get("torch", {})
    return not (arguments.retry and failed) and (not arguments.torch or "torch" in record)


def jobs(arguments: argparse.Namespace, networks: Networks) -> list[tuple[str, str]]:
    """(network, mode) that the results lack."""
    seen = read_records(arguments.results)
    wanted = [(name, mode) for name in networks.names for mode in arguments.mode]
    return [(name, mode) for name, mode in wanted
            if not finished(seen.get((arguments.device, name, mode, arguments.precision, arguments.batch)), arguments)]


def groups(items: list[tuple[str, str]], size: int) -> Iterator[list[tuple[str, str]]]:
    for begin in range(0, len(items), size):
        yield items[begin:begin + size]


def one_record(arguments: argparse.Namespace, networks: Networks, name: str, mode: str, peer: GpuPeer | CpuPeer | None,
               commit: str) -> Record:
    record: Record = {"device": arguments.device, "net": name, "mode": mode, "precision": arguments.precision,
                      "batch": arguments.batch, "commit": commit}
    try:
        record |= dlprim_record(arguments, networks.path(name), MODES[mode])
    except (RuntimeError, NotImplementedError, OSError, ValueError) as error:
        record["error"] = str(error)
    if peer:
        record["torch"] = peer.record()
        if "ms" in record and "ms" in record["torch"]:
            record["ratio"] = record["torch"]["ms"] / record["ms"]
    return record


def sweep(arguments: argparse.Namespace, networks: Networks) -> None:
    kind = peer_kind(arguments)
    commit = common.library_version(arguments.benchmark)
    todo = jobs(arguments, networks)
    print(f"{len(todo)} of {len(networks.names) * len(arguments.mode)} to run", file=sys.stderr, flush=True)
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    for group in groups(todo, arguments.ahead if kind else 1):
        peers = [kind(arguments, name, MODES[mode]) if kind else None for name, mode in group]
        try:
            for peer in peers:
                if peer:
                    peer.await_ready()
            for (name, mode), peer in zip(group, peers):
                record = one_record(arguments, networks, name, mode, peer, commit)
                with arguments.results.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(line_of(record), file=sys.stderr, flush=True)
        finally:
            for peer in peers:
                if peer:
                    peer.end()


def line_of(record: Record) -> str:
    text = f"{record['net']} {record['mode']}: "
    if "error" in record:
        return text + record["error"]
    text += f"{record['ms']:.2f} ms, {record['over_bound'] or math.nan:.1f} times its bound, first batch {record['first_batch_s']:.1f} s"
    return text + (f", {record['ratio']:.2f} times as fast as PyTorch" if "ratio" in record else "")


# The report

def report(records: list[Record], picture: pathlib.Path | None) -> None:
    for mode in MODES:
        rows = [record for record in records if record["mode"] == mode]
        if rows:
            print_table(mode, sorted(rows, key=rank))
    if picture:
        draw(records, picture)


def rank(record: Record) -> tuple[int, float]:
    """Failures first, then the slowest beside PyTorch, or else the farthest from its bound."""
    if "error" in record:
        return 0, 0.0
    return (1, record["ratio"]) if "ratio" in record else (2, -(record["over_bound"] or 0.0))


def print_table(mode: str, rows: list[Record]) -> None:
    first = rows[0]
    names = {record["device_name"] for record in rows if "device_name" in record}
    print(f"\n{'Training step with Adam' if mode == 'step' else 'Inference'}, {first['precision']}, batch {first['batch']}, on "
          f"{', '.join(sorted(names)) or first['device']}\n")
    print("| net | ms | over bound | reference | first batch, s | peak, MiB | PyTorch, ms | PyTorch / dlprim | loses most |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    for record in rows:
        if "error" in record:
            print(f"| {record['net']} | {record['error']} |" + " |" * 7)
            continue
        torch = record.get("torch", {})
        theirs = f"{torch['ms']:.2f}" if "ms" in torch else torch.get("error", "-")[:60]
        worst = record["worst"][0] if record["worst"] else None
        loses = f"{worst['name']} ({worst['engine']}): {worst['ms']:.2f} of {worst['bound_ms']:.2f} ms" if worst else "-"
        print(f"| {record['net']} | {record['ms']:.2f} | {record['over_bound'] or math.nan:.2f} | {100 * record['reference_share']:.1f} % "
              f"| {record['first_batch_s']:.1f} | {record['peak_mib']:.0f} | {theirs} "
              f"| {format(record['ratio'], '.2f') if 'ratio' in record else '-'} | {loses} |")
    good = [record for record in rows if "error" not in record]
    print(f"\n{len(good)} networks, {len(rows) - len(good)} failed.", end="")
    summary("Time over the bound", [r["over_bound"] for r in good if r["over_bound"]], [r for r in good if r["over_bound"]], max)
    summary("PyTorch's time over dlprim's", [r["ratio"] for r in good if "ratio" in r], [r for r in good if "ratio" in r], min)
    print()


def summary(what: str, values: list[float], rows: list[Record], extreme: Any) -> None:
    if values:
        end = extreme(values)
        print(f" {what}: geometric mean {statistics.geometric_mean(values):.2f}, {extreme.__name__} {end:.2f} "
              f"({rows[values.index(end)]['net']}).", end="")


def draw(records: list[Record], path: pathlib.Path) -> None:
    """Bars by network, sorted: the ratio to PyTorch where it was timed, or the time over the bound."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print(f"{path} is not drawn: matplotlib is not installed", file=sys.stderr)
        return
    measure = "ratio" if any("ratio" in record for record in records) else "over_bound"
    modes = [mode for mode in MODES if any(record["mode"] == mode and record.get(measure) for record in records)]
    if not modes:
        print(f"{path} is not drawn: there is nothing to draw", file=sys.stderr)
        return
    count = max(sum(record["mode"] == mode for record in records) for mode in modes)
    figure, axes = pyplot.subplots(1, len(modes), figsize=(6 * len(modes), 1 + 0.17 * count), squeeze=False)
    for mode, ax in zip(modes, axes[0]):
        rows = sorted((record for record in records if record["mode"] == mode and record.get(measure)), key=lambda r: r[measure])
        values = [record[measure] for record in rows]
        good = [value >= 1 for value in values] if measure == "ratio" else [True] * len(values)
        ax.barh([record["net"] for record in rows], values, color=["#4477aa" if ok else "#cc6677" for ok in good])
        ax.axvline(1, color="black", linewidth=0.8)
        ax.tick_params(labelsize=6)
        ax.margins(y=0.01)
        ax.set_xlabel("PyTorch's time over dlprim's" if measure == "ratio" else "time over the roofline bound")
        ax.set_title(f"{'training step' if mode == 'step' else 'inference'}, {rows[0]['precision']}, batch {rows[0]['batch']}, "
                     f"geometric mean {statistics.geometric_mean(values):.2f}", fontsize=9)
    figure.tight_layout()
    figure.savefig(path)
    print(f"wrote {path}", file=sys.stderr)


def print_reference_share(arguments: argparse.Namespace, networks: Networks) -> int:
    """The exit status: 1 where a share is too large or unknown."""
    bad = 0
    for name in networks.names:
        for mode in arguments.mode:
            try:
                result = benchmark(arguments, networks.path(name), MODES[mode], 1, 1, [] if arguments.fast else ["-t"])
            except (RuntimeError, NotImplementedError, OSError, ValueError) as error:
                bad += 1
                print(f"{name:24s} {mode:10s} unknown: {error}", flush=True)
                continue
            share = expected_reference_share(result["notes"]) if arguments.fast else reference_share(result["nodes"])
            slow = [] if arguments.fast else sorted(filter(is_reference, result["nodes"]), key=lambda node: -node["ms"])[:3]
            bad += share > SHARE
            print(f"{name:24s} {mode:10s} {100 * share:6.2f} %{' TOO MUCH' if share > SHARE else ''}"
                  + "".join(f"; {node['name']} by {node['engine']}" for node in slow), flush=True)
    print(f"{bad} of {len(networks.names) * len(arguments.mode)} over {100 * SHARE:g} % or unknown")
    return 1 if bad or not networks.names else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--device", default="gpu", help="dlprim's device (gpu)")
    parser.add_argument("--benchmark", default=common.BENCHMARK, help="dlprim_benchmark")
    parser.add_argument("--names", nargs="+", default=[], help="networks, * and ? match any letters; default: all")
    parser.add_argument("--nets", type=pathlib.Path, help="a folder of JSON; default: exported on the fly")
    parser.add_argument("--export", type=pathlib.Path, metavar="DIR", help="write the networks' JSON there, and nothing else")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("sweep.jsonl"), help="a record a line (sweep.jsonl)")
    parser.add_argument("--report", action="store_true", help="run nothing: the table of what the results hold")
    parser.add_argument("--picture", type=pathlib.Path, help="an SVG or PNG; default: beside the results, as SVG")
    parser.add_argument("--mode", nargs="+", choices=list(MODES), default=list(MODES))
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "fp16", "bf16"])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--torch", nargs="?", const="auto", choices=["auto", "cuda", "cpu"],
                        help="time PyTorch, too: on CUDA where there is such a device (auto), or as it says")
    parser.add_argument("--ahead", type=int, default=4, help="how many networks PyTorch prepares before they are measured (4)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of PyTorch on a processor")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one run of one network (300)")
    parser.add_argument("--retry", action="store_true", help="run again what failed")
    parser.add_argument("--quick", action="store_true", help="3 batches after 2, in place of -i and -w")
    parser.add_argument("-i", "--iterations", type=int, default=20)
    parser.add_argument("-w", "--warmup", type=int, default=5)
    parser.add_argument("--reference-share", action="store_true", help="print the share of reference engines alone")
    parser.add_argument("--fast", action="store_true", help="with --reference-share: do not time nodes")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.iterations, arguments.warmup = 3, 2
    return arguments


def main() -> int:
    arguments = parse()
    if arguments.export:
        return 1 if export_all(arguments.names, arguments.export) else 0
    if not arguments.report and not os.access(arguments.benchmark, os.X_OK):
        sys.exit(f"sweep.py: there is no dlprim_benchmark at {arguments.benchmark}: give its path with --benchmark")
    if arguments.reference_share:
        return print_reference_share(arguments, Networks(arguments))
    if not arguments.report:
        sweep(arguments, Networks(arguments))
    wanted = [record for record in read_records(arguments.results).values()
              if record["device"] == arguments.device and record["precision"] == arguments.precision
              and record["batch"] == arguments.batch and record["mode"] in arguments.mode
              and chosen([record["net"]], arguments.names)]
    report(wanted, arguments.picture or arguments.results.with_suffix(".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
