#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# OpenCL implementations that need no hardware, beside those that the tests use. They are Debian's packages of two releases,
# unpacked into a folder each, so that nothing is installed on this machine and its own devices stay as they are.
#   scripts/implementations.sh install [NAME ...]        all of them without a name
#   scripts/implementations.sh run NAME COMMAND ...      runs a command with this implementation alone
#   scripts/implementations.sh table [NAME ...]          tries the library on each (scripts/implementations.py)
#   scripts/implementations.sh reproduce [NAME ...]      shows their faults by small programs (tests/implementations)
#
#   pocl6             PoCL 6 of Debian 13
#   rusticl22         Mesa's rusticl over llvmpipe, of Debian 12, as a CPU; rusticl22-gpu: it calls itself a GPU
#   rusticl25         the same of Debian 13, with fp16 and fp64; rusticl25-gpu; rusticl25-plain: without fp16 and fp64
#   zink25            rusticl over zink over lavapipe, of Debian 13: each kernel goes through Vulkan
#   oclgrind          Oclgrind of this machine
#
# Needs apt-get, dpkg, gcc and unshare; root, or a kernel that lets users have namespaces. They go into .cache/implementations.
set -euo pipefail
project=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/debian_packages.sh
. "$project/scripts/debian_packages.sh"
base=$project/.cache/implementations
all=(pocl6 rusticl22 rusticl22-gpu rusticl25 rusticl25-gpu rusticl25-plain zink25 oclgrind)

usage() {
    sed -n '2,/^set/p' "$0" | sed '$d;s/^# \{0,1\}//' >&2
    exit 2
}

# Sets suite, icd and variables of an implementation.
describe() {
    variables=()
    case "$1" in
        pocl6) suite=trixie icd=pocl ;;
        rusticl22*) suite=bookworm icd=rusticl variables=(RUSTICL_ENABLE=llvmpipe) ;;
        rusticl25*) suite=trixie icd=rusticl variables=(RUSTICL_ENABLE=llvmpipe) ;;
        zink25)
            suite=trixie icd=rusticl
            variables=(RUSTICL_ENABLE=swrast GALLIUM_DRIVER=zink LIBGL_ALWAYS_SOFTWARE=1
                VK_ICD_FILENAMES=/usr/share/vulkan/icd.d/lvp_icd.json) ;;
        oclgrind) suite= icd=oclgrind ;;
        *) echo "no implementation is called '$1'; there are: ${all[*]}" >&2; exit 2 ;;
    esac
    case "$1" in *-gpu) variables+=(RUSTICL_DEVICE_TYPE=gpu) ;; esac
    case "$1" in rusticl25 | rusticl25-gpu) variables+=(RUSTICL_FEATURES=fp16,fp64) ;; esac
}

# Unpacks these packages and what they need into $base/SUITE.
#   install_suite SUITE PACKAGE ...
install_suite() {
    local suite=$1 root=$base/$1 folder icd
    shift
    unpack_packages "$suite" amd64 "$root" "$@"
    for icd in "$root"/etc/OpenCL/vendors/*.icd; do
        folder=$root/etc/OpenCL/$(basename "$icd" .icd)
        mkdir -p "$folder"
        cp "$icd" "$folder/"
    done
    mkdir -p "$root"/{proc,dev,tmp,sys,host,run} "$root$project"
}

install_one() {
    describe "$1"
    case "$suite" in
        bookworm) install_suite bookworm mesa-opencl-icd ocl-icd-libopencl1 ;;
        trixie) install_suite trixie pocl-opencl-icd mesa-opencl-icd mesa-vulkan-drivers ocl-icd-libopencl1 ;;
        *)
            mkdir -p "$base/oclgrind"
            local library=/usr/lib/oclgrind/liboclgrind-rt-icd.so
            [ -e "$library" ] || { echo "Oclgrind is not installed: scripts/install_deps.sh test" >&2; return 1; }
            echo "$library" > "$base/oclgrind/oclgrind.icd" ;;
    esac
}

# Runs a command within the root of the implementation's release. The project is where it is outside, and libraries that the
# release lacks are this machine's.
run_one() {
    describe "$1"
    local name=$1
    shift
    install_one "$name" >&2
    local cache=$base/cache/$name
    variables+=("DLPRIM_CACHE_DIR=$cache/dlprim" "POCL_CACHE_DIR=$cache/pocl" "MESA_SHADER_CACHE_DIR=$cache/mesa")
    mkdir -p "$cache"/{dlprim,pocl,mesa}
    if [ -z "$suite" ]; then
        exec env "${variables[@]}" OCL_ICD_VENDORS="$base/oclgrind" "$@"
    fi
    local libraries=/usr/lib/x86_64-linux-gnu
    variables+=("OCL_ICD_VENDORS=/etc/OpenCL/$icd" "LD_LIBRARY_PATH=$libraries:/host$libraries")
    local user=
    [ "$(id -u)" = 0 ] || user=-r
    # shellcheck disable=SC2016,SC2086
    exec unshare $user -m bash -c '
        set -e
        root=$1 project=$2
        shift 2
        for folder in proc dev sys tmp; do mount --rbind "/$folder" "$root/$folder"; done
        mount --bind / "$root/host"
        mkdir -p "$root$project"
        mount --bind "$project" "$root$project"
        exec chroot "$root" /host/usr/bin/env -C "$project" "$@"' \
        run "$base/$suite" "$project" "${variables[@]}" "$@"
}

reproduce() {
    local source program name wanted
    mkdir -p "$base/programs"
    for source in "$project"/tests/implementations/*.c; do
        program=$base/programs/$(basename "$source" .c)
        gcc -O1 -Wall -Wextra -Werror -o "$program" "$source" -lOpenCL -lm
        for name in "$@"; do
            wanted=$(sed -n 's/^\/\/ Implementations: //p' "$source")
            case " $wanted " in *" $name "*) ;; *) continue ;; esac
            local status=0
            bash "$0" run "$name" "$program" > "$base/programs/log" 2>&1 || status=$?
            echo "$name: $(basename "$program"): exit code $status: $(tail -1 "$base/programs/log")"
        done
    done
}

[ $# -gt 0 ] || usage
what=$1
shift
names=("$@")
[ $# -gt 0 ] || names=("${all[@]}")
case "$what" in
    install) for name in "${names[@]}"; do install_one "$name"; done ;;
    run) [ $# -gt 1 ] || usage; run_one "$@" ;;
    table) python=python3
        "$python" -c "import h5py" 2> /dev/null || python=/usr/bin/python3
        exec "$python" "$project/scripts/implementations.py" "${names[@]}" ;;
    reproduce) reproduce "${names[@]}" ;;
    *) usage ;;
esac
