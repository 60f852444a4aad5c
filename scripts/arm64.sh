#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the library, the commands and the tests for 64-bit Arm on a machine that is not one, and runs them under qemu-user.
#   scripts/arm64.sh                        builds all and runs the tests that need no OpenCL device
#   scripts/arm64.sh build [TARGET ...]     builds all, or some targets
#   scripts/arm64.sh test [ctest options]   runs these tests, or some of them; e.g. -L quick
#   scripts/arm64.sh run COMMAND ...        runs any command; e.g. build-arm64/tools/dlprim_doctor
#
# For Debian 12, from its packages: the cross-compiler and qemu are installed (scripts/install_deps.sh arm64), and the libraries
# of arm64 are unpacked into .cache/arm64, so that they are not installed. The build is in build-arm64. CMAKE_BUILD_PARALLEL_LEVEL
# and CTEST_PARALLEL_LEVEL say how many jobs run at a time, as CMake and CTest define them.
#
# Programs run each other and scripts run them, which takes a kernel that hands Arm's programs to qemu. Where this machine's kernel
# is not told to, the tests run in namespaces of their own, whose kernel is told; Linux has these from version 6.7 on.
# Left out are tests of sources, documents and packages, which do not depend on the processor, those of several processes, which
# wait for times that qemu does not keep, and those of kernels for GPUs. Ends with code 77 where something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian_packages.sh
. scripts/debian_packages.sh
build=$PWD/build-arm64
root=$PWD/.cache/arm64/root
no_platforms=$PWD/.cache/arm64/no_platforms

# What tests of the host need. OpenCL's loader is linked, and finds no platform.
packages=(libc6-dev ocl-icd-opencl-dev libhdf5-dev nlohmann-json3-dev zlib1g-dev libpng-dev libjpeg-dev libicu-dev libprotobuf-dev
    libonnx-dev libhwy-dev libcpp-httplib-dev libcli11-dev catch2)

prepare() {
    bash scripts/install_deps.sh build arm64 < /dev/null
    local program
    for program in aarch64-linux-gnu-g++ qemu-aarch64-static protoc ninja; do
        command -v "$program" > /dev/null || { echo "There is no $program here: scripts/install_deps.sh build arm64 installs it." >&2; exit 77; }
    done
    # shellcheck source=/dev/null
    unpack_packages "$(. /etc/os-release && echo "$VERSION_CODENAME")" arm64 "$root" "${packages[@]}" || exit 77
    mkdir -p "$no_platforms"
}

build() {
    prepare
    mkdir -p "$build"
    cmake -S . -B "$build" -G Ninja --toolchain cmake/arm64.cmake "-DDLPRIM_SYSROOT=$root" -DCMAKE_BUILD_TYPE=Release \
        -DDLPRIM_WERROR=ON -DDLPRIM_JOINED_SOURCES=ON -DDLPRIM_PRECOMPILED_HEADERS=ON -DDLPRIM_BUILD_PYTHON=OFF > "$build/configure.log" 2>&1 || {
        tail -30 "$build/configure.log"
        echo "CMake failed; the lines above say on what." >&2
        exit 1
    }
    local targets=()
    [ $# = 0 ] || targets=(--target "$@")
    cmake --build "$build" "${targets[@]}" < /dev/null
}

# Runs a command for which Arm's programs are like this machine's own.
emulated() {
    export QEMU_LD_PREFIX=$root OCL_ICD_VENDORS=$no_platforms DLPRIM_AFFINITY=0
    if "$root/usr/bin/gencat" --version > /dev/null 2>&1; then exec "$@"; fi
    local rule=/usr/lib/binfmt.d/qemu-aarch64.conf
    # shellcheck disable=SC2016
    exec unshare --map-root-user --mount bash -c '
        mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && cat "$1" > /proc/sys/fs/binfmt_misc/register || {
            echo "The kernel does not hand programs for Arm to qemu, and namespaces cannot tell it to." >&2
            exit 77
        }
        shift
        exec "$@"' emulated "$rule" "$@"
}

run_tests() {
    local sources='^(format|tidy|rooms|functions|builtins|reached_headers|locale_rules|messages|no_ifunc|engine_redate_rows)$'
    emulated ctest --test-dir "$build" --output-on-failure --no-tests=error --timeout 7200 -E "$sources" \
        -LE '^(pocl|intel|other|oclgrind|emulation|docs|package|plugins|python|simulation|processes|timing)$' "$@" < /dev/null
}

what=${1:-all}
[ $# = 0 ] || shift
case "$what" in
    all) build; run_tests ;;
    build) build "$@" ;;
    test) run_tests "$@" ;;
    run) [ $# -gt 0 ] || { echo "usage: scripts/arm64.sh run COMMAND ..." >&2; exit 2; }; emulated "$@" ;;
    *) sed -n '2,/^set/p' "$0" | sed '$d;s/^# \{0,1\}//' >&2; exit 2 ;;
esac
