#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs a program on Oclgrind, which simulates an OpenCL device and finds data races between work-items,
# accesses out of bounds and wrong uses of the API. Fails when the program does, and when Oclgrind has
# something to say.
#   scripts/oclgrind.sh build/tests/operators/operators_test --sample --random 0 --type Softmax
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: scripts/oclgrind.sh PROGRAM [arguments]" >&2; exit 2; }

library=
for folder in /usr/lib/oclgrind /usr/lib/*/oclgrind /usr/local/lib/oclgrind /usr/local/lib; do
    [ ! -e "$folder/liboclgrind-rt-icd.so" ] || library=$folder/liboclgrind-rt-icd.so
done
if [ -z "$library" ]; then
    echo "no such device here: Oclgrind's liboclgrind-rt-icd.so is not installed"
    exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/vendors"
echo "$library" > "$work/vendors/oclgrind.icd"
status=0
# One thread: Oclgrind's compiler crashes where two programs are built at a time.
OCL_ICD_VENDORS=$work/vendors DLPRIM_THREADS=1 DLPRIM_CACHE=0 DLPRIM_TEST_DEVICES=other \
    OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1 OCLGRIND_LOG=$work/log "$@" || status=$?
if [ -s "$work/log" ]; then
    head -60 "$work/log"
    echo "Oclgrind found the above." >&2
    [ "$status" != 0 ] || status=1
fi
exit "$status"
