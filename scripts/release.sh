#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes a release: source archive, wheel and Debian packages, a bill of materials for each, and SHA256SUMS, all in one
# folder; then tries each of them on bare systems of Debian 12. docs/releasing.md says how a release is made.
#   scripts/release.sh [--snapshot] [--no-test] [--output DIR]
#     --snapshot   of a commit that no tag names, and of a tree with changes, which are left out: the last commit counts
#     --no-test    leaves out the bare systems, which only root can make
#     --output     the folder (build-release/VERSION, or build-release/VERSION-snapshot); below it, work/ has what is built
# A run that was cut off goes on where it was: a step that is done for this commit is not done again.
set -euo pipefail
cd "$(dirname "$0")/.."
snapshot= try=1 output=
while [ $# -gt 0 ]; do
    case "$1" in
        --snapshot) snapshot=1 ;;
        --no-test) try= ;;
        --output) output=${2:?--output wants a folder}; shift ;;
        *) echo "usage: scripts/release.sh [--snapshot] [--no-test] [--output DIR]" >&2; exit 2 ;;
    esac
    shift
done
fail() { echo "$*" >&2; exit 1; }

commit=$(git rev-parse HEAD)
version=$(git show HEAD:include/dlprim/version.hpp | sed -n 's/^#define DLPRIM_VERSION "\(.*\)"$/\1/p')
if [ -z "$snapshot" ]; then
    [ -z "$(git status --porcelain)" ] ||
        fail "The tree has changes, which no release could be made of again: commit them, or give --snapshot to leave them out."
    tagged=$(git rev-parse -q --verify "refs/tags/v$version^{commit}") ||
        fail "include/dlprim/version.hpp says $version, but there is no tag v$version: tag the commit, or give --snapshot."
    [ "$tagged" = "$commit" ] ||
        fail "The tag v$version names another commit than the one that is checked out: check that out, or give --snapshot."
fi
output=${output:-build-release/$version${snapshot:+-snapshot}}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mkdir -p "$output/work"
output=$(realpath "$output") work=$output/work
source=$work/dlprim-$version archive=$output/dlprim-$version.tar.gz
maintainer="${DEBFULLNAME:-$(git log -1 --format=%an)} <${DEBEMAIL:-$(git log -1 --format=%ae)}>"

# What was made of another commit is of no use.
if [ "$(cat "$work/commit" 2> /dev/null)" != "$commit" ]; then
    find "$output" -mindepth 1 -maxdepth 1 ! -name work -exec rm -rf {} +
    find "$work" -mindepth 1 -maxdepth 1 ! -name systems -exec rm -rf {} +
    echo "$commit" > "$work/commit"
fi

#   step NAME WHAT: runs the function NAME, unless an earlier run has done it
step() {
    if [ -e "$work/$1.done" ]; then
        echo "== $2: done before"
        return
    fi
    echo "== $2"
    "$1"
    touch "$work/$1.done"
}

make_archive() {
    bash scripts/source_archive.sh HEAD "$archive"
    rm -rf "$source"
    tar -xzf "$archive" -C "$work"
}

# From here on everything is made of what the archive holds.
make_debian() {
    local build=$source/build-debian
    # shellcheck disable=SC2086
    cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDLPRIM_WERROR=ON -DCMAKE_INSTALL_PREFIX=/usr \
        -DDLPRIM_BUILD_TESTS=OFF -DDLPRIM_BUILD_EXAMPLES=OFF -DDLPRIM_SHARED_TOOLS=ON -DDLPRIM_DEBIAN=ON \
        "-DDLPRIM_MAINTAINER=$maintainer" ${DLPRIM_CMAKE_ARGS:-} > "$work/debian.log" 2>&1 &&
        cmake --build "$build" --parallel "$(nproc)" >> "$work/debian.log" 2>&1 < /dev/null &&
        (cd "$build" && cpack -G DEB) >> "$work/debian.log" 2>&1 || {
        grep -E 'error|Error' "$work/debian.log" | tail -20
        fail "The Debian packages could not be made; $work/debian.log says why."
    }
    cp "$build"/packages/*.deb "$output/"
    command -v lintian > /dev/null || { echo "lintian is not installed, so that nothing looks at the packages."; return; }
    lintian --allow-root "$output"/*.deb > "$work/lintian.log" 2>&1 || true
    ! grep '^E:' "$work/lintian.log" || fail "lintian finds errors in the packages."
    echo "lintian: no errors, $(grep -c '^W:' "$work/lintian.log") warnings in $work/lintian.log"
}

make_wheel() {
    mkdir -p .cache
    ln -sfn "$PWD/.cache" "$source/.cache"
    bash "$source/scripts/wheel.sh"
    cp "$source"/build-wheel/*.whl "$output/"
}

make_bills() {
    local file build
    for file in "$archive" "$output"/*.deb "$output"/*.whl; do
        build=$source/build-debian
        case "$file" in *.whl) build=$(find "$source" -maxdepth 1 -name 'build-cp*' | head -1) ;; esac
        python3 scripts/sbom.py "$file" --build "$build" --output "$file.cdx.json"
    done
}

write_sums() {
    (cd "$output" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS)
}

try_packages() { bash scripts/packages_test.sh "$output" "$work/systems"; }
try_archive() { bash scripts/archive_test.sh "$archive" "$work/systems"; }
try_wheel() { bash scripts/wheel_test.sh "$output"/*.whl "$work/systems"; }

echo "dlprim $version of commit $commit, into $output"
step make_archive "Source archive"
step make_debian "Debian packages"
step make_wheel "Wheel"
step make_bills "Bills of materials"
step write_sums "SHA256SUMS"
if [ -n "$try" ]; then
    step try_packages "Debian packages on bare systems"
    step try_wheel "Wheel on bare systems"
    step try_archive "Source archive on a bare system"
fi
cat "$output/SHA256SUMS"
