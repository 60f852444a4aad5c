#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds everything with AddressSanitizer and UBSan and runs the tests: the host and PoCL, nets, commands with bad input,
# formats, emulated kernels. Fails on any finding. Left out are Oclgrind, which is a sanitizer itself, and other drivers than
# PoCL, which bring their own allocators.
#   scripts/sanitize.sh [build folder [ctest options]]     (build-asan)     e.g. build-asan -L commands
# DLPRIM_SANITIZE_TARGETS builds less, DLPRIM_CMAKE_ARGS gives CMake more options.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-asan}
shift || true
generator=()
if [ ! -e "$build/CMakeCache.txt" ] && command -v ninja > /dev/null; then generator=(-G Ninja); fi
# shellcheck disable=SC2086
cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDLPRIM_SANITIZE=ON \
    ${DLPRIM_CMAKE_ARGS:-} > /dev/null
# shellcheck disable=SC2086
cmake --build "$build" --parallel "$(nproc)" --target ${DLPRIM_SANITIZE_TARGETS:-all} < /dev/null

build=$(cd "$build" && pwd)
rm -rf "$build/vendors"
mkdir -p "$build/vendors"
for icd in /etc/OpenCL/vendors/*pocl*.icd; do
    [ ! -e "$icd" ] || cp "$icd" "$build/vendors/"
done
export OCL_ICD_VENDORS=$build/vendors DLPRIM_CACHE_DIR=$build/cache/dlprim POCL_CACHE_DIR=$build/cache/pocl
mkdir -p "$DLPRIM_CACHE_DIR" "$POCL_CACHE_DIR"
# Drivers and their compilers leak, which is no concern of ours. A file that asks for more memory than
# there is must end in an Error.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export DLPRIM_TEST_PATIENCE=${DLPRIM_TEST_PATIENCE:-8}  # commands take that many times as long
export DLPRIM_TEST_RANDOM=${DLPRIM_TEST_RANDOM:-20}
export DLPRIM_AFFINITY=${DLPRIM_AFFINITY:-0}  # tests run beside each other
ctest --test-dir "$build" --output-on-failure --no-tests=error --timeout 2400 -j "$(nproc)" \
    -LE 'oclgrind|intel|other' "$@" < /dev/null
echo "No findings."
