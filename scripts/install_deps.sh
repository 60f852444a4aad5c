#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs the packages that are missing, saying which before it does. For Debian 12 and Ubuntu 24.04.
#   scripts/install_deps.sh [build] [test] [run] [intel] [python] [docs] [simulation] [arm64]   (default: build)
#     build  compiler, CMake, OpenCL headers and loader, HDF5, nlohmann/json, CLI11, zlib, libpng, libjpeg-turbo, ICU,
#            protobuf and ONNX's schema, Highway, cpp-httplib; Open MPI, MPICH and Gloo
#     test   Catch2, Python with h5py, PoCL (OpenCL on the CPU), Oclgrind, clang-format and clang-tidy 14,
#            locales, Chromium (opens reports), the Fashion-MNIST images
#     run    PoCL where no OpenCL platform is installed, the Fashion-MNIST images
#     intel  Intel's OpenCL runtime for CPUs from PyPI, into .cache/intel-opencl
#     python what the Python module and its tests need (tests/python/requirements.txt), from PyPI into the virtual
#            environment .cache/python; and graphviz
#     docs   what builds the documentation's site: Doxygen, and mkdocs-material from PyPI into .cache/docs
#     simulation   SimGrid, which benchmarks/simulate.py simulates steps on clusters with
#     arm64  the cross-compiler for 64-bit Arm and qemu, which scripts/arm64.sh builds and runs by
# Asks for nothing. Where packages cannot be installed (no network, no root), it says so and goes on:
# the build says what it lacks.
set -uo pipefail
cd "$(dirname "$0")/.."

installed() { dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }
has_program() { command -v "$1" > /dev/null 2>&1; }

wanted=()
want() { installed "$1" || wanted+=("$1"); }

build_packages() {
    has_program c++ || want g++
    has_program cmake || want cmake
    has_program ninja || want ninja-build
    has_program make || want make  # what CMake takes if nobody asks for Ninja
    has_program pkg-config || want pkg-config
    want ocl-icd-opencl-dev
    want libhdf5-dev
    want nlohmann-json3-dev
    want zlib1g-dev
    want libpng-dev
    want libjpeg-dev
    want libicu-dev
    want libprotobuf-dev
    want protobuf-compiler
    want libonnx-dev
    want libhwy-dev
    want libcpp-httplib-dev
    # Processes of a run exchange data by these; the build does without any of them. Both of MPI may be installed: plugins are
    # built by the pkg-config files of each, whatever Debian's alternatives for mpicc and mpirun say.
    want libopenmpi-dev
    want libmpich-dev
    want libgloo-dev
    [ -n "${DLPRIM_CLI11_DIR:-}" ] || [ -e /usr/include/CLI/CLI.hpp ] ||
        [ -e /usr/local/include/CLI/CLI.hpp ] || want libcli11-dev
}

test_packages() {
    want catch2
    has_program python3 || want python3
    python3 -c "import h5py" 2> /dev/null || want python3-h5py
    want pocl-opencl-icd
    has_program oclgrind || want oclgrind
    has_program clang-format-14 || want clang-format-14
    has_program clang-tidy-14 || want clang-tidy-14
    [ -e /usr/share/i18n/locales/de_DE ] || want locales
    has_program chromium || has_program chromium-browser || has_program google-chrome || want chromium
    [ -d /usr/share/datasets/fashion-mnist ] || want dataset-fashion-mnist
    want openmpi-bin
    want mpich
    # Engines of other libraries (plugins/).
    want libdnnl-dev
    want libclblast-dev
    # AMD's compiler, for devices that are not here (scripts/offline.py).
    has_program clang-16 || want clang-16
    want rocm-device-libs
}

run_packages() {
    compgen -G "/etc/OpenCL/vendors/*.icd" > /dev/null || [ -n "${OCL_ICD_VENDORS:-}" ] ||
        want pocl-opencl-icd
    [ -d /usr/share/datasets/fashion-mnist ] || want dataset-fashion-mnist
}

python_packages() {
    has_program python3 || want python3
    python3 -c "import ensurepip, venv" 2> /dev/null || want python3-venv
    # The headers of the Python that runs; Debian's are a package, others bring their own.
    python3 -c "import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')))" 2> /dev/null || want python3-dev
    has_program dot || want graphviz
}

docs_packages() {
    has_program python3 || want python3
    python3 -c "import ensurepip, venv" 2> /dev/null || want python3-venv
    has_program doxygen || want doxygen
}

simulation_packages() {
    has_program c++ || want g++
    has_program python3 || want python3
    want libsimgrid-dev
}

arm64_packages() {
    has_program aarch64-linux-gnu-g++ || want g++-aarch64-linux-gnu
    has_program qemu-aarch64-static || want qemu-user-static
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

install_packages() {
    if [ ${#wanted[@]} = 0 ]; then
        echo "All packages are installed."
        return
    fi
    echo "Installing with apt-get: ${wanted[*]}"
    if ! has_program apt-get; then
        echo "There is no apt-get here: install what these hold yourself."
        return
    fi
    if [ "$(id -u)" != 0 ] && ! { has_program sudo && sudo -n true 2> /dev/null; }; then
        echo "This needs root: run 'apt-get install ${wanted[*]}' as root. Going on without."
        return
    fi
    export DEBIAN_FRONTEND=noninteractive
    local log
    log=$(mktemp)
    as_root apt-get update > "$log" 2>&1 < /dev/null
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
        "${wanted[@]}" >> "$log" 2>&1 < /dev/null; then
        # One package that is not to be had must not keep the others away.
        local package
        for package in "${wanted[@]}"; do
            as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
                "$package" >> "$log" 2>&1 < /dev/null ||
                echo "$package could not be installed; going on without. $(grep '^E:' "$log" | tail -1)"
        done
    fi
    rm -f "$log"
}

intel_runtime() {
    local venv=.cache/intel-opencl
    if [ -e "$venv/vendors/intel.icd" ] && [ -e "$(cat "$venv/vendors/intel.icd")" ]; then
        echo "Intel's OpenCL runtime is installed in $venv."
        return
    fi
    [ "$(uname -m)" = x86_64 ] || { echo "Intel's OpenCL runtime is for x86-64 only."; return; }
    echo "Installing Intel's OpenCL runtime from PyPI into $venv"
    rm -rf "$venv"
    mkdir -p "$venv"
    # --prefix needs no venv module, which distributions package apart.
    if ! python3 -m pip --version > /dev/null 2>&1; then
        wanted=(python3-pip)
        install_packages
    fi
    if ! python3 -m pip install -q --disable-pip-version-check --no-input --root-user-action=ignore \
        --no-warn-script-location --ignore-installed --prefix "$PWD/$venv" \
        intel-opencl-rt intel-cmplr-lib-rt tbb < /dev/null > "$venv/pip.log" 2>&1; then
        echo "It could not be installed; tests run without it. $(tail -1 "$venv/pip.log")"
        return
    fi
    local library
    library=$(find "$PWD/$venv" -name libintelocl.so | head -1)
    if [ -z "$library" ]; then
        echo "It holds no libintelocl.so; tests run without it."
        return
    fi
    mkdir -p "$venv/vendors"
    echo "$library" > "$venv/vendors/intel.icd"
}

# Installs from PyPI what stands behind the first argument, which says what it is for. All of it, or none.
pip_install() {
    local what=$1
    shift
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input "$@" < /dev/null >> "$venv/pip.log" 2>&1 ||
        { echo "$what could not be installed: $(grep ERROR "$venv/pip.log" | tail -1)"; return 1; }
}

#   fresh_environment WHAT MODULES WITHOUT: makes the virtual environment $venv, where it does not have these modules of what
#   the file $wants asks for. Fails where there is nothing to install, or no environment; WITHOUT says what then is left out.
fresh_environment() {
    if cmp -s "$wants" "$venv/installed.txt" && "$venv/bin/python" -c "import $2" 2> /dev/null; then
        echo "What $1 is installed in $venv."
        return 1
    fi
    echo "Installing what $1 from PyPI into $venv"
    rm -rf "$venv"
    mkdir -p "$(dirname "$venv")"
    python3 -m venv "$venv" > /dev/null 2>&1 && return
    rm -rf "$venv"
    echo "python3 cannot make a virtual environment (python3-venv is missing); $3."
    return 1
}

python_environment() {
    local venv=.cache/python wants=tests/python/requirements.txt
    fresh_environment "the Python module and its tests need" "nanobind, numpy, pytest" "the Python module is left out" || return
    pip_install "What the Python module needs" -r "$wants" ||
        pip_install "The least that it needs" nanobind numpy pytest || { echo "The Python module is left out."; return; }
    # PyTorch's build for processors, which PyPI has for ARM alone; its build for x86-64 there is one for GPUs, of several
    # GB. torchvision's dependencies would bring another PyTorch.
    local torch=torch==2.13.0+cpu
    [ "$(uname -m)" = x86_64 ] || torch=torch==2.13.0
    if pip_install "PyTorch's build for processors" "$torch"; then
        pip_install "torchvision" --no-deps torchvision==0.28.0
    else
        echo "Tests that compare with PyTorch are skipped; '$venv/bin/pip install torch==2.13.0' gets its build for GPUs."
    fi
    cp "$wants" "$venv/installed.txt"
}

docs_environment() {
    local venv=.cache/docs wants=scripts/site/requirements.txt
    fresh_environment "the documentation's site needs" "material, mkdocstrings" "the site is not built" || return
    pip_install "What the documentation's site needs" -r "$wants" || { echo "The site is not built."; return; }
    cp "$wants" "$venv/installed.txt"
}

[ $# -gt 0 ] || set -- build
for what in "$@"; do
    case "$what" in
        build) build_packages ;;
        test) test_packages ;;
        run) run_packages ;;
        intel) ;;
        python) python_packages ;;
        docs) docs_packages ;;
        simulation) simulation_packages ;;
        arm64) arm64_packages ;;
        *) echo "usage: scripts/install_deps.sh [build] [test] [run] [intel] [python] [docs] [simulation] [arm64]" >&2; exit 2 ;;
    esac
done
install_packages
# What comes from PyPI has a folder each, and is fetched and unpacked at the same time.
case " $* " in *" intel "*) intel_runtime & ;; esac
case " $* " in *" python "*) python_environment & ;; esac
case " $* " in *" docs "*) docs_environment & ;; esac
wait
exit 0
