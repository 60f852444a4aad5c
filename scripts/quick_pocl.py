#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a PoCL that reads fewer declarations before each program, for scripts/test.sh.

    quick_pocl.py ICD FOLDER        prints the library's path in FOLDER, for an ICD file

PoCL reads opencl-c.h before every program: 14,500 declarations, most of them conversions. Without most of them the tests on
PoCL take a sixth to a quarter less. PoCL finds the header by its library's path, so FOLDER gets links to the library and to
its files, and a header without the functions whose names no file of this project has. What is compiled stays the same: a
function without a declaration is an error. Where PoCL's files lie otherwise, or no device is found so, nothing is printed and
the exit status is 1.
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys

HEADER = "opencl-c.h"
# Exits with 0 if the loader finds a device in the folder of OCL_ICD_VENDORS.
FIND_DEVICE = """
import ctypes, sys
loader = ctypes.CDLL("libOpenCL.so.1")
platform, count = ctypes.c_void_p(), ctypes.c_uint()
found = loader.clGetPlatformIDs(1, ctypes.byref(platform), None) == 0
every_type = ctypes.c_ulong(0xffffffff)
found = found and loader.clGetDeviceIDs(platform, every_type, 0, None, ctypes.byref(count)) == 0
sys.exit(not (found and count.value))
"""


def library_of(icd: pathlib.Path) -> pathlib.Path:
    """The file that the loader takes for the ICD, whose name may lack its folder."""
    name = icd.read_text().strip()
    ctypes.CDLL(name)
    maps = pathlib.Path("/proc/self/maps").read_text()
    return pathlib.Path(re.search(rf"\S*/{re.escape(os.path.basename(os.path.realpath(name)))}\S*", maps).group(0))


def named(repository: pathlib.Path) -> set[str]:
    """All words of the files that may hold OpenCL C, and names that are put together when kernels are written."""
    names: set[str] = set()
    for folder in ("kernels", "src", "tests", "python", "examples", "benchmarks"):
        for path in (repository / folder).rglob("*"):
            if path.suffix in {".cl", ".clh", ".cpp", ".hpp", ".py", ".json"}:
                names.update(re.findall(r"\w+", path.read_text(errors="replace")))
    integers = ("char", "short", "int", "long")
    kinds = (*integers, *(f"u{kind}" for kind in integers), "half", "float", "double")
    ways = [(f"convert_{kind}", ending) for kind in kinds for ending in ("", "_sat")]
    ways += [(way, "") for way in ("vload", "vstore", "vload_half", "vloada_half")]
    ways += [(way, ending) for way in ("vstore_half", "vstorea_half") for ending in ("", "_rte")]
    return names | {f"{way}{width}{ending}" for way, ending in ways for width in ("", 2, 3, 4, 8, 16)}


def shortened(header: str, names: set[str]) -> str:
    """The header without the functions of other names. A declaration may have several lines."""
    lines: list[str] = []
    declaration: list[str] = []
    for line in header.split("\n"):
        if not declaration and not re.match(r"\w[\w \t*]*\b__ovld\b", line):
            lines.append(line)
            continue
        declaration.append(line)
        if line.rstrip().endswith(";"):
            function = re.search(r"(\w+)\s*\(", " ".join(declaration))
            if function is None or function.group(1) in names:
                lines += declaration
            declaration = []
    return "\n".join(lines + declaration)


def main() -> int:
    icd, folder = (pathlib.Path(one) for one in sys.argv[1:])
    library = library_of(icd)
    shared = library.parents[2] / "share/pocl"
    if not (shared / "include" / HEADER).is_file():
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    own_library, own_shared, vendors = folder / "lib/pocl" / library.name, folder / "share/pocl", folder / "vendors"
    for made in (own_library.parent, own_shared / "include", vendors):
        made.mkdir(parents=True)
    own_library.symlink_to(library)
    (own_library.parent / "pocl").symlink_to(library.parent / "pocl")
    for path in [*shared.iterdir(), *(shared / "include").iterdir()]:
        if path.name not in {"include", HEADER}:
            (own_shared / path.relative_to(shared)).symlink_to(path)
    names = named(pathlib.Path(__file__).resolve().parent.parent)
    (own_shared / "include" / HEADER).write_text(shortened((shared / "include" / HEADER).read_text(), names))
    (vendors / "pocl.icd").write_text(f"{own_library}\n")
    if subprocess.run(
        [sys.executable, "-c", FIND_DEVICE], env={**os.environ, "OCL_ICD_VENDORS": str(vendors)}
    ).returncode:
        return 1
    print(own_library)
    return 0


if __name__ == "__main__":
    sys.exit(main())
