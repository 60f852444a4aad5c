#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Tries a source archive on a bare system of Debian 12, made by debootstrap. It is unpacked there, its scripts/install_deps.sh
# installs what is missing, and the library is built and installed as docs/first_program.md says, without network. Then a command runs a
# network on the host and on PoCL, and the first program of docs/first_program.md is built by CMake and by pkg-config. Needs root.
#   scripts/archive_test.sh ARCHIVE [FOLDER]     FOLDER (a temporary one) keeps the system for the next time
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/bare_systems.sh
take_arguments ARCHIVE "$@"
archive=$given
version=$(library_version)

# The script shows that it installs everything only where nothing is installed: in a fresh copy of the system.
make_system bare ca-certificates
rm -rf "${folder:?}/source"
cp -a "$folder/bare" "$folder/source"
tar -xzf "$archive" -C "$folder/source/root"
at=/root/dlprim-$version
[ -d "$folder/source$at" ] || { echo "$archive holds no folder dlprim-$version." >&2; exit 1; }

#   there WHAT LOG COMMAND...: runs a command of README.md in the unpacked archive
there() {
    local what=$1 log=$folder/source.$2.log
    shift 2
    echo "== $what"
    "$1" source sh -c "cd $at && $2" > "$log" 2>&1 < /dev/null || {
        tail -20 "$log"
        echo "This failed there: $2" >&2
        exit 1
    }
}
there "scripts/install_deps.sh build run" install online 'scripts/install_deps.sh build run'
cat "$folder/source.install.log"
there "Building as docs/first_program.md says" build inside "export CMAKE_GENERATOR=Ninja
    cmake -B build -DDLPRIM_BUILD_TESTS=OFF ${DLPRIM_CMAKE_ARGS:-} && cmake --build build -j $(nproc) && cmake --install build"
sed -n '/Optional parts of this build/,/Configuring done/{/Configuring done/!p}' "$folder/source.build.log"
if grep -q '^--   .* no: install' "$folder/source.build.log"; then
    echo "What scripts/install_deps.sh installs does not serve every optional part of the build." >&2
    exit 1
fi
echo "== What is installed"
cp examples/nets/resnet18.json "$folder/source/root/"
expect_versions source dlprim_run dlprim_train dlprim_benchmark dlprim_doctor
expect ms inside source dlprim_benchmark -B1 -i2 -w1 cpu /root/resnet18.json
expect ms inside source dlprim_benchmark -B1 -i2 -w1 opencl /root/resnet18.json
expect_compile_program source '/usr/local/libexec/dlprim-*/dlprim_compile'
try_first_program source
rm -rf "$folder/source$at/build"
echo "The source archive builds and works on a bare system."
