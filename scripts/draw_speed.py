#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the README's picture of speed, docs/speed.svg, from the tables of docs/benchmarks.md.

    scripts/draw_speed.py             # writes docs/speed.svg
    scripts/draw_speed.py --check     # fails where the picture is not that of the tables

A bar is a network: how many times as fast as the best peer of its row it is.
"""
import argparse
import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE, PICTURE = ROOT / "docs/benchmarks.md", ROOT / "docs/speed.svg"
NETWORKS = ["alexnet", "resnet18", "resnet50", "vgg16", "mobilenet_v2"]
# A panel: its title, the table's heading, the row of a network, and the column of the ratio.
PANELS = [
    ("NVIDIA H200, inference, fp32", "beside PyTorch with CUDA, batch 64", "NVIDIA H200", "{}, inference", 3),
    ("NVIDIA H200, training step, fp32", "beside PyTorch with CUDA, batch 64", "NVIDIA H200", "{}, Adam step", 3),
    ("2 cores of Zen 4, inference, fp32", "beside the best of PyTorch, ONNX Runtime, OpenVINO and ncnn, batch 1",
     "2 cores of an AMD EPYC (Zen 4", "{}, batch 1", -1),
    ("2 cores of Zen 4, training step, fp32", "beside PyTorch, batch 16",
     "2 cores of an AMD EPYC (Zen 4", "{}, Adam step, batch 16", -1),
]
PANEL_WIDTH, PANEL_HEIGHT, LEFT, ROW = 450, 225, 105, 29
BAR, INK = "#1b6ca8", "#24292f"


def ratio(page, heading, row, column):
    """The number in a column of a row of the table under a heading."""
    section = next(part for part in re.split(r"^## ", page, flags=re.MULTILINE) if part.startswith(heading))
    cells = next(line for line in section.split("\n") if line.startswith(f"| {row} |")).strip("|").split("|")
    return float(cells[column])


def panel(most, ratios, title, peers):
    """SVG elements of one panel, its corner at (0, 0). `most`: where the axis ends."""
    scale = (PANEL_WIDTH - LEFT - 55) / most
    bottom = 55 + ROW * len(NETWORKS)
    yield f'<text x="12" y="22" class="title">{escape(title)}</text>'
    yield f'<text x="12" y="40" class="faint">{escape(peers)}</text>'
    for times in range(most + 1):
        x = LEFT + times * scale
        yield f'<line x1="{x:.1f}" y1="50" x2="{x:.1f}" y2="{bottom}" stroke="#d0d7de"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 14}" class="faint" text-anchor="middle">{times}x</text>'
    for place, (network, value) in enumerate(zip(NETWORKS, ratios)):
        y = 55 + ROW * place
        yield f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{network}</text>'
        yield f'<rect x="{LEFT}" y="{y}" width="{value * scale:.1f}" height="20" fill="{BAR}" rx="2"/>'
        yield f'<text x="{LEFT + value * scale + 6:.1f}" y="{y + 15}">{value:.1f}</text>'
    x = LEFT + scale
    yield f'<line x1="{x:.1f}" y1="50" x2="{x:.1f}" y2="{bottom}" stroke="{INK}" stroke-width="1.5"/>'


def picture(page):
    width, height = 2 * PANEL_WIDTH, 2 * PANEL_HEIGHT + 24
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>text {{ font: 13px sans-serif; fill: {INK} }} .title {{ font-weight: bold; font-size: 14px }} "
        f".faint {{ fill: #57606a; font-size: 11px }}</style>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    ratios = [[ratio(page, heading, row.format(network), column) for network in NETWORKS]
              for _, _, heading, row, column in PANELS]
    most = math.ceil(max(map(max, ratios)))
    for place, (title, peers, *_) in enumerate(PANELS):
        x, y = place % 2 * PANEL_WIDTH, place // 2 * PANEL_HEIGHT
        lines += [f'<g transform="translate({x} {y})">', *panel(most, ratios[place], title, peers), "</g>"]
    lines += [f'<text x="12" y="{height - 8}" class="faint">How many times as fast as its best peer dlprim is. '
              "Longer is faster; the dark line is the peer.</text>", "</svg>"]
    return "\n".join(lines) + "\n"


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--check", action="store_true", help="compare with docs/speed.svg, and write nothing")
drawn = picture(PAGE.read_text())
if not parser.parse_args().check:
    PICTURE.write_text(drawn)
elif not PICTURE.exists() or PICTURE.read_text() != drawn:
    sys.exit("docs/speed.svg is not the picture of docs/benchmarks.md: run scripts/draw_speed.py")
