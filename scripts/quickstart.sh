#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From a fresh machine to a trained network: installs what is missing, builds the commands, trains the
# example convolutional network on Fashion-MNIST and checks its accuracy on the test images.
#   scripts/quickstart.sh [DEVICE]      (default: the best OpenCL device)
set -euo pipefail
cd "$(dirname "$0")/.."
build=build-quickstart
out=$build/fashion_mnist
device=${1:-${DLPRIM_DEVICE:-opencl}}
wanted=0.91

bash scripts/install_deps.sh build run

generator=()
if [ ! -e "$build/CMakeCache.txt" ] && command -v ninja > /dev/null; then generator=(-G Ninja); fi
cli11=()
[ -z "${DLPRIM_CLI11_DIR:-}" ] || cli11=("-DDLPRIM_CLI11_DIR=$DLPRIM_CLI11_DIR")
mkdir -p "$build"
echo "Building in $build"
cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DDLPRIM_BUILD_TESTS=OFF \
    -DDLPRIM_BUILD_EXAMPLES=OFF -DDLPRIM_JOINED_SOURCES=ON -DDLPRIM_PRECOMPILED_HEADERS=ON "${cli11[@]}" \
    > "$build/configure.log" 2>&1 || {
    tail -30 "$build/configure.log"
    echo "CMake failed; the lines above say on what." >&2
    exit 1
}
cmake --build "$build" --parallel "$(nproc)" --target dlprim_train dlprim_run dlprim_benchmark < /dev/null

echo "Training examples/fashion_mnist/net.json on device '$device'"
"$build/tools/dlprim_train" examples/fashion_mnist/train.json -d "$device" --out "$out" --replace < /dev/null

# The last row of the column that holds the accuracy on the test images.
accuracy=$(awk -F, '
    NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "test_accuracy") column = i }
    NR > 1 && column && $column != "" { last = $column }
    END { print last }' "$out/metrics.csv")
[ -n "$accuracy" ] || { echo "$out/metrics.csv has no test_accuracy" >&2; exit 1; }
if ! awk -v a="$accuracy" -v w="$wanted" 'BEGIN { exit !(a >= w) }'; then
    echo "The test accuracy is $accuracy; $wanted was expected." >&2
    exit 1
fi
echo "Test accuracy $accuracy. The model and its report are in $out:"
ls "$out"
