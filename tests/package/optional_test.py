#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when a build that lacks something optional does not configure, or does not say what it leaves out and what to install;
or when one that lacks CLI11 does not say so in a sentence.

    optional_test.py CMAKE COMPILER
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What is left out: the line of the table that says so, and the packages that it names.
CASES = {
    "-DCMAKE_DISABLE_FIND_PACKAGE_PNG=ON": {"PNG pictures": "libpng-dev"},
    "-DCMAKE_DISABLE_FIND_PACKAGE_JPEG=ON": {"JPEG pictures": "libjpeg-dev"},
    "-DDLPRIM_WITH_ONNX=OFF": {"ONNX models": "libonnx-dev"},
    "-DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON": {"ONNX models": "protobuf-compiler"},
    # libpng needs zlib.
    "-DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON": {"compressed IDX and .npz files": "zlib1g-dev", "PNG pictures": "libpng-dev"},
}


def configure(cmake, compiler, folder, *options, fails=False):
    command = [cmake, "-S", ROOT, "-B", folder, f"-DCMAKE_CXX_COMPILER={compiler}", "-DDLPRIM_BUILD_TESTS=OFF", "-DDLPRIM_BUILD_EXAMPLES=OFF",
               *options]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    assert bool(done.returncode) == fails, done.stdout + done.stderr
    return done.stderr if fails else done.stdout


def table(text):
    """The rows of the table: what, and what it says."""
    rows = re.search(r"-- Optional parts of this build:\n((?:--   .*\n)+)", text)
    assert rows, text
    return dict(re.split(r"\s{2,}", row[5:], maxsplit=1) for row in rows.group(1).splitlines())


def main():
    cmake, compiler = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "build"
        whole = table(configure(cmake, compiler, folder))
        assert len(whole) == 4, whole
        for option, lacks in CASES.items():
            others = [one.replace("=ON", "=OFF") for one in CASES if one != option and one.endswith("=ON")]
            said = table(configure(cmake, compiler, folder, "-DDLPRIM_WITH_ONNX=AUTO", *others, option))
            for what, before in whole.items():
                if what in lacks:
                    assert said[what].startswith("no: install ") and lacks[what] in said[what], f"{option}: {said}"
                else:
                    assert said[what] == before, f"{option} also changes '{what}': {said[what]}"
        without = configure(cmake, compiler, folder, "-Ucli11_include", "-DCMAKE_SYSTEM_INCLUDE_PATH=", "-DCMAKE_FIND_ROOT_PATH=/nowhere",
                            "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY", fails=True)
        said = " ".join(without.split())
        assert "CLI11, which -DDLPRIM_BUILD_TOOLS=OFF does without" in said and said.count("CMake Error") == 1, said


main()
