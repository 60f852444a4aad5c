#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the rooms of src and what they include, docs/rooms.svg, from the files themselves.

    scripts/draw_rooms.py             # writes docs/rooms.svg
    scripts/draw_rooms.py --check     # fails where the picture is not that of the tree

An arrow goes from a room to one that it includes; left out are those that follow from others, by way of a third room.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/rooms.svg"
NOTES = {
    "base": "shapes, types, errors, text",
    "runtime": "devices, memory, queues, programs",
    "collective": "sums over several devices",
    "engine": "engines, databases, generated kernels",
    "graph": "graph, operators' contract, passes",
    "ops": "one folder per operator, its engines",
    "formats": "JSON, HDF5, IDX",
    "check": "data, runs and tolerances of checks",
    "plan": "choice of engines, memory plan",
    "exec": "replay of plans, eager calls",
    "train": "solvers, schedules, data",
    "api": "what include/dlprim promises",
    "language": "language models: sessions, tokenizers",
}
WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 250, 48, 290, 86, 20
INK, PAPER, FAINT = "#24292f", "#eaf2fa", "#57606a"


def includes():
    """{room: the other rooms that its files include}."""
    rooms = sorted(path.name for path in (ROOT / "src").iterdir() if path.is_dir())
    if set(rooms) != set(NOTES):
        sys.exit(f"scripts/draw_rooms.py has notes on {sorted(NOTES)}, src has the rooms {rooms}")
    found = {room: set() for room in rooms}
    for room in rooms:
        for path in (ROOT / "src" / room).rglob("*.[ch]pp"):
            found[room] |= set(re.findall(r'^#include "(\w+)/', path.read_text(), re.MULTILINE)) & set(rooms) - {room}
    return found


def reach(edges, room):
    """All rooms that one includes, directly or by way of others."""
    return set().union(*({other} | reach(edges, other) for other in edges[room]))


def reduced(edges):
    """The edges that do not follow from others."""
    return {room: {other for other in others if not any(other in reach(edges, third) for third in others)}
            for room, others in edges.items()}


def level(edges, room):
    return 1 + max((level(edges, other) for other in edges[room]), default=-1)


def picture():
    edges = reduced(includes())
    rows = {}
    for room in sorted(edges):
        rows.setdefault(level(edges, room), []).append(room)
    most = max(map(len, rows.values()))
    width, height = most * ACROSS - (ACROSS - WIDTH) + 2 * MARGIN, (len(rows) + 1) * DOWN + MARGIN
    place = {}
    for row, rooms in sorted(rows.items()):
        # A room stands above what it includes, as far as there is room beside its neighbours.
        rooms.sort(key=lambda room: (sum(place[other][0] for other in edges[room]) / max(1, len(edges[room])), room))
        for i, room in enumerate(rooms):
            place[room] = (width / 2 + (i - (len(rooms) - 1) / 2) * ACROSS, height - MARGIN - HEIGHT / 2 - row * DOWN)
    top = (width / 2, MARGIN + HEIGHT / 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>text {{ font: 12px sans-serif; fill: {FAINT}; text-anchor: middle }} "
        f".room {{ font-weight: bold; font-size: 15px; fill: {INK} }}</style>",
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{INK}"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]

    def arrow(begin, end):
        lines.append(f'<line x1="{begin[0]:.0f}" y1="{begin[1] + HEIGHT / 2:.0f}" x2="{end[0]:.0f}" '
                     f'y2="{end[1] - HEIGHT / 2:.0f}" stroke="{INK}" marker-end="url(#tip)"/>')

    def box(at, name, note, fill):
        lines.append(f'<rect x="{at[0] - WIDTH / 2:.0f}" y="{at[1] - HEIGHT / 2:.0f}" width="{WIDTH}" height="{HEIGHT}" '
                     f'rx="6" fill="{fill}" stroke="{INK}"/>')
        lines.append(f'<text x="{at[0]:.0f}" y="{at[1] - 4:.0f}" class="room">{name}</text>')
        lines.append(f'<text x="{at[0]:.0f}" y="{at[1] + 15:.0f}">{note}</text>')

    arrow(top, place["api"])
    for room, others in sorted(edges.items()):
        for other in sorted(others):
            arrow(place[room], place[other])
    box(top, "tools, examples, python", "see include/dlprim alone", "white")
    for room, at in sorted(place.items()):
        box(at, f"src/{room}", NOTES[room], PAPER)
    return "\n".join([*lines, "</svg>"]) + "\n"


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--check", action="store_true", help="compare with docs/rooms.svg, and write nothing")
drawn = picture()
if not parser.parse_args().check:
    PICTURE.write_text(drawn)
elif not PICTURE.exists() or PICTURE.read_text() != drawn:
    sys.exit("docs/rooms.svg is not the picture of src: run scripts/draw_rooms.py")
