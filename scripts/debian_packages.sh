# SPDX-License-Identifier: MIT
# A function for other scripts, which source this file: it unpacks Debian's packages of any release and architecture into a folder,
# so that nothing is installed on this machine. It needs apt-get and dpkg, but not root.

#   unpack_packages SUITE ARCHITECTURE ROOT PACKAGE ...
# Downloads the packages and all that they depend on, and unpacks them into the folder ROOT. Nothing is done where ROOT already
# holds these packages; otherwise what is in ROOT is deleted first. The folder ROOT.apt holds the downloads meanwhile.
unpack_packages() {
    local suite=$1 architecture=$2 root=$3 apt=$3.apt folder deb
    shift 3
    if [ "$(cat "$root/installed" 2> /dev/null)" = "$*" ]; then return; fi
    echo "Unpacking Debian's packages of $suite for $architecture into $root: $*"
    rm -rf "$root" "$apt"
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$root"
    : > "$apt/status"
    # The archive that this machine's own packages come from.
    local from
    from=$(sed -n 's/^URIs: *//p;s/^deb  *\(\[[^]]*\] *\)\{0,1\}\([^ ]*debian\/\{0,1\}\) .*/\2/p' \
        /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2> /dev/null | head -1 || true)
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$from" "$suite" \
        /usr/share/keyrings/debian-archive-keyring.gpg > "$apt/debian.sources"
    local options=(-q -o "Dir::Etc::SourceList=$apt/debian.sources" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
        -o "Dir::State::Lists=$apt/lists" -o "Dir::State::Status=$apt/status" -o "Dir::Cache::Archives=$apt/archives"
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Debug::NoLocking=1
        -o APT::Architecture="$architecture" -o APT::Architectures="$architecture"
        -o APT::Install-Recommends=0 -o APT::Sandbox::User=root)
    if ! { apt-get "${options[@]}" update && apt-get "${options[@]}" install -y --download-only "$@"; } > "$apt/log" 2>&1 < /dev/null
    then
        tail -5 "$apt/log" >&2
        echo "Debian's packages of $suite for $architecture could not be downloaded." >&2
        return 1
    fi
    for folder in bin sbin lib lib64; do
        mkdir -p "$root/usr/$folder"
        ln -s "usr/$folder" "$root/$folder"
    done
    for deb in "$apt"/archives/*.deb; do dpkg -x "$deb" "$root"; done
    rm -rf "$apt"
    echo "$*" > "$root/installed"
}
