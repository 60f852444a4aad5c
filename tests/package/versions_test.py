#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails when the version of include/dlprim/version.hpp is not that of the commands, the library's file, the CMake package,
the pkg-config file, the Debian packages, the wheel and the changelog.

    versions_test.py BUILD SOVERSION COMMAND...
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def only(pattern, text, where):
    found = re.findall(pattern, text, re.MULTILINE)
    assert len(found) == 1, f"{where} has {len(found)} times {pattern}"
    return found[0]


def main():
    build, soversion, commands = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    header = (ROOT / "include/dlprim/version.hpp").read_text()
    version = only(r'^#define DLPRIM_VERSION "(\d+\.\d+\.\d+)"$', header, "version.hpp")
    says = {}
    for command in commands:
        printed = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
        says[pathlib.Path(command).name] = only(r"^dlprim (\S+)", printed, command)
    says["CMake package"] = only(r'^set\(PACKAGE_VERSION "(.*)"\)', (build / "dlprim-config-version.cmake").read_text(), "it")
    says["pkg-config file"] = only(r"^Version: (.*)", (build / "dlprim.pc").read_text(), "dlprim.pc")
    says["wheel"] = only(only(r"^regex = '(.*)'", (ROOT / "pyproject.toml").read_text(), "pyproject.toml"), header, "version.hpp")
    packages = (build / "CPackConfig.cmake").read_text()
    says["Debian packages"] = only(r'^set\(CPACK_PACKAGE_VERSION "(.*)"\)', packages, "CPackConfig.cmake")
    exact = f"libdlprim{soversion} (= {version}-1)"
    for component in ("DEVELOPMENT", "TOOLS"):
        says[f"what {component} depends on"] = only(rf'^set\(CPACK_DEBIAN_{component}_PACKAGE_DEPENDS "(.*)"\)', packages, "it")
        assert says.pop(f"what {component} depends on") == exact, f"{component} does not depend on {exact}"
    library = build / "src" / f"libdlprim_core.so.{version}"
    assert library.is_file(), f"there is no {library}"
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    assert f"[libdlprim_core.so.{soversion}]" in dynamic, f"the library's SONAME is not libdlprim_core.so.{soversion}"
    wrong = {what: said for what, said in says.items() if said != version}
    assert not wrong, f"version.hpp says {version}, but {wrong}"
    assert len(says) == len(commands) + 4
    changes = re.findall(r"^## \[?v?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    newest = [tuple(map(int, change.split("."))) for change in [*changes[:1], version]]
    assert newest[0] <= newest[-1], f"CHANGELOG.md is at {changes[0]}"
    print(f"{len(says)} places say {version}")


main()
