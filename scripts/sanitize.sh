#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds everything with a sanitizer and runs the tests. Fails on any finding.
#   scripts/sanitize.sh [build folder [ctest options]]            (build-asan)     e.g. build-asan -L commands
# AddressSanitizer and UBSan: the host and PoCL, nets, commands with bad input, formats, emulated kernels. Left out are
# Oclgrind, which is a sanitizer itself, and other drivers than PoCL, which bring their own allocators.
#   scripts/sanitize.sh --thread [build folder [ctest options]]   (build-tsan)     e.g. --thread build-tsan -R net_threads
# ThreadSanitizer: the host alone, since drivers' threads are not compiled with it. Left out are tests that need more than a
# program of ours: commands, packages, documents, emulation.
#   scripts/sanitize.sh --python [build folder [ctest options]]   (build-asan)     e.g. --python build-asan -R python_host
# AddressSanitizer and UBSan over the tests of the Python module, on the host and PoCL. Python itself is not compiled with
# them: their library is preloaded (tests/python/CMakeLists.txt).
# DLPRIM_SANITIZE_TARGETS builds less, DLPRIM_CMAKE_ARGS gives CMake more options.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=address
build=build-asan
excluded='oclgrind|intel|other'
python=(-DDLPRIM_BUILD_PYTHON=OFF)
chosen=()
if [ "${1:-}" = --python ]; then
    bash scripts/install_deps.sh python
    python=(-DDLPRIM_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$PWD/.cache/python/bin/python")
    DLPRIM_SANITIZE_TARGETS=${DLPRIM_SANITIZE_TARGETS:-dlprim_python}
    # Not what looks at sources, nor what wants the whole build.
    chosen=(-L python -E 'python_(style|typing|package|names)')
    shift
elif [ "${1:-}" = --thread ]; then
    kind=thread
    build=build-tsan
    excluded='oclgrind|intel|other|pocl|commands|package|docs|emulation'
    shift
fi
build=${1:-$build}
shift || true
generator=()
if [ ! -e "$build/CMakeCache.txt" ] && command -v ninja > /dev/null; then generator=(-G Ninja); fi
# shellcheck disable=SC2086
cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDLPRIM_SANITIZE=$kind \
    "${python[@]}" ${DLPRIM_CMAKE_ARGS:-} > /dev/null
# shellcheck disable=SC2086
cmake --build "$build" --parallel "$(nproc)" --target ${DLPRIM_SANITIZE_TARGETS:-all} < /dev/null

build=$(cd "$build" && pwd)
rm -rf "$build/vendors"
mkdir -p "$build/vendors"
if [ $kind = address ]; then
    for icd in /etc/OpenCL/vendors/*pocl*.icd; do
        [ ! -e "$icd" ] || cp "$icd" "$build/vendors/"
    done
else
    export DLPRIM_TEST_DEVICES=host
fi
export OCL_ICD_VENDORS=$build/vendors DLPRIM_CACHE_DIR=$build/cache/dlprim POCL_CACHE_DIR=$build/cache/pocl
mkdir -p "$DLPRIM_CACHE_DIR" "$POCL_CACHE_DIR"
# Drivers and their compilers leak, which is no concern of ours. A file that asks for more memory than
# there is must end in an Error.
# LLVM, in PoCL, gives threads a stack for signals of its own, at which AddressSanitizer would stumble when they end.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:use_sigaltstack=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=suppressions=$PWD/scripts/thread_sanitizer.supp:second_deadlock_stack=1:allocator_may_return_null=1
export DLPRIM_TEST_PATIENCE=${DLPRIM_TEST_PATIENCE:-8}  # commands take that many times as long
export DLPRIM_TEST_RANDOM=${DLPRIM_TEST_RANDOM:-20}
export DLPRIM_AFFINITY=${DLPRIM_AFFINITY:-0}  # tests run beside each other
ctest --test-dir "$build" --output-on-failure --no-tests=error --timeout 2400 -j "$(nproc)" \
    -LE "$excluded" "${chosen[@]}" "$@" < /dev/null
echo "No findings."
