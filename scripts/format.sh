#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Formats all C++ with clang-format 14, whose results other versions do not share; with --check says what is not formatted,
# fails if anything is, and exits with 77 where that version is not installed.
#   scripts/format.sh [--check]
set -euo pipefail
cd "$(dirname "$0")/.."
tool=clang-format
if command -v clang-format-14 > /dev/null; then tool=clang-format-14; fi
if ! command -v $tool > /dev/null || ! $tool --version | grep -q ' version 14\.'; then
    echo "clang-format 14 is not installed (apt-get install clang-format-14): nothing done" >&2
    exit 77
fi
options=(-i)
if [ "${1:-}" = --check ]; then options=(--dry-run -Werror); fi
find include src tools tests examples benchmarks python \( -name '*.cpp' -o -name '*.hpp' \) -print0 |
    xargs -0 -P "$(nproc)" -n 40 $tool --style=file "${options[@]}"
