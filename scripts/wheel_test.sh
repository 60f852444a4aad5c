#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tries a wheel on bare systems of Debian 12, made by debootstrap from the mirror that apt uses here: one with Python alone,
# where dlprim runs on the host without any OpenCL, and one with Python and PoCL. Both are without network; the wheel, numpy
# and what a build needs are downloaded before. Needs root.
#   scripts/wheel_test.sh WHEEL [FOLDER]     FOLDER (a temporary one) keeps the systems for the next time
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/bare_systems.sh
take_arguments WHEEL "$@"
wheel=$given
mkdir -p "$folder/wheels"

install_wheel() {
    rm -rf "$folder/$1/wheels" "$folder/$1/opt/python"
    cp -r "$folder/wheels" "$folder/$1/wheels"
    cp tests/python/installed_program.py "$folder/$1/root/"
    inside "$1" python3 -m venv /opt/python
    inside "$1" pip install -q dlprim
}

echo "Downloading numpy and what a build needs"
rm -f "$folder"/wheels/dlprim-*
cp "$wheel" "$folder/wheels/"
.cache/python/bin/python -m pip download -q --disable-pip-version-check --only-binary=:all: --python-version 3.11 \
    -d "$folder/wheels" numpy scikit-build-core nanobind cmake ninja 2> /dev/null
.cache/python/bin/python -m build --sdist --no-isolation -o "$folder/wheels" . > /dev/null

make_system host python3,python3-venv
install_wheel host
echo "== Without OpenCL"
if inside host sh -c 'ls /usr/lib/*/libOpenCL.so* /etc/OpenCL' 2> /dev/null; then
    echo "This system has OpenCL, which it was to lack." >&2
    exit 1
fi
inside host python /root/installed_program.py host

echo "== Built there, where there is no compiler"
if inside host pip install --no-deps --no-binary dlprim --force-reinstall dlprim > "$folder/no_compiler.log" 2>&1; then
    echo "A build without a compiler succeeded." >&2
    exit 1
fi
tr '\n' ' ' < "$folder/no_compiler.log" | tr -s ' ' | grep -o 'dlprim cannot be built: .*install_deps.sh[^.]*[.]' || {
    tail -20 "$folder/no_compiler.log"
    echo "The build does not say what it lacks." >&2
    exit 1
}

make_system pocl python3,python3-venv,pocl-opencl-icd
install_wheel pocl
echo "== With PoCL"
inside pocl python /root/installed_program.py pocl
expect_compile_program pocl '/opt/python/lib/python3*/site-packages/dlprim/libexec/dlprim-*/dlprim_compile'
echo "The wheel runs on bare systems."
