#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when the bill of materials of what was built is not valid, or does not say what is inside.

    sbom_test.py BUILD COMMAND LIBRARY

COMMAND has CLI11 and nlohmann/json compiled in, LIBRARY nlohmann/json but not CLI11, and takes HDF5 from a shared library.
Both have Chart.js, which lies in the source. What else lies there with a license of its own is an error.
CycloneDX's own library, where Python has it, checks the documents against the schema.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]


def bill_of(build, file, folder, times):
    """The document of a file, which is the same every time."""
    texts = []
    for name in [f"{time}.json" for time in range(times)]:
        command = [sys.executable, ROOT / "scripts/sbom.py", file, "--build", build, "--output", folder / name]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
        assert done.returncode == 0, done.stderr
        texts.append((folder / name).read_text())
    assert len(set(texts)) == 1, f"the bill of {file} is not the same twice"
    return texts[0]


def check_source_archive(folder):
    """Chart.js is named with the version that its folder says, and a license that the script does not know is an error."""
    version = re.match(r"# Chart\.js ([0-9.]+)\n", (ROOT / "web/chartjs/README.md").read_text()).group(1)
    for other, fails in (("LICENSE", False), ("web/new/LICENSE", True)):
        archive = folder / "dlprim-0.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            for name in ("web/chartjs/LICENSE", "web/chartjs/chart.umd.js", other):
                tar.add(ROOT / "LICENSE", f"dlprim-0/{name}")
        command = [sys.executable, ROOT / "scripts/sbom.py", archive, "--output", folder / "source.json"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert bool(done.returncode) == fails, done.stdout + done.stderr
        assert not fails or "VENDORED lacks 'web/new'" in done.stderr, done.stderr
    found = {one["purl"] for one in json.loads((folder / "source.json").read_text())["components"]}
    assert found == {f"pkg:npm/chart.js@{version}", "pkg:npm/%40kurkle/color@0.3.2"}, found


def is_noticed(purl, notice):
    """Whether the text of licenses names what a bill of materials has."""
    name = re.match(r"pkg:(?:deb/debian|npm)/(@?[^@?]+)", urllib.parse.unquote(purl)).group(1)
    return {"chart.js": "Chart.js, which", "@kurkle/color": name}.get(name, f"Debian's package {name},") in notice


def check_schema(text):
    try:
        from cyclonedx.schema import SchemaVersion
        from cyclonedx.validation.json import JsonStrictValidator
        validator = JsonStrictValidator(SchemaVersion.V1_6)
        problem, shown = validator.validate_str(text), validator.validate_str('{"bomFormat": "CycloneDX", "specVersion": "1.6", "x": 1}')
    except ImportError:
        return False
    except Exception as error:  # its part that validates is an extra of its own
        if "Missing" not in type(error).__name__:
            raise
        return False
    assert shown is not None, "the check of the schema takes anything"
    assert problem is None, problem
    return True


def main():
    build, command, library = map(pathlib.Path, sys.argv[1:])
    if not (build / "build.ninja").exists() or not all(map(shutil.which, ("ninja", "dpkg-query", "readelf"))):
        print("bills of materials want Ninja, dpkg and readelf: skipped")
        return 77
    version = re.search(r'DLPRIM_VERSION "([0-9.]+)"', (ROOT / "include/dlprim/version.hpp").read_text()).group(1)
    wanted = {command: {"nlohmann-json3", "cli11", "chart.js"}, library: {"nlohmann-json3", "chart.js", "@kurkle/color"}}
    for module in build.glob("python/dlprim/_core.*.so"):
        wanted[module] = {"nanobind"}
    notice = (build / "debian/copyright").read_text()
    validated = False
    with tempfile.TemporaryDirectory() as temporary:
        check_source_archive(pathlib.Path(temporary))
        for file, inside in wanted.items():
            text = bill_of(build, file, pathlib.Path(temporary), 2 if file == library else 1)
            validated = check_schema(text)
            bill = json.loads(text)
            assert bill["metadata"]["component"]["version"] == version
            found = {one["properties"][0]["value"]: one for one in bill["components"]}
            assert inside <= set(found), f"{file.name} has {sorted(inside)} inside, but its bill says {sorted(found)}"
            assert all(one["licenses"] and one["version"] and one["purl"] for one in bill["components"])
            unsaid = [one["purl"] for one in bill["components"] if file.suffix != ".so" and not is_noticed(one["purl"], notice)]
            assert not unsaid, f"the copyright file of Debian's packages says nothing of {unsaid}"
            taken = {"hdf5", "ocl-icd", "zlib", "libpng1.6", "glibc"} | ({"cli11"} if file != command else set())
            assert not taken & set(found), f"the bill of {file.name} names what is not inside: {taken & set(found)}"
    print("the bills are right" + ("" if validated else "; this Python lacks cyclonedx-python-lib[json-validation], which checks the schema"))
    return 0


sys.exit(main())
