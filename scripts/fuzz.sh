#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the fuzzing programs with clang, AddressSanitizer and UBSan, and runs them side by side. Fails on any finding.
#   scripts/fuzz.sh [--minutes N] [NAME...]     e.g. --minutes 60, or --minutes 5 csv npy
# NAME is the part of tests/fuzz/NAME_fuzz.cpp; without one: json config csv idx hdf5 npy image gguf safetensors
# tokenizer jinja. Default: 60 minutes.
# Each may take 1 GiB. Corpora, logs and what was found stay in DLPRIM_FUZZ_DIR (/tmp/dlprim-fuzz), from where the next
# run goes on. DLPRIM_FUZZ_PRIORITY=idle runs them when the machine has nothing else to do. DLPRIM_FUZZ_OPTIONS are more of
# libFuzzer's options, e.g. -timeout=600 where the programs may be stopped for minutes.
# Debian: apt-get install clang libclang-rt-14-dev
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=60
names=()
while [ $# -gt 0 ]; do
    case $1 in
        --minutes)
            minutes=$2
            shift
            ;;
        -*)
            sed -n '3,10s/^# \?//p' "$0"
            exit 2
            ;;
        *) names+=("$1") ;;
    esac
    shift
done
[ ${#names[@]} -gt 0 ] || names=(json config csv idx hdf5 npy image gguf safetensors tokenizer jinja)
folder=${DLPRIM_FUZZ_DIR:-/tmp/dlprim-fuzz}
priority=()
[ "${DLPRIM_FUZZ_PRIORITY:-}" != idle ] || priority=(chrt --idle 0)

generator=()
if [ ! -e build-fuzz/CMakeCache.txt ] && command -v ninja > /dev/null; then generator=(-G Ninja); fi
cmake --preset fuzz "${generator[@]}" > /dev/null
"${priority[@]}" cmake --build build-fuzz --parallel "$(nproc)" --target "${names[@]/%/_fuzz}" < /dev/null

mkdir -p "$folder"
python3 scripts/fuzz_seeds.py "$folder/seeds"
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
TIMEFORMAT='%U %S'
jobs=()
for name in "${names[@]}"; do
    mkdir -p "$folder/$name" "$folder/seeds/$name" "$folder/found-$name"
    # shellcheck disable=SC2086
    {
        time "${priority[@]}" "build-fuzz/tests/fuzz/${name}_fuzz" -max_total_time=$((minutes * 60)) -rss_limit_mb=1024 \
            -max_len=4096 -timeout=60 -print_final_stats=1 -artifact_prefix="$folder/found-$name/" \
            ${DLPRIM_FUZZ_OPTIONS:-} "$folder/$name" "$folder/seeds/$name" > "$folder/$name.log" 2>&1
    } 2> "$folder/$name.time" < /dev/null &
    jobs+=($!)
done

failed=0
printf '%-8s %14s %12s %10s  %s\n' program executions 'processor s' 'peak MiB' finding
for i in "${!names[@]}"; do
    name=${names[i]}
    finding=none
    wait "${jobs[i]}" || { finding="see $folder/$name.log"; failed=1; }
    stat() { sed -n "s/^stat::$1: *//p" "$folder/$name.log"; }
    printf '%-8s %14s %12s %10s  %s\n' "$name" "$(stat number_of_executed_units)" \
        "$(awk 'END {printf "%.0f", $1 + $2}' "$folder/$name.time")" "$(stat peak_rss_mb)" "$finding"
done
exit $failed
