#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Writes the source archive of a commit: the files that git has of it, with the commit's time, so that every run gives the same
# bytes. What .gitattributes marks export-ignore stays out.
#   scripts/source_archive.sh COMMIT FILE.tar.gz
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 2 ] || { echo "usage: scripts/source_archive.sh COMMIT FILE.tar.gz" >&2; exit 2; }
version=$(git show "$1:include/dlprim/version.hpp" | sed -n 's/^#define DLPRIM_VERSION "\(.*\)"$/\1/p')
git -c tar.umask=0022 archive --format=tar "--prefix=dlprim-$version/" "$1" | gzip -9 -n > "$2.part"
mv "$2.part" "$2"
