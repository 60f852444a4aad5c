#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The first program of docs/first_program.md is examples/first_program/main.cpp, which runs; its network is the same in both
places, and runs. README.md has 120 lines at most, and its times are those of docs/benchmarks.md. docs/json.md's table of activations is that of the source.

    readme_test.py FIRST_PROGRAM [TOOLS]

TOOLS is the folder of the commands.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
readme = (root / "README.md").read_text()
first_program = (root / "docs/first_program.md").read_text()
assert len(readme.splitlines()) <= 120, "README.md has more than 120 lines: details belong to docs"


def block(language):
    found = re.search(rf"```{language}\n(.*?)```", first_program, re.DOTALL)
    assert found, f"docs/first_program.md has no block of {language}"
    return found.group(1)


assert block("cpp") == (root / "examples/first_program/main.cpp").read_text(), \
    "docs/first_program.md's program is not examples/first_program/main.cpp"

network = json.loads(block("json"))
program = json.loads(re.search(r'R"\((.*?)\)"', block("cpp"), re.DOTALL).group(1))
assert network["operators"] == program["operators"][:-1], "docs/first_program.md's two networks differ"

# Its numbers are those of the tables.
times = re.findall(r"\b([\d.]+) ms\b", readme)
tables = re.findall(r"[\d.]+", (root / "docs/benchmarks.md").read_text())
assert len(times) >= 6 and set(times) <= set(tables), f"README.md's times {times} are not all in docs/benchmarks.md"
rows = re.findall(r"\| ([\d.]+) ms \| ([\d.]+) ms.*\*\*([\d.]+) times", readme)
assert len(times) == 2 * len(rows), f"README.md has times {times} in other places than rows of the form that is checked here"
for mine, peer, ratio in rows:
    assert f"{float(peer) / float(mine):.1f}" == ratio, f"README.md calls {peer} / {mine} {ratio}"

done = subprocess.run([sys.argv[1], "cpu"], capture_output=True, text=True, timeout=120)
print(done.stdout, done.stderr)
assert done.returncode == 0, f"the first program ended with {done.returncode}"
assert "of 64 right" in done.stdout

documented = {}
for names, parameters in re.findall(r"^\| (`[^|]*) \|[^|]*\|([^|]*)\|$",
                                    (root / "docs/json.md").read_text().split("### Activations")[1].split("###")[0], re.MULTILINE):
    defaults = tuple(float(value) for value in re.findall(r"(?:alpha|beta) \(([-0-9.]+)\)", parameters))
    documented |= {name: defaults for name in re.findall(r"`(\w+)`", names)}
table = re.search(r"activations = \{\n(.*?)\n    \};", (root / "src/engine/activations.cpp").read_text(), re.DOTALL).group(1)
rows = re.findall(r'^        \{"(\w+)",(?:[^"{}]|"[^"]*")*?((?:, -?[0-9.]+)*)\}', table, re.MULTILINE)
written = {name: tuple(float(value) for value in defaults.split(",")[1:]) for name, defaults in rows}
assert len(written) > 25 and documented == written, f"docs/json.md has activations {documented}, the source {written}"


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, f"{command}: {done}"
    return done.stdout


if len(sys.argv) > 2:
    tools = pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        net = pathlib.Path(folder) / "net.json"
        net.write_text(block("json"))
        shown = run(tools / "dlprim_flops", net, "-d", "cpu")
        # (2 + 1) x 32 of the hidden layer, (32 + 1) x 2 of the scores.
        assert re.search(r"parameters\D*162\b", shown), shown
        try:
            import h5py
            import numpy
        except ImportError as lacking:
            print(f"net.json is not run: {lacking}")
        else:
            random = numpy.random.default_rng(1)
            shapes = {"hidden.0": (32, 2), "hidden.1": (32,), "scores.0": (2, 32), "scores.1": (2,), "data": (64, 2)}
            w = {name: random.standard_normal(shape).astype(numpy.float32) for name, shape in shapes.items()}
            for file, names in (("w.h5", list(shapes)[:4]), ("in.h5", ["data"])):
                with h5py.File(pathlib.Path(folder) / file, "w") as file:
                    for name in names:
                        file[name] = w[name]
            run(tools / "dlprim_run", net, "-d", "cpu", "--weights", f"{folder}/w.h5", "--inputs", f"{folder}/in.h5",
                "--outputs", f"{folder}/out.h5")
            with h5py.File(f"{folder}/out.h5", "r") as file:
                scores = file["scores"][()]
            hidden = numpy.maximum(w["data"] @ w["hidden.0"].T + w["hidden.1"], 0)
            numpy.testing.assert_allclose(scores, hidden @ w["scores.0"].T + w["scores.1"], rtol=1e-4, atol=1e-5)
