#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tries Debian packages on bare systems of Debian 12, made by debootstrap. apt installs the packages
# there with what they ask for; then a command runs a network on PoCL and the first program of docs/first_program.md is built by CMake and
# by pkg-config, without network. Needs root.
#   scripts/packages_test.sh DIST [FOLDER]     DIST holds the packages (scripts/release.sh);
#                                              FOLDER (a temporary one) keeps the systems for the next time
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/bare_systems.sh
take_arguments DIST "$@"
dist=$given
version=$(library_version)

#   packages NAME PACKAGE...: copies packages into a system, and prints their paths there
packages() {
    local root=$folder/$1 name file
    shift
    mkdir -p "$root/packages"
    for name in "$@"; do
        file=$(find "$dist" -maxdepth 1 -name "${name}_*.deb" | head -1)
        [ -n "$file" ] || { echo "$dist holds no package $name." >&2; exit 1; }
        cp "$file" "$root/packages/"
        echo "/packages/$(basename "$file")"
    done
}

make_system tools ca-certificates
echo "== libdlprim0 and dlprim-tools, with PoCL as they recommend"
# shellcheck disable=SC2046
apt_install tools $(packages tools libdlprim0 dlprim-tools)
inside tools dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' libdlprim0 dlprim-tools pocl-opencl-icd
cp examples/nets/resnet18.json "$folder/tools/root/"
expect_versions tools dlprim_run dlprim_train dlprim_benchmark dlprim_flops dlprim_scale dlprim_tune dlprim_doctor dlprim_convert dlprim_data dlprim_embed dlprim_generate
expect ms inside tools dlprim_benchmark -B1 -i2 -w1 cpu /root/resnet18.json
expect ms inside tools dlprim_benchmark -B1 -i2 -w1 opencl /root/resnet18.json
expect_compile_program tools '/usr/libexec/dlprim-*/dlprim_compile'

make_system development g++,cmake,pkg-config,make,ca-certificates
echo "== libdlprim-dev"
# shellcheck disable=SC2046
apt_install development $(packages development libdlprim0 libdlprim-dev)
try_first_program development
expect "$version" inside development pkg-config --modversion dlprim
expect "libdlprim_core.so.0" inside development sh -c 'ldd /root/program/by_pkg_config'
echo "The packages work on bare systems."
