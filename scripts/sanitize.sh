#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the tests with AddressSanitizer and UBSan and runs those that need no GPU: formats, base,
# golden files, every engine of the host, and a sample of the operators on PoCL. Fails on any finding.
#   scripts/sanitize.sh [build folder]     (build-asan)
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-asan}
generator=()
if [ ! -e "$build/CMakeCache.txt" ] && command -v ninja > /dev/null; then generator=(-G Ninja); fi
cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDLPRIM_SANITIZE=ON \
    -DDLPRIM_BUILD_TOOLS=OFF -DDLPRIM_BUILD_EXAMPLES=OFF > /dev/null
on_host=(operators_test conv2d_engines_test matmul_engines_test movement_engines_test
    engine_pointwise_kernels_test)
alone=(base_test formats_test golden_test engine_database_test engine_pointwise_language_test)
cmake --build "$build" --parallel "$(nproc)" --target "${on_host[@]}" "${alone[@]}" < /dev/null

# Drivers and their compilers leak, which is no concern of ours. A file that asks for more memory than
# there is must end in an Error.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export DLPRIM_TEST_DEVICES=host DLPRIM_TEST_RANDOM=${DLPRIM_TEST_RANDOM:-20}
for program in "${alone[@]}" "${on_host[@]}"; do
    echo "== $program"
    "$(find "$build/tests" -name "$program" -type f)"
done
echo "== operators_test on PoCL"
status=0
DLPRIM_TEST_DEVICES=pocl DLPRIM_CACHE=0 "$build/tests/operators/operators_test" --sample --random 0 ||
    status=$?
[ "$status" = 77 ] || [ "$status" = 0 ] || exit "$status"
echo "No findings."
