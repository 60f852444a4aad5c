#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what is missing, builds with warnings as errors, and runs all tests on the host and on every
# OpenCL device: PoCL, Intel's runtime for CPUs, and what else is installed. Ends with "N passed, N failed".
#   scripts/test.sh [ctest options]            e.g. -L formats, -R conv2d
#   scripts/test.sh --long [ctest options]     the long tests alone, which take hours (docs/correctness.md)
#   scripts/test.sh --busy [ctest options]     while one more process per core computes; e.g. -L timing --repeat until-fail:20
# DLPRIM_TEST_BUILD names another build folder (build-test), DLPRIM_CMAKE_ARGS gives CMake more options,
# DLPRIM_NO_INTEL=1 leaves Intel's runtime out, DLPRIM_NO_PYTHON=1 the Python module.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${DLPRIM_TEST_BUILD:-build-test}
long=OFF
if [ "${1:-}" = --long ]; then
    long=ON
    shift
    set -- -L long --timeout 18000 "$@"
fi

busy=
if [ "${1:-}" = --busy ]; then
    busy=1
    shift
fi

deps=(build test docs simulation)
[ -n "${DLPRIM_NO_PYTHON:-}" ] || deps+=(python)
[ -n "${DLPRIM_NO_INTEL:-}" ] || deps+=(intel)
bash scripts/install_deps.sh "${deps[@]}" < /dev/null

mkdir -p "$build"
build=$(cd "$build" && pwd)
# Compiled kernels are kept between runs.
export DLPRIM_CACHE_DIR=$build/cache/dlprim POCL_CACHE_DIR=$build/cache/pocl
mkdir -p "$DLPRIM_CACHE_DIR" "$POCL_CACHE_DIR"

generator=()
if [ ! -e "$build/CMakeCache.txt" ] && command -v ninja > /dev/null; then generator=(-G Ninja); fi
cli11=()
[ -z "${DLPRIM_CLI11_DIR:-}" ] || cli11=("-DDLPRIM_CLI11_DIR=$DLPRIM_CLI11_DIR")
python=(-DDLPRIM_BUILD_PYTHON=OFF)
if [ -z "${DLPRIM_NO_PYTHON:-}" ] && .cache/python/bin/python -c "import nanobind, numpy, pytest" 2> /dev/null; then
    python=(-DDLPRIM_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$PWD/.cache/python/bin/python")
fi
jobs=$(nproc)
echo "Configuring and building in $build"
# shellcheck disable=SC2086
cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DDLPRIM_WERROR=ON \
    -DDLPRIM_JOINED_SOURCES=ON -DDLPRIM_PRECOMPILED_HEADERS=ON -DDLPRIM_TEST_LONG=$long \
    "${cli11[@]}" "${python[@]}" ${DLPRIM_CMAKE_ARGS:-} > "$build/configure.log" 2>&1 || {
    tail -30 "$build/configure.log"
    echo "CMake failed; the lines above say on what." >&2
    exit 1
}
# PyTorch's device "ocl", against the library just built, where the Python above has PyTorch. Its first file, of precompiled
# headers, takes one core most of a minute, so that it is built beside the rest.
build_torch() {
    cmake -S torch -B "$build/torch" "${generator[@]}" -DPython_EXECUTABLE="$PWD/.cache/python/bin/python" -DDLPRIM_TORCH_WERROR=ON \
        -DDLPRIM_JOINED_SOURCES=ON \
        -DDLPRIM_TORCH_LIBRARY="$build/src/libdlprim_core.so" > "$build/configure_torch.log" 2>&1 || {
        tail -30 "$build/configure_torch.log"
        echo "CMake failed for torch/; the lines above say on what." >&2
        return 1
    }
    cmake --build "$build/torch" --parallel "$(((jobs + 1) / 2))" < /dev/null
}
torch=
if [ "${python[0]}" = -DDLPRIM_BUILD_PYTHON=ON ] && .cache/python/bin/python -c "import torch, yaml" 2> /dev/null; then
    cmake --build "$build" --parallel "$jobs" --target dlprim_core_shared < /dev/null
    build_torch &
    torch=$!
fi
cmake --build "$build" --parallel "$jobs" < /dev/null
[ -z "$torch" ] || wait "$torch"

# The loader reads one folder: the system's platforms and Intel's together. Oclgrind has its own test.
if [ -z "${OCL_ICD_VENDORS:-}" ]; then
    vendors=$build/vendors
    rm -rf "$vendors"
    mkdir -p "$vendors"
    for icd in /etc/OpenCL/vendors/*.icd .cache/intel-opencl/vendors/intel.icd; do
        [ -e "$icd" ] || continue
        case "$icd" in *oclgrind*) continue ;; esac
        [ "$icd" != .cache/intel-opencl/vendors/intel.icd ] || [ -z "${DLPRIM_NO_INTEL:-}" ] || continue
        cp "$icd" "$vendors/"
    done
    export OCL_ICD_VENDORS=$vendors
fi

# Tests run beside each other: threads bound to cores would wait for those of another test.
export DLPRIM_AFFINITY=${DLPRIM_AFFINITY:-0}

if [ -n "$busy" ]; then
    others=()
    for ((i = 0; i < jobs; ++i)); do
        (while :; do :; done) &
        others+=("$!")
    done
    trap 'kill "${others[@]}"' EXIT
fi

rm -f "$build/tests.xml"
status=0
ctest --test-dir "$build" --output-on-failure --no-tests=error --timeout 2400 -j "$jobs" \
    --output-junit "$build/tests.xml" "$@" < /dev/null || status=$?

count() { sed -n "s/.*<testsuite[^>]* *$1=\"\([0-9]*\)\".*/\1/p;s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" \
    "$build/tests.xml" 2> /dev/null | head -1; }
echo "The tests that took longest, in seconds:"
sed -n 's/.*<testcase name="\([^"]*\)".* time="\([0-9.]*\)".*/\2 \1/p' "$build/tests.xml" 2> /dev/null | sort -rn |
    awk 'NR <= 10 {printf "%8.1f  %s\n", $1, $2}'
tests=$(count tests) failures=$(count failures) skipped=$(count skipped) disabled=$(count disabled)
tests=${tests:-0} failures=${failures:-0}
left_out=$((${skipped:-0} + ${disabled:-0}))
if [ "$status" != 0 ] && [ "$failures" = 0 ]; then failures=1; fi
if [ "$left_out" -gt 0 ]; then echo "$left_out skipped"; fi
passed=$((tests - failures - left_out))
if [ "$passed" -lt 0 ]; then passed=0; fi
echo "$passed passed, $failures failed"
exit "$status"
