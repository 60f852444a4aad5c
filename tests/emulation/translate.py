#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns a kernel of kernels/ into C++ that tests/emulation/work_group.hpp runs.

    translate.py KERNELS_FOLDER PATH UNIT OUTPUT

Such a kernel has instructions of one vendor's devices, so no OpenCL implementation on a CPU compiles it. UNIT is the
unit of matrix/unit.clh: wgmma or mma. Includes are resolved, and address spaces are removed. Local arrays come from the
emulated work-group. Macros and functions with inline PTX are left out, because work_group.hpp defines them by the same
names. The translator understands only the part of the language that these kernels use.
"""
import pathlib
import re
import sys

# Names that work_group.hpp defines: those of one unit, and those for all kernels.
UNITS = {
    "wgmma": {"UNIT_64", "UNIT_128", "UNIT_BEGIN", "UNIT_COMMIT", "UNIT_WAIT_32", "UNIT_WAIT_64", "UNIT_FENCE", "WGMMA_D8",
              "WGMMA_D32", "WGMMA_D64", "HALF_64", "HALF_128", "HALF_256", "HALF_R128", "HALF_WAIT", "HALF_WAIT_128"},
    "mma": {"MMA_LOAD_0", "MMA_LOAD_1", "MMA_ADD", "MMA_ADD_1", "MMA_ADD_2"},
}
MACROS = {"COPY_16", "COPY_16_OF", "COPY_16_NEAR_OF", "COPY_4_OF", "COPY_COMMIT", "COPY_WAIT_BUT", "SPLIT_UNPACK",
          "SHUFFLE_XOR", "VOTE", "WORKER_BARRIER", "POWER_OF_2", "MBARRIER_BEGIN", "MBARRIER_ARRIVE", "MBARRIER_AWAIT", "WGMMA_R16", "UNIT_TWO_RESIDENT", "WGMMA_N8", "WGMMA_N32",
          "WGMMA_TEXT", "WGMMA_A", "UNIT_64_SET", "UNIT_64_ADD", "UNIT_64_OF_SET", "UNIT_64_OF_ADD", "UNIT_32_OF_SET",
          "UNIT_32_OF_ADD", "UNIT_WAIT_16", "UNIT_WAIT_BUT_32", "UNIT_WAIT_BUT", "UNIT_ZERO", "FIRST_LANE"}
FUNCTIONS = ["split_pack", "warp_max", "pack_half", "pack_bfloat"]


def load(root, path, unit, seen):
    """The file's text, each included one once, as the library reads it."""
    seen.add(path)
    lines = []
    for line in (root / path).read_text().splitlines():
        include = re.match(r'#include "(.*)"', line)
        if include and include.group(1) in {f"matrix/unit_{name}.clh" for name in UNITS if name != unit}:
            continue
        if include and include.group(1) in seen:
            continue
        lines.append(load(root, include.group(1), unit, seen) if include else line)
    return "\n".join(lines)


def without_macros(text, macros):
    kept, lines = [], iter(text.split("\n"))
    for line in lines:
        name = re.match(r"#define (\w+)", line)
        if not name or name.group(1) not in macros:
            kept.append(line)
            continue
        while line.endswith("\\"):
            line = next(lines)
    return "\n".join(kept)


def vectors(text):
    """(float2)(a, b) -> float2{a, b}."""
    pieces, at = [], 0
    for start in re.finditer(r"\((u?int[24]|float[24])\)\(", text):
        depth, end = 1, start.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        if start.start() < at:
            sys.exit("a vector within a vector is more than is understood")
        pieces += [text[at:start.start()], start.group(1), "{", text[start.end():end - 1], "}"]
        at = end
    return "".join(pieces) + text[at:]


def local_arrays(declaration):
    kind = declaration.group(1)
    return " ".join(f'{kind}* {name} = ({kind}*)local_array("{name}", sizeof({kind}) * ({size}));'
                    for name, size in re.findall(r"(\w+)\[([^\];]*)\]", declaration.group(2)))


def translate(text, unit):
    text = without_macros(text, MACROS | UNITS[unit]).replace("EPILOGUE_PARAMETERS", "")
    for function in FUNCTIONS:
        text = re.sub(rf"inline uint {function}\(.*?\n}}\n", "", text, flags=re.S)
    text = re.sub(r"kernel (__attribute__\(\(.*?\)\)\) )?void", "void", text)
    text = re.sub(r" __attribute__\(\(aligned\(\d+\)\)\)", "", text)
    text = re.sub(r"\blocal (\w+) (\w+\[[^\];]*\](?:, \w+\[[^\];]*\])*);", local_arrays, text)
    text = re.sub(r"\b(global|local)\b", "", text)
    text = vectors(text)
    text = re.sub(r"\(uint\)(tiles|columns|unscale|weights|windows|meetings)\b", r"local_address(\1)", text)
    # A program may include several kernels, which define the same names.
    text += "\n" + "".join(f"#undef {name}\n" for name in sorted(set(re.findall(r"^#define (\w+)", text, flags=re.M))))
    if "asm" in re.sub(r"//.*", "", text):
        sys.exit("some inline assembly is left: name its macro or function in translate.py and define it in work_group.hpp")
    return text


if __name__ == "__main__":
    pathlib.Path(sys.argv[4]).write_text(translate(load(pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], set()), sys.argv[3]))
