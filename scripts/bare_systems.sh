# SPDX-License-Identifier: MIT
# For scripts that try what is to be installed on bare systems of Debian 12, made by debootstrap from the mirror that apt uses
# here, and source this in the source's root. `folder` keeps the systems and what was downloaded for them. Needs root.

#   take_arguments WHAT FILE [FOLDER]: the arguments of a script that tries FILE, which its usage calls WHAT. Sets `given`, the
#   path of FILE, and `folder` (a temporary one where none is given), and finds the mirror
take_arguments() {
    [ $# -gt 1 ] || { echo "usage: $0 $1 [FOLDER]" >&2; exit 2; }
    given=$(realpath "$2")
    folder=${3:-}
    if [ -z "$folder" ]; then
        folder=$(mktemp -d)
        trap 'rm -rf "$folder"' EXIT
    fi
    find_mirror
}

#   find_mirror: sets `mirror`, and installs debootstrap where it is missing
find_mirror() {
    if [ "$(id -u)" != 0 ]; then
        echo "Bare systems are made by root alone: run $0 as root." >&2
        exit 1
    fi
    mkdir -p "$folder/packages"
    folder=$(realpath "$folder")
    command -v debootstrap > /dev/null || { apt-get update && apt-get install -y -q --no-install-recommends debootstrap; } > /dev/null
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        sed -n 's/^Debian bookworm main //p' | head -1)
    if [ -z "$mirror" ]; then
        echo "apt has no source of Debian 12 (bookworm) here, of which a bare system could be made." >&2
        exit 1
    fi
}

#   make_system NAME PACKAGES: a bare system with these packages and what they depend on, unless it is there
make_system() {
    [ ! -e "$folder/$1/made" ] || return 0
    echo "Making a bare Debian 12 with $2"
    rm -rf "${folder:?}/$1"
    debootstrap --variant=minbase "--cache-dir=$folder/packages" "--include=$2" bookworm "$folder/$1" "$mirror" \
        > "$folder/$1.log" 2>&1 || { tail -5 "$folder/$1.log"; echo "debootstrap failed; the lines above say why." >&2; exit 1; }
    touch "$folder/$1/made"
}

#   inside NAME COMMAND...: in a system, with /proc and without network
inside() {
    local root=$folder/$1
    shift
    unshare --mount --net --fork bash -c 'mount -t proc proc "$0/proc" && mount -t sysfs sysfs "$0/sys" 2> /dev/null
        exec chroot "$0" env -i PATH=/opt/python/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore "$@"' "$root" "$@"
}

#   online NAME COMMAND...: in a system, with the network and with apt set up as it is here
online() {
    local root=$folder/$1
    shift
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2> /dev/null || true
    cp -rL /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" 2> /dev/null || true
    unshare --mount --fork bash -c 'mount -t proc proc "$0/proc"
        exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            "$@"' "$root" "$@"
}

#   apt_install NAME PACKAGE...: apt installs packages in a system, files that lie there among them, with what they depend on
#   and recommend. It has the network.
apt_install() {
    local name=$1
    shift
    online "$name" bash -c 'apt-get update -q && apt-get install -y -q --reinstall "$@"' apt "$@" > "$folder/$name.apt.log" 2>&1 ||
        { tail -5 "$folder/$name.apt.log"; echo "apt-get could not install $*." >&2; exit 1; }
}

library_version() { sed -n 's/^#define DLPRIM_VERSION "\(.*\)"$/\1/p' include/dlprim/version.hpp; }

#   expect TEXT COMMAND...: the command succeeds, and prints the text
expect() {
    local text=$1 output
    shift
    output=$("$@" 2>&1) || { echo "$output" | tail -5; echo "This failed: $*" >&2; exit 1; }
    case "$output" in
        *"$text"*) echo "$output" | tail -1 ;;
        *) echo "$output" | tail -5; echo "'$text' is missing in what this printed: $*" >&2; exit 1 ;;
    esac
}

#   expect_versions NAME COMMAND...: the commands tell the library's version, and the commit that they were built of
expect_versions() {
    local name=$1 command
    shift
    for command in "$@"; do
        expect "dlprim $(library_version) (commit " inside "$name" "$command" --version
    done
    case "$(inside "$name" "$1" --version)" in
        *unknown*) echo "$1 was built of an unknown commit." >&2; exit 1 ;;
    esac
}

#   expect_compile_program NAME PATTERN: the executable that compiles for the library is there, and runs: it ends with status 2
#   where its input is no socket
expect_compile_program() {
    local status=0
    inside "$1" sh -c "exec $2 < /dev/null" || status=$?
    [ "$status" = 2 ] || { echo "dlprim_compile does not run there: status $status" >&2; exit 1; }
}

#   try_first_program NAME: builds the first program of docs/first_program.md outside the source, by CMake and by pkg-config, and runs both
try_first_program() {
    local root=$folder/$1/root/program
    rm -rf "$root"
    mkdir -p "$root"
    cp examples/first_program/main.cpp "$root/"
    printf '%s\n' 'cmake_minimum_required(VERSION 3.22)' 'project(first CXX)' "find_package(dlprim $(library_version) REQUIRED)" \
        'add_executable(first_program main.cpp)' 'target_link_libraries(first_program dlprim::core)' > "$root/CMakeLists.txt"
    inside "$1" sh -c 'cd /root/program && cmake -S . -B build > log 2>&1 && cmake --build build >> log 2>&1 || { tail log; exit 1; }'
    expect "of 64 right" inside "$1" /root/program/build/first_program cpu
    expect "of 64 right" inside "$1" /root/program/build/first_program
    inside "$1" sh -c 'cd /root/program && c++ -std=c++20 main.cpp $(pkg-config --cflags --libs dlprim) -o by_pkg_config'
    expect "of 64 right" inside "$1" /root/program/by_pkg_config cpu
}
