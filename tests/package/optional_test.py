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
# What is left out together, and what the table then says has to be installed. libpng needs zlib.
CASES = {
    ("-DCMAKE_DISABLE_FIND_PACKAGE_JPEG=ON", "-DDLPRIM_WITH_ONNX=OFF", "-DDLPRIM_HIGHWAY_DIR=OFF"):
        {"JPEG pictures": "libjpeg-dev", "ONNX models": "libonnx-dev", "vector code for the CPU": "libhwy-dev"},
    ("-DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_PNG=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON",
     "-DCMAKE_DISABLE_FIND_PACKAGE_JPEG=OFF", "-DDLPRIM_WITH_ONNX=AUTO", "-UDLPRIM_HIGHWAY_DIR"):
        {"compressed IDX and .npz files": "zlib1g-dev", "PNG pictures": "libpng-dev", "ONNX models": "protobuf-compiler"},
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
        for options, lacks in CASES.items():
            said = table(configure(cmake, compiler, folder, *options))
            assert len(said) == 7, said
            left_out = {what for what, says in said.items() if says != "yes"}
            assert left_out == set(lacks), f"{options} leave out {sorted(left_out)}"
            for what, package in lacks.items():
                assert said[what].startswith("no: install ") and package in said[what], said
        without = configure(cmake, compiler, folder, "-Ucli11_include", "-DCMAKE_SYSTEM_INCLUDE_PATH=", "-DCMAKE_FIND_ROOT_PATH=/nowhere",
                            "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY", fails=True)
        said = " ".join(without.split())
        assert "CLI11, which -DDLPRIM_BUILD_TOOLS=OFF does without" in said and said.count("CMake Error") == 1, said


main()
