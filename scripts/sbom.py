#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a bill of materials (CycloneDX 1.6, JSON) of a package: what of other projects is inside it.

    scripts/sbom.py FILE --build BUILD --output FILE.cdx.json

FILE is a Debian package, a wheel, a source archive, or a program or library itself; BUILD is the build folder (of Ninja)
that it was made in. What is inside is not a list kept by hand. For every program and library in FILE the script asks Ninja
which objects and archives it was linked of, and which headers each object has read. Headers and archives belong to packages
of dpkg or pip; files of a folder of the source that VENDORED names belong to what it says. What a program takes from a
shared library when it runs is not inside: it is a dependency, of which a package's own fields tell. Libraries that a wheel
brings along (auditwheel) are inside.

Left out are the C and C++ libraries of the compiler and the kernel's headers. A file that no package owns is an error, and
so is a package whose license LICENSES does not have.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import uuid
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# By the name of the source, of Debian or PyPI. Names with a space are no SPDX identifiers but expressions or titles.
LICENSES = {
    "@kurkle/color": "MIT",
    "chart.js": "MIT",
    "cli11": "BSD-3-Clause",
    "highway": "Apache-2.0",
    "hdf5": "HDF5 license (BSD style)",
    "khronos-opencl-headers": "Apache-2.0",
    "libaec": "BSD-2-Clause",
    "libjpeg-turbo": "IJG AND BSD-3-Clause AND Zlib",
    "libpng1.6": "libpng-2.0",
    "nanobind": "BSD-3-Clause",
    "nlohmann-json3": "MIT",
    "ocl-icd": "BSD-2-Clause",
    "onnx": "Apache-2.0",
    "protobuf": "BSD-3-Clause",
    "zlib": "Zlib",
}
# Folders of the source that hold what others wrote: every folder below its root that has a LICENSE. By name and version; the
# first is also the first line of the folder's README.md. Chart.js's build has the library of colors inside.
VENDORED = {"web/chartjs": {"chart.js": "4.4.0", "@kurkle/color": "0.3.2"}}
# What every program has of its compiler and system, and Python's headers, which declare what the interpreter brings.
TOOLCHAIN = re.compile(r"^(glibc|linux|libxcrypt|gcc-\d+.*|cross-toolchain-base.*|python3(\.\d+)?(-defaults)?)$")
PYTHON_HEADER = re.compile(r"/include/python3[.\d]*/")
Package = tuple[str, str, str, str]  # kind (deb, pypi or npm), name, version, source


def output_of(*command: str) -> str:
    """What a command prints; its failure is an error."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} failed: {(done.stderr or done.stdout).strip()[:300]}")
    return done.stdout


class Build:
    """What Ninja knows of a build folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        if not (folder / "build.ninja").exists():
            raise SystemExit(f"{folder} is no build folder of Ninja (cmake -G Ninja), which knows what was compiled in")
        rows = [line.rsplit(": ", 1) for line in self.ninja("targets", "all").splitlines()]
        self.targets = [name for name, rule in rows if rule != "phony"]

    def ninja(self, tool: str, *arguments: str) -> str:
        return output_of("ninja", "-C", str(self.folder), "-t", tool, *arguments)

    @functools.cached_property
    def headers(self) -> dict[str, list[str]]:
        """The files that each object was compiled of."""
        read: dict[str, list[str]] = {}
        files: list[str] = []
        for line in self.ninja("deps").splitlines():
            if line and not line.startswith(" "):
                files = read.setdefault(line.partition(": #deps")[0], [])
            elif line.strip():
                files.append(line.strip())
        return read

    def target(self, name: str) -> str | None:
        """The target that makes a file of this name."""
        found = [one for one in self.targets if os.path.basename(one) == name and "CMakeFiles" not in one]
        return min(found, key=len) if found else None

    def made_of(self, target: str) -> set[str]:
        """All files that go into a target, but not those of other shared libraries. Paths are absolute."""
        seen, files = {target}, set()
        ahead = [target]
        while ahead:
            found: set[str] = set()
            inputs = False
            for line in self.ninja("query", *ahead).splitlines():
                if line.startswith("  "):
                    text = line.strip()
                    inputs = inputs if line.startswith("    ") else text.startswith("input")
                    if inputs and line.startswith("    ") and not text.startswith("|| "):
                        found.add(text.removeprefix("| "))
            found = {one for one in found - seen if not re.search(r"\.so(\.\d+)*$", one)}
            seen |= found
            for one in found:
                files.add(self.absolute(one))
                files |= {self.absolute(path) for path in self.headers.get(one, [])}
            ahead = sorted(one for one in found if one in self.known)
        return files

    @functools.cached_property
    def known(self) -> set[str]:
        return set(self.targets)

    def absolute(self, path: str) -> str:
        return os.path.realpath(self.folder / path)


@functools.cache
def debian(name: str) -> Package:
    """A package of dpkg."""
    version, source = output_of("dpkg-query", "-W", "-f", "${Version}\t${source:Package}", name).split("\t")
    return "deb", name.partition(":")[0], version, source


@functools.cache
def owner(path: str) -> Package | None:
    """The package of dpkg or pip that a file belongs to."""
    found = re.match(r"(.*/(?:site|dist)-packages)/(\w+)/", path)
    if found:
        for info in pathlib.Path(found.group(1)).glob(f"{found.group(2)}-*.dist-info"):
            return "pypi", found.group(2), info.name.removesuffix(".dist-info").partition("-")[2], found.group(2)
    for one in (path, path.removeprefix("/usr"), "/usr" + path):
        if one in installed_files():
            return debian(installed_files()[one])
    return None


@functools.cache
def installed_files() -> dict[str, str]:
    """Which package has installed a file. One look at all lists, since `dpkg -S` reads them all for every file."""
    owners: dict[str, str] = {}
    for listing in pathlib.Path("/var/lib/dpkg/info").glob("*.list"):
        for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
            owners[line] = listing.stem
    return owners


@functools.cache
def library(soname: str) -> Package | None:
    """The package of a shared library of the system."""
    for line in output_of("/sbin/ldconfig", "-p").splitlines():
        if line.split()[:1] == [soname]:
            return owner(os.path.realpath(line.split("=> ")[1]))
    return None


def vendored(path: str) -> set[Package]:
    """What others wrote that a file of the source belongs to."""
    found: set[Package] = set()
    for folder, packages in VENDORED.items():
        if path.startswith(folder + "/"):
            found |= {("npm", name, version, name) for name, version in packages.items()}
    return found


def inside_target(build: Build, target: str) -> set[Package]:
    """The packages whose code was compiled or linked into a target. The headers of a library that has a shared one only say
    how to call that; what counts then is whether one of its archives, or a schema of it, is among the inputs."""
    found: set[Package] = set()
    own = (str(ROOT.resolve()), str(build.folder.resolve().parent))
    for path in sorted(build.made_of(target)):
        copied = re.match(r".*/libdlprim_(\w+\.a)$", path)  # cmake/StaticHdf5.cmake copies an archive
        if copied and not build.target(os.path.basename(path)):
            path = next((file for file in installed_files() if file.endswith("/lib" + copied.group(1))), path)
        # The name of an object has the path of its source, which is among the inputs itself.
        if (path.startswith(own) and ("-packages/" not in path or path.endswith(".o"))) or PYTHON_HEADER.search(path):
            found |= vendored(path.removeprefix(own[1] + "/").removeprefix(own[0] + "/"))
            continue
        package = owner(path)
        if package is None:
            raise SystemExit(f"{path}, of which {target} is made, belongs to no package of dpkg or pip")
        if not TOOLCHAIN.match(package[3]) and (path.endswith((".a", ".proto")) or is_header_only(package)):
            found.add(package)
    return found


@functools.cache
def is_header_only(package: Package) -> bool:
    """Whether a package of headers has no library that belongs to it."""
    return package[0] == "pypi" or not re.search(r"\.(a|so)$", output_of("dpkg", "-L", package[1]), re.MULTILINE)


def bundled_in_source(path: pathlib.Path) -> dict[Package, set[str]]:
    """What others wrote in a source archive. A folder with a LICENSE of its own that VENDORED lacks is an error."""
    found: dict[Package, set[str]] = {}
    with tarfile.open(path) as tar:
        names = sorted(one.name.partition("/")[2] for one in tar if one.isfile())
    for name in names:
        packages = vendored(name)
        if "/" in name and os.path.basename(name).startswith(("LICENSE", "COPYING")) and not packages:
            raise SystemExit(f"scripts/sbom.py: VENDORED lacks '{os.path.dirname(name)}', which has a license of its own")
        for package in packages:
            found.setdefault(package, set()).add(name)
    return found


def members_of(path: pathlib.Path) -> dict[str, bytes]:
    """The programs and libraries in a package, by name."""
    members: dict[str, bytes] = {}
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    elif path.suffix == ".deb":
        data = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for one in tar:
                file = tar.extractfile(one) if one.isfile() else None
                if file:
                    members[one.name] = file.read()
    else:
        members = {path.resolve().name: path.read_bytes()}
    return {name: data for name, data in members.items() if data.startswith((b"\x7fELF", b"!<arch>\n"))}


def brought_along(name: str) -> Package | None:
    """The package of a library that auditwheel has put into a wheel: libOpenCL-0123abcd.so.1.0.0."""
    found = re.match(r"(lib.*)-[0-9a-f]{8}\.so((?:\.\d+)*)$", os.path.basename(name))
    if not found or ".libs/" not in name:
        return None
    versions = found.group(2).split(".")
    for count in range(len(versions), 0, -1):
        package = library(found.group(1) + ".so" + ".".join(versions[:count]))
        if package:
            return package
    raise SystemExit(f"{name} was brought along from a library that no package owns")


def bundled_in(path: pathlib.Path, build: Build | None) -> dict[Package, set[str]]:
    """What is inside, and in which files."""
    if path.name.endswith(".tar.gz"):
        return bundled_in_source(path)
    found: dict[Package, set[str]] = {}
    for name in members_of(path):
        package = brought_along(name)
        if package:
            found.setdefault(package, set()).add(name)
            continue
        if build is None:
            raise SystemExit(f"{path.name} holds {name}: --build has to name the folder that it was made in")
        target = build.target(os.path.basename(name))
        if target is None:
            raise SystemExit(f"{build.folder} has not made {name}, which {path.name} holds")
        for one in inside_target(build, target):
            found.setdefault(one, set()).add(name)
    return found


def license_of(package: Package) -> dict[str, object]:
    """A license of CycloneDX: an identifier, an expression of some, or a title."""
    if package[3] not in LICENSES:
        raise SystemExit(f"scripts/sbom.py: LICENSES lacks '{package[3]}', of which {package[1]} is inside")
    name = LICENSES[package[3]]
    if " AND " in name:
        return {"expression": name}
    return {"license": {"name" if " " in name else "id": name}}


def component(package: Package, files: set[str]) -> dict[str, object]:
    kind, name, version, source = package
    # + of a version is written %2B in such an address, and an epoch's colon %3A.
    escaped = version.replace("+", "%2B").replace(":", "%3A")
    purl = f"pkg:deb/debian/{name}@{escaped}?distro=debian-12" if kind == "deb" else f"pkg:{kind}/{name.replace('@', '%40')}@{escaped}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "licenses": [license_of(package)],
        "properties": [{"name": "dlprim:source", "value": source}]
        + [{"name": "dlprim:inside", "value": file} for file in sorted(files)],
    }


def bill(path: pathlib.Path, build: Build | None) -> dict[str, object]:
    """The document. The same package gives the same bytes."""
    found = re.search(r'#define DLPRIM_VERSION "([0-9.]+)"', (ROOT / "include/dlprim/version.hpp").read_text())
    assert found
    version, digest = found.group(1), hashlib.sha256(path.read_bytes()).hexdigest()
    bundled = bundled_in(path, build)
    components = [component(package, bundled[package]) for package in sorted(bundled)]
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", path.stat().st_mtime))
    main = {
        "type": "library",
        "bom-ref": "dlprim",
        "name": "dlprim",
        "version": version,
        "description": path.name,
        "licenses": [{"license": {"id": "MIT"}}],
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)), "component": main},
        "components": components,
        "dependencies": [{"ref": "dlprim", "dependsOn": [one["bom-ref"] for one in components]}],
    }


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="Writes what of other projects is inside a package, as CycloneDX.")
    parser.add_argument("file", type=pathlib.Path, help="Debian package, wheel, source archive, program or library")
    parser.add_argument("--build", type=pathlib.Path, help="the build folder that it was made in")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="where the document goes")
    options = parser.parse_args()
    document = bill(options.file, Build(options.build) if options.build else None)
    options.output.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    names = ", ".join(f"{one['name']} {one['version']}" for one in document["components"])
    print(f"{options.file.name}: {names or 'nothing of other projects'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
