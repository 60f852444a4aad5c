#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs clang-tidy 14 with the checks of .clang-tidy. Fails where it finds something.
#   scripts/tidy.sh [--minutes N] [BASE]       what differs from the commit BASE, changes without a commit included. Default
#                                              of BASE: where this branch left main; on main, the commit before the last
#   scripts/tidy.sh [--minutes N] --all        all files
#   scripts/tidy.sh [--minutes N] FILE.cpp...  these files
# The test `tidy` runs it within a minute on the default, with the test build's folder for itself.
# A changed header is checked through one file that includes it. --minutes (10): files that are not done by then are named,
# and the exit status is 77. DLPRIM_TIDY_BUILD names the folder for the compiler's options (build-tidy); nothing is built there.
# There are no precompiled headers, so a file that forgets an #include is found here.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${DLPRIM_TIDY_BUILD:-build-tidy}
minutes=10
if [ "${1:-}" = --minutes ]; then
    minutes=$2
    shift 2
fi
if ! command -v clang-tidy-14 > /dev/null; then
    echo "clang-tidy-14 is not installed (apt-get install clang-tidy-14): nothing done" >&2
    exit 77
fi
if ! git rev-parse -q --verify HEAD > /dev/null 2>&1; then
    echo "this copy has no history, which says what changed: nothing done" >&2
    exit 77
fi

# Kernels that are compiled as C++ have the warnings of C, and are left out, as are programs outside the build, and what
# includes protoc's output, since nothing is built.
checked() {
    grep -v -e '^tests/emulation/' -e '^tests/package/' -e '^tests/python/' -e '^tests/fuzz/' -e '^src/formats/onnx/read_' || true
}
sources() { git ls-files "$@" | checked; }

default_base() {
    local main
    for main in origin/main main; do
        git rev-parse -q --verify "$main" > /dev/null || continue
        if [ "$(git merge-base "$main" HEAD)" != "$(git rev-parse HEAD)" ]; then
            git merge-base "$main" HEAD
            return
        fi
    done
    git rev-parse -q --verify HEAD~1 || git rev-parse HEAD
}

changed_since() {
    local file header
    git diff --name-only --diff-filter=d "$1" -- '*.cpp' '*.hpp' | while read -r file; do
        case $file in
            *.cpp) echo "$file" ;;
            *) header=${file#include/}
               header=${header#src/}
               header=${header#tests/}
               # The file of the same name where there is one, else the first that includes it.
               { sources "${file%.hpp}.cpp" || true
                 sources '*.cpp' | xargs grep -l -e "[<\"]$header[>\"]" -e "\"${header##*/}\"" || true; } | sed -n 1p ;;
        esac
    done | checked | sort -u
}

case ${1:-} in
    --all) files=$(sources '*.cpp') ;;
    *.cpp) files=$(printf '%s\n' "$@") ;;
    *) files=$(changed_since "${1:-$(default_base)}") ;;
esac
if [ -z "$files" ]; then
    echo "No C++ file differs."
    exit 0
fi

options=(-DDLPRIM_PRECOMPILED_HEADERS=OFF -DDLPRIM_BUILD_PYTHON=OFF)
if .cache/python/bin/python -c "import nanobind" 2> /dev/null; then
    options+=(-DDLPRIM_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$PWD/.cache/python/bin/python")
fi
[ -z "${DLPRIM_CLI11_DIR:-}" ] || options+=("-DDLPRIM_CLI11_DIR=$DLPRIM_CLI11_DIR")
# shellcheck disable=SC2086
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release "${options[@]}" ${DLPRIM_CMAKE_ARGS:-} > /dev/null

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
end=$(($(date +%s) + minutes * 60))
check() {
    local file=$1 build=$2 results=$3 end=$4 name seconds status=0
    name=${file//\//_}
    seconds=$((end - $(date +%s)))
    if [ "$seconds" -le 0 ]; then
        echo "$file" > "$results/$name.left"
    elif ! grep -qF "/$file\"" "$build/compile_commands.json"; then
        echo "$file is no part of this build: not checked"
    else
        timeout "$seconds" clang-tidy-14 --quiet --extra-arg=-Wno-unknown-warning-option -p "$build" --warnings-as-errors='*' \
            "$file" > "$results/$name.found" 2> /dev/null || status=$?
        if [ "$status" = 124 ]; then
            echo "$file" > "$results/$name.left"
        elif [ "$status" != 0 ]; then
            cat "$results/$name.found"
            echo "$file" > "$results/$name.bad"
        fi
    fi
}
export -f check
echo "$files" | xargs -P "$(nproc)" -I '{}' bash -c 'check "$@"' check '{}' "$build" "$results" "$end"

count() { find "$results" -name "*.$1" | wc -l; }
echo "$(echo "$files" | wc -l) files, $(count bad) with findings, $(count left) left when $minutes minutes were over"
if [ "$(count bad)" != 0 ]; then exit 1; fi
if [ "$(count left)" != 0 ]; then
    cat "$results"/*.left
    exit 77
fi
