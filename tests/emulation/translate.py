#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turns a kernel of kernels/ into C++ that tests/emulation/work_group.hpp runs.

    translate.py KERNELS_FOLDER PATH OUTPUT

For kernels with instructions of one vendor's devices, which no OpenCL implementation on a CPU takes. Includes are
resolved; address spaces go; local arrays come from the emulated work-group; what holds inline PTX (macros and
functions) is left out: work_group.hpp defines all of that by the same names. Only what these kernels use of the
language is understood.
"""
import pathlib
import re
import sys

# Defined in work_group.hpp.
MACROS = {"WGMMA_64", "WGMMA_128", "WGMMA_BEGIN", "WGMMA_COMMIT", "WGMMA_WAIT_32", "WGMMA_WAIT_64", "WGMMA_FENCE", "WGMMA_D8",
          "WGMMA_D32", "WGMMA_D64", "COPY_16", "COPY_16_OF", "COPY_16_SHARED_OF", "COPY_4_OF", "COPY_COMMIT", "COPY_WAIT", "SPLIT_UNPACK", "SHUFFLE_XOR",
          "HALF_64", "HALF_128", "HALF_256", "HALF_R128", "HALF_WAIT", "HALF_WAIT_128", "HALF_COPY", "HALF_COPY_OF", "HALF_COPY_ONCE_OF",
          "HALF_COPY_COMMIT", "HALF_COPY_WAIT", "HALF_COPY_WAIT_ALL"}
FUNCTIONS = ["split_pack", "warp_max", "pack_half", "pack_bfloat"]


def load(root, path):
    lines = []
    for line in (root / path).read_text().splitlines():
        include = re.match(r'#include "(.*)"', line)
        lines.append(load(root, include.group(1)) if include else line)
    return "\n".join(lines)


def without_macros(text):
    kept, lines = [], iter(text.split("\n"))
    for line in lines:
        name = re.match(r"#define (\w+)", line)
        if not name or name.group(1) not in MACROS:
            kept.append(line)
            continue
        while line.endswith("\\"):
            line = next(lines)
    return "\n".join(kept)


def translate(text):
    text = without_macros(text).replace("EPILOGUE_PARAMETERS", "")
    for function in FUNCTIONS:
        text = re.sub(rf"inline uint {function}\(.*?\n}}\n", "", text, flags=re.S)
    text = re.sub(r"kernel (__attribute__\(\(.*?\)\)\) )?void", "void", text)
    text = re.sub(r"\blocal (uchar|float|int|uint) (\w+)\[([^\]]*)\]( __attribute__\(\(aligned\(\d+\)\)\))?;",
                  r'\1* \2 = (\1*)local_array("\2", sizeof(\1) * (\3));', text)
    text = re.sub(r"\b(global|local)\b", "", text)
    text = re.sub(r"\((u?int[24]|float[24])\)\(([^;]*)\);", r"\1{\2};", text)
    text = re.sub(r"\(uint\)(tiles|unscale)\b", r"local_address(\1)", text)
    # Several kernels go into one program.
    text += "\n" + "".join(f"#undef {name}\n" for name in sorted(set(re.findall(r"^#define (\w+)", text, flags=re.M))))
    if "asm" in re.sub(r"//.*", "", text):
        sys.exit("some inline assembly is left: name its macro or function in translate.py and define it in work_group.hpp")
    return text


if __name__ == "__main__":
    pathlib.Path(sys.argv[3]).write_text(translate(load(pathlib.Path(sys.argv[1]), sys.argv[2])))
