# SPDX-License-Identifier: MIT
"""The package as pip lays it out: the C++ library inside it, for extensions, and what a source distribution holds.

scripts/wheel.sh makes a real wheel and tries it on a bare system; these tests take what is built in BUILD.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import dlprim
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("DLPRIM_BUILD", "")
CMAKE = os.environ.get("CMAKE_COMMAND", "cmake")
needs_build = pytest.mark.skipif(not BUILD, reason="DLPRIM_BUILD names no build folder; ctest sets it")


def run(*command: object, **environment: str) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def version_of_header() -> str:
    text = (ROOT / "include/dlprim/version.hpp").read_text(encoding="utf-8")
    found = re.search(r'#define DLPRIM_VERSION "([0-9.]+)"', text)
    assert found
    return found.group(1)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder that holds the package as site-packages does."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "python/dlprim", folder / "dlprim", ignore=shutil.ignore_patterns("__pycache__"))
    run(CMAKE, "--install", BUILD, "--prefix", folder / "dlprim")
    run(CMAKE, "--install", BUILD, "--prefix", folder / "dlprim", "--component", "python")
    return folder


@needs_build
def test_extension_finds_the_library_in_the_package(installed: pathlib.Path, tmp_path: pathlib.Path) -> None:
    ask = "import dlprim; print(dlprim.get_cmake_dir(), dlprim.get_include(), dlprim.get_library_dir(), sep='\\n')"
    found = run(sys.executable, "-c", ask, PYTHONPATH=str(installed)).split()
    package = installed / "dlprim"
    assert found == [str(package / "lib/cmake/dlprim"), str(package / "include"), str(package / "lib")]

    shutil.copytree(ROOT / "tests/python/extension", tmp_path / "extension")
    flags = os.environ.get("DLPRIM_SANITIZE_FLAG", "")
    build = tmp_path / "build"
    run(CMAKE, "-S", tmp_path / "extension", "-B", build, f"-Ddlprim_DIR={found[0]}", f"-DCMAKE_CXX_FLAGS={flags}")
    run(CMAKE, "--build", build)
    assert run(build / "program").startswith(f"dlprim {version_of_header()}: 19 22 43 50")


@needs_build
def test_module_in_the_package_finds_its_library_there(installed: pathlib.Path) -> None:
    [module] = (installed / "dlprim").glob("_core*.so")
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed (binutils)")
    assert "[$ORIGIN/lib]" in run("readelf", "-d", module)
    assert (installed / "dlprim/_core.pyi").is_file()
    assert (installed / "dlprim/py.typed").is_file()


def test_build_folder_has_no_library_for_extensions() -> None:
    for ask in (dlprim.get_cmake_dir, dlprim.get_include, dlprim.get_library_dir):
        with pytest.raises(FileNotFoundError, match="only an installed package"):
            ask()


def test_version_is_that_of_the_header() -> None:
    assert dlprim.__version__ == version_of_header()


@pytest.mark.parametrize(
    ("option", "environment", "says"),
    [
        ("-DDLPRIM_WERROR=ON", {"CXX": "/no/such/compiler"}, "there is no compiler for C++20"),
        ("-DCMAKE_DISABLE_FIND_PACKAGE_OpenCL=ON", {}, "OpenCL's headers and loader not found"),
    ],
)
def test_build_says_what_it_lacks(tmp_path: pathlib.Path, option: str, environment: dict[str, str], says: str) -> None:
    done = subprocess.run(
        [CMAKE, "-S", str(ROOT), "-B", str(tmp_path), option, "-DDLPRIM_BUILD_TESTS=OFF"],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    said = " ".join(done.stderr.split())
    assert done.returncode != 0
    assert said.count("CMake Error") == 1
    assert f"dlprim cannot be built: {says}" in said
    assert "scripts/install_deps.sh" in said


def test_source_distribution_holds_what_a_build_needs_and_nothing_built(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("build")
    pytest.importorskip("scikit_build_core")
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns("build*", ".git", ".cache", ".carry", "__pycache__"))
    for folder in ("build-dev", ".cache/python", ".carry", "python/dlprim/__pycache__"):
        (tree / folder).mkdir(parents=True)
        (tree / folder / "left_over.txt").write_text("left over")
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", tmp_path, tree)
    [archive] = tmp_path.glob("*.tar.gz")
    assert archive.name == f"dlprim-{version_of_header()}.tar.gz"
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert not [name for name in names if "left_over" in name]
    needed = {"LICENSE", "README.md", "pyproject.toml", "scripts/install_deps.sh", "python/src/module.cpp"}
    folders = ("cmake", "databases", "include", "kernels", "python", "src")
    needed |= {str(p.relative_to(tree)) for folder in folders for p in (tree / folder).rglob("*.?*") if p.is_file()}
    assert not {name for name in needed - names if "__pycache__" not in name}
