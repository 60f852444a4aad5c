#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a kernel, or a text from which one is made, calls a mathematical function of OpenCL C that the survey of
drivers does not try (src/runtime/math_functions.cpp) and that is not exact by its definition. It first shows on made-up
texts that it can fail. Usage: builtins_test.py [REPOSITORY]."""

import pathlib
import re
import sys

from rules import repository, told

# The mathematical, common and geometric functions of OpenCL C 3.0 (6.15.2, 6.15.4, 6.15.5).
MATHEMATICAL = set(
    """acos acosh acospi asin asinh asinpi atan atan2 atanh atanpi atan2pi cbrt ceil copysign cos cosh cospi erfc erf
    exp exp2 exp10 expm1 fabs fdim floor fma fmax fmin fmod fract frexp hypot ilogb ldexp lgamma lgamma_r log log2
    log10 log1p logb mad maxmag minmag modf nan nextafter pow pown powr remainder remquo rint rootn round rsqrt sin
    sincos sinh sinpi sqrt tan tanh tanpi tgamma trunc clamp degrees max min mix radians step smoothstep sign cross
    dot distance length normalize fast_distance fast_length fast_normalize""".split()
)
APPROXIMATE = re.compile(r"(?:native|half)_(?:cos|divide|exp|exp2|exp10|log|log2|log10|powr|recip|rsqrt|sin|sqrt|tan)$")
# They move, compare or scale a number, or are rounded correctly by their definition.
EXACT = {"ceil", "clamp", "copysign", "fabs", "floor", "fma", "fmax", "fmin", "ilogb", "ldexp", "max", "min"}
EXACT |= {"nextafter", "rint", "trunc"}
# The pointwise language has these, too, for which the generator writes other text (src/engine/pointwise/emit_*.cpp).
LANGUAGE = {"remainder", "round", "sign"}
# kernels/probe/peak.cl measures how many a device does, and nobody reads the results; mul_add() promises no rounding.
MEASURED = {"mad"}
# The rooms that write kernels.
ROOMS = ("runtime", "collective", "engine", "ops", "plan", "exec")

CALL = re.compile(r"(?<!\.)\b([a-z_][a-z0-9_]*)\(")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'R"([^(\s]*)\((.*?)\)\1"|"((?:\\.|[^"\\\n])*)"', re.DOTALL)
SURVEYED = re.compile(r'^    \{"(\w+)", [12], ', re.MULTILINE)
TABLE = re.compile(r'^    \{"(\w+)", Op::', re.MULTILINE)


def strings(text: str) -> str:
    return "\n".join(raw or plain for _, raw, plain in STRING.findall(text))


def calls(root: pathlib.Path) -> dict[str, str]:
    """The mathematical functions that kernels call, each with a file that does."""
    found: dict[str, str] = {}
    paths = sorted((root / "kernels").rglob("*.cl*"))
    for room in ROOMS:
        paths += sorted((root / "src" / room).rglob("*.?pp"))
    for path in paths:
        text = path.read_text(encoding="utf-8")
        is_kernel = path.suffix in {".cl", ".clh"}
        names = CALL.findall(COMMENT.sub("", text) if is_kernel else strings(text))
        if path.name == "functions.cpp" and not is_kernel:
            names += TABLE.findall(text)
        for name in names:
            if name in MATHEMATICAL or APPROXIMATE.match(name):
                found.setdefault(name, path.relative_to(root).as_posix())
    return found


def faults(called: dict[str, str], surveyed: set[str]) -> list[str]:
    unknown = sorted(called.keys() - surveyed - EXACT - LANGUAGE - MEASURED)
    lost = sorted(surveyed - called.keys())
    table = "src/runtime/math_functions.cpp"
    missing = [
        f"{called[name]} calls {name}(), which drivers are not tried with: give it a row in {table}" for name in unknown
    ]
    return missing + [f"drivers are tried with {name}(), which nothing calls: take it out of {table}" for name in lost]


def can_fail() -> bool:
    """On texts with a function that is new, one by each way of writing kernels."""
    ways = {name for name in CALL.findall(COMMENT.sub("", "y = tgamma(x); // cbrt(x)")) if name in MATHEMATICAL}
    written = set(CALL.findall(strings('out.line("y = sinpi(x)"); std::cbrt(x);')))
    return (
        ways == {"tgamma"}
        and written & MATHEMATICAL == {"sinpi"}
        and bool(APPROXIMATE.match("native_exp"))
        and len(faults({"tgamma": "a.cl"}, {"exp"})) == 2
        and not faults({"exp": "a.cl", "fabs": "a.cl"}, {"exp"})
    )


def main() -> int:
    root = repository()
    if not can_fail():
        print("builtins_test.py does not see a function that is new")
        return 1
    surveyed = set(SURVEYED.findall((root / "src/runtime/math_functions.cpp").read_text(encoding="utf-8")))
    found = faults(calls(root), surveyed)
    return told(found, f"{len(surveyed)} functions are surveyed") or int(not surveyed)


if __name__ == "__main__":
    sys.exit(main())
