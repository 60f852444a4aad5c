# SPDX-License-Identifier: MIT
# For scripts that try what is to be installed on bare systems of Debian 12, made by debootstrap from the mirror that apt uses
# here. They set `folder`, which keeps the systems and what was downloaded for them, and source this. Needs root.

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
        exec chroot "$0" env -i PATH=/opt/python/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 PIP_NO_INDEX=1 \
            PIP_FIND_LINKS=/wheels PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore "$@"' "$root" "$@"
}

#   apt_install NAME PACKAGE...: apt installs packages in a system, files that lie there among them, with what they depend on
#   and recommend. It alone has the network.
apt_install() {
    local root=$folder/$1
    shift
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2> /dev/null || true
    cp -rL /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" 2> /dev/null || true
    unshare --mount --fork bash -c 'mount -t proc proc "$0/proc"
        exec chroot "$0" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            "$@"' "$root" bash -c 'apt-get update -q && apt-get install -y -q --reinstall "$@"' apt "$@" \
        > "$root.apt.log" 2>&1 || { tail -5 "$root.apt.log"; echo "apt-get could not install $*." >&2; exit 1; }
}
